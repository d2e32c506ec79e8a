"""The teacher's word logits for every training question: computed once and kept in the teacher's folder.

Words are the same whatever the pieces: a teacher may have another tokenizer than the model that it teaches.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from denspi.corpus.squad import SquadArticle
from denspi.dense.model import ReaderModel
from denspi.dense.model_folder import load_reader_model
from denspi.errors import ModelError, SettingsError
from denspi.index.locks import Wait
from denspi.text.tokens import Tokenizer
from denspi.training.batches import Teacher
from denspi.training.examples import Example, Limits, make_examples
from denspi.training.processes import alone_in, is_first, say, wait
from denspi.training.progress import counting
from denspi.training.reader_task import Pair, read_pairs
from denspi.vectors import Floats


def teacher_logits(
    folder: Path,
    name: str,
    articles: Sequence[SquadArticle],
    examples: Sequence[Example],
    limits: Limits,
    device: torch.device,
) -> dict[str, Teacher]:
    """By question id, for the `examples` made of `articles`; `name` tells one selection from another."""
    path = folder / f"teacher-{name}.npz"
    if is_first() and not path.exists():
        # Of runs that begin together one asks, and the others wait for it.
        with alone_in(folder, Wait(math.inf, lambda holder: say(f"teacher: waiting for {holder}")), "asking"):
            if not path.exists():
                _ask_for(path, articles, examples, limits, device)
    wait()
    asked = [(e, q) for e in examples for q in e.questions if q.gold]
    return load_logits(path, asked, "was made for other data; remove it to make it again")


def _ask_for(
    path: Path,
    articles: Sequence[SquadArticle],
    examples: Sequence[Example],
    limits: Limits,
    device: torch.device,
) -> None:
    pairs = [(e, q) for e in examples for q in e.questions]
    logits = ask_teacher(path.parent, articles, examples, limits, device)
    half_written = path.with_name(f"half-written-{os.getpid()}.npz")
    try:
        save_logits(half_written, [each for (_, q), each in zip(pairs, logits, strict=True) if q.gold])
        os.replace(half_written, path)
    finally:
        half_written.unlink(missing_ok=True)


def ask_teacher(
    folder: Path,
    articles: Sequence[SquadArticle],
    examples: Sequence[Example],
    limits: Limits,
    device: torch.device,
) -> Iterator[tuple[Floats, Floats]]:
    """The teacher's word logits for all questions of the `examples`, which are made of `articles`.

    It reads them in pieces of its own; of words that it does not reach, the logits are minus infinity.
    """
    model, tokenizer = load_teacher(folder, limits)
    pairs = [(e, q) for e in make_examples(articles, tokenizer, limits) for q in e.questions]
    say(f"teacher: reading {len(pairs)} pairs")
    words = [len(e.tokens.word_starts) for e in examples for _ in e.questions]
    with counting("teacher: pair", "pairs", len(pairs), is_quiet=not is_first()) as told:
        read = read_pairs(model.to(device), tokenizer, pairs, told=told)
    for (start, end), count in zip(read, words, strict=True):
        yield _of_length(start, count), _of_length(end, count)


def load_teacher(folder: Path, limits: Limits) -> tuple[ReaderModel, Tokenizer]:
    """A trained reader and its tokenizer, if its longest input holds the longest pair."""
    model, tokenizer = load_reader_model(folder), Tokenizer(folder / "tokenizer.json")
    needed, reach = limits.longest_pair, model.backbone.max_pieces
    if needed > reach:
        raise SettingsError(f"limits: {needed} pieces do not fit the {reach} of the teacher {folder}")
    return model, tokenizer


def save_logits(path: Path, logits: Sequence[tuple[Floats, Floats]]) -> None:
    """Write start and end logits ``[word]`` of some questions, one after the other, in float16."""
    nothing = np.zeros(0, np.float16)
    start, end = (
        np.concatenate([nothing, *(pair[side].astype(np.float16) for pair in logits)]) for side in (0, 1)
    )
    np.savez(path, start=start, end=end)


def load_logits(path: Path, pairs: Sequence[Pair], otherwise: str) -> dict[str, Teacher]:
    """What `save_logits` wrote, by question id; if it is not of these pairs, `otherwise` says what to do."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            start, end = arrays["start"], arrays["end"]
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise ModelError(f"{path}: {otherwise}") from None
    borders = np.cumsum([0, *(len(e.tokens.word_starts) for e, _ in pairs)])
    if not borders[-1] == len(start) == len(end):
        raise ModelError(f"{path}: {otherwise}")
    return {
        q.question_id: (start[a:b], end[a:b])
        for (_, q), a, b in zip(pairs, borders, borders[1:], strict=False)
    }


def _of_length(logits: Floats, words: int) -> Floats:
    """``[word]``, cut or filled up with minus infinity."""
    if len(logits) == words:
        return logits
    return np.pad(logits[:words], (0, max(0, words - len(logits))), constant_values=-np.inf)
