"""The teacher's word logits for every training question: computed once and kept in the teacher's folder."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from denspi.corpus.squad import SquadArticle
from denspi.dense.model_folder import load_reader_model
from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer
from denspi.training.batches import Teacher
from denspi.training.examples import Example, ExampleQuestion, Limits, make_examples
from denspi.training.processes import is_first, say, wait
from denspi.training.reader_task import read_pairs
from denspi.training.starting_point import check_limits
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
        _ask(folder, path, articles, examples, limits, device)
    wait()
    asked = [(e, q) for e in examples for q in e.questions if q.gold]
    return load_logits(path, asked, "was made for other data; remove it to make it again")


def load_logits(
    path: Path, questions: Sequence[tuple[Example, ExampleQuestion]], otherwise: str
) -> dict[str, Teacher]:
    """By question id, from a file with the logits of all words, question after question.

    `otherwise` says what it is where it does not fit them, and what to do then.
    """
    borders = np.cumsum([0, *(len(e.tokens.word_starts) for e, _ in questions)])
    try:
        with np.load(path, allow_pickle=False) as arrays:
            start, end = arrays["start"], arrays["end"]
        fits = start.shape == end.shape == (borders[-1],)
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        fits = False
    if not fits:
        raise ModelError(f"{path}: {otherwise}")
    return {
        q.question_id: (start[a:b], end[a:b])
        for (_, q), a, b in zip(questions, borders, borders[1:], strict=False)
    }


def ask_teacher(
    folder: Path, articles: Sequence[SquadArticle], limits: Limits, device: torch.device
) -> tuple[list[Example], Iterator[tuple[Floats, Floats]]]:
    """The examples of `articles` in the teacher's pieces, and its word logits for all their questions."""
    model, tokenizer = load_reader_model(folder).to(device), Tokenizer(folder / "tokenizer.json")
    check_limits(limits, model.backbone, str(folder))
    examples = make_examples(articles, tokenizer, limits)
    pairs = [(e, q) for e in examples for q in e.questions]
    say(f"teacher: reading {len(pairs)} pairs")
    return examples, read_pairs(model, tokenizer, pairs)


def _ask(
    folder: Path,
    path: Path,
    articles: Sequence[SquadArticle],
    examples: Sequence[Example],
    limits: Limits,
    device: torch.device,
) -> None:
    """The same paragraphs in the teacher's pieces; words are the same whatever the pieces."""
    theirs, logits = ask_teacher(folder, articles, limits, device)
    for ours, other in zip(examples, theirs, strict=True):
        if len(ours.tokens.word_starts) != len(other.tokens.word_starts):
            raise ModelError(
                f"{folder}: its tokenizer cuts paragraphs elsewhere; it cannot teach this encoder"
            )
    asked = (q for e in examples for q in e.questions)
    sides = [pair for q, pair in zip(asked, logits, strict=True) if q.gold]
    half_written = path.with_name(f"half-written-{os.getpid()}.npz")  # runs that begin together both ask
    flat = [np.concatenate([s[side] for s in sides]).astype(np.float16) for side in (0, 1)]
    try:
        np.savez(half_written, start=flat[0], end=flat[1])
        os.replace(half_written, path)
    finally:
        half_written.unlink(missing_ok=True)
