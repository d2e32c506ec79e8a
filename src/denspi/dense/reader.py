"""The exported reader in onnxruntime: reads question and paragraph together, each pair anew. Never torch.

The paper's re-reading baseline. One pair at a time: with dynamic int8 a pair computed together with others
would get logits that depend on them, and on a core, pairs one by one are faster than padded batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from denspi.dense.encoder import WindowSettings
from denspi.dense.onnx_encoder import open_session
from denspi.dense.pairs import Ids, frame_pair
from denspi.dense.runtime_folder import GRAPH, READER_KIND, RECORD, TOKENIZER, check_files, read_record
from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer, Tokens
from denspi.text.windows import plan_windows, stitch
from denspi.types import Span
from denspi.vectors import MAX_PHRASE_WORDS, Floats


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """The best phrase of a paragraph; an empty span and minus infinity where it has none."""

    span: Span  # in the paragraph
    score: float  # start logit + end logit; comparable between paragraphs for the same question


class Reader:
    """Answers a question from each of some paragraphs."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        session: Any,
        max_pieces: int,
        separators: int,
        settings: WindowSettings | None = None,
    ) -> None:
        self.tokenizer, self.separators = tokenizer, separators
        self.max_pieces = max_pieces  # longest input, special tokens included
        self.settings = settings or WindowSettings()
        self._session = session
        self._inputs = [each.name for each in session.get_inputs()]

    def read(self, question: str, paragraphs: Sequence[str]) -> list[ReaderAnswer]:
        """The best phrase of every paragraph, in order; no answer depends on the other paragraphs."""
        if not paragraphs:
            return []
        # A question is cut where it is long: its first words carry the most, and half the input is text.
        limit = min(self.settings.question_pieces, self.max_pieces // 2)
        ids = self.tokenizer.ids_batch([question])[0][:limit]
        answers = []
        for tokens in self.tokenizer.tokenize_batch(paragraphs):
            start, end = self._word_logits(ids, tokens)
            answers.append(best_phrase(tokens, start, end))
        return answers

    def _word_logits(self, question: Ids, tokens: Tokens) -> tuple[Floats, Floats]:
        """Start and end logits ``[word]``; minus infinity where a word has no such border."""
        size = min(self.settings.size, self.max_pieces - len(question) - self.separators - 2)
        plan = plan_windows(len(tokens), size, min(self.settings.overlap, size // 2))
        logits = [self._piece_logits(question, tokens.ids[w.start_token : w.end_token]) for w in plan]
        nothing = np.full((1, 2), -np.inf, np.float32)  # row -1: what a word without such a piece takes
        padded = np.concatenate([stitch(plan, logits), nothing]) if plan else nothing
        return padded[tokens.first_piece, 0], padded[tokens.last_piece, 1]

    def _piece_logits(self, question: Ids, pieces: Ids) -> Floats:
        """Start and end logits ``[piece, 2]`` of one window."""
        ids, types, at = frame_pair(self.tokenizer, question, pieces, self.separators)
        given = {"ids": ids[None].astype(np.int64), "types": types[None].astype(np.int64)}
        given["mask"] = np.ones_like(given["ids"])
        logits: Floats = self._session.run(None, {name: given[name] for name in self._inputs})[0][0]
        return logits[at : at + len(pieces)]


def best_phrase(tokens: Tokens, start: Floats, end: Floats) -> ReaderAnswer:
    """The phrase with the highest sum of word logits ``[word]``."""
    none = ReaderAnswer(Span(0, 0), -np.inf)
    if not len(start):
        return none
    padded = np.pad(end, (0, MAX_PHRASE_WORDS - 1), constant_values=np.float32(-np.inf))
    scores = start[:, None] + sliding_window_view(padded, MAX_PHRASE_WORDS)  # [word, length]
    first, length = divmod(int(scores.argmax()), MAX_PHRASE_WORDS)
    score = float(scores[first, length])
    if score == -np.inf:
        return none
    return ReaderAnswer(Span(int(tokens.word_starts[first]), int(tokens.word_ends[first + length])), score)


def load_reader(folder: Path, threads: int = 1, settings: WindowSettings | None = None) -> Reader:
    """The reader of an exported folder; all of it, or `ModelError`. Scale by processes, not by threads."""
    record = read_record(folder, READER_KIND)
    if not {TOKENIZER, GRAPH} <= {name for name, _ in record.files}:
        raise ModelError(f"{folder / RECORD}: not a reader's record (the graph or the tokenizer lacks)")
    if record.separators not in (1, 2):
        raise ModelError(f"{folder / RECORD}: does not say how pairs are separated; export the reader again")
    check_files(folder, record)
    session = open_session(folder / GRAPH, threads)
    columns = session.get_outputs()[0].shape[-1]
    if columns != 2:
        raise ModelError(f"{folder / GRAPH}: gives {columns} values for a piece; a reader gives 2")
    tokenizer = Tokenizer(folder / TOKENIZER)
    return Reader(tokenizer, session, record.max_pieces, record.separators, settings)
