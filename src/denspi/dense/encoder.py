"""Text -> vectors: tokens, windows, a runtime that knows the model, stitched rows of words.

Owns everything about encoding that does not depend on what computes it. A `Runtime` (torch or ONNX) maps
framed piece ids to one row per piece; the columns of that row are described by `Layout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from denspi.dense.calibration import ModelCalibration
from denspi.dense.codec import RowCodec
from denspi.dense.compact import CompactQuantizer
from denspi.dense.filter import FilterThresholds
from denspi.dense.quantizer import Quantizer
from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer, Tokens
from denspi.text.windows import Window, plan_windows, stitch
from denspi.vectors import Floats, ParagraphVectors, QuestionVectors

Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a runtime's rows: start, end, start key, end key, and the two filter logits."""

    vector_dim: int
    coherency_dim: int
    is_product: bool = False  # coherency is multiplied by the question's own (the paper's c')
    is_mean_pooled: bool = False  # questions: the mean of all pieces instead of the first

    @property
    def columns(self) -> int:
        """Columns in all."""
        return 2 * (self.vector_dim + self.coherency_dim) + 2

    def split(self, rows: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """The six parts of rows ``[..., columns]``."""
        d, c = self.vector_dim, self.coherency_dim
        keys = 2 * d
        return (
            *(rows[..., :d], rows[..., d:keys]),
            *(rows[..., keys : keys + c], rows[..., keys + c : keys + 2 * c]),
            *(rows[..., -2], rows[..., -1]),
        )


class Runtime(Protocol):
    """Whatever computes the model."""

    layout: Layout
    max_pieces: int  # longest input, special tokens included

    def rows(self, framed: Sequence[Ids], is_question: bool) -> list[Floats]:
        """One array ``[piece, columns]`` per input; inputs may be computed together, never mixed up."""


class Encoder(Protocol):
    """What builders and searchers need of a model."""

    layout: Layout

    def encode_questions(self, questions: Sequence[str]) -> QuestionVectors:
        """Question vectors, one row each."""

    def encode_paragraphs(self, paragraphs: Iterable[str]) -> Iterator[ParagraphVectors]:
        """The vectors of each paragraph, in order; streamed."""


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """How paragraphs are cut, in pieces without special tokens; how many windows a runtime gets at once."""

    size: int = 384
    overlap: int = 128
    batch: int = 64
    question_pieces: int = 64


class PhraseEncoder:
    """An `Encoder` from a tokenizer and a runtime.

    It hands out every word. `filter_thresholds` say which of them an index keeps, `quantizer` and `compact`
    how it stores them, `calibration` how a search weighs and trusts them; all are the model's, and None where
    it was not trained that far.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        runtime: Runtime,
        settings: WindowSettings | None = None,
        filter_thresholds: FilterThresholds | None = None,
        quantizer: Quantizer | None = None,
        calibration: ModelCalibration | None = None,
        compact: CompactQuantizer | None = None,
    ) -> None:
        self.tokenizer, self.runtime, self.layout = tokenizer, runtime, runtime.layout
        self.filter_thresholds, self.quantizer, self.calibration = filter_thresholds, quantizer, calibration
        self.compact = compact
        self.settings = settings or WindowSettings()
        self._size = min(self.settings.size, runtime.max_pieces - 2)
        self._overlap = min(self.settings.overlap, self._size // 2)

    def codec(self, precision: str) -> RowCodec:
        """How an index of that precision stores rows; `ModelError` if the model has no such code."""
        codecs: tuple[RowCodec | None, ...] = (self.quantizer, self.compact)
        for codec in codecs:
            if codec is not None and codec.precision == precision:
                return codec
        raise ModelError(
            f"the model has no {precision} code, which the index needs; train it in the filter stage"
        )

    def knows_word(self, word: str) -> bool:
        """Whether the model has a piece for the whole of a lower-case word."""
        return self.tokenizer.has_piece(word)

    def encode_questions(self, questions: Sequence[str]) -> QuestionVectors:
        """A question longer than the limit is cut: its first words carry the most."""
        limit = min(self.settings.question_pieces, self.runtime.max_pieces - 2)
        framed = [self._framed(ids[:limit]) for ids in self.tokenizer.ids_batch(questions)]
        pooled = np.zeros((len(framed), self.layout.columns), np.float32)
        for number, rows in enumerate(self.runtime.rows(framed, True)):
            pooled[number] = rows.mean(0) if self.layout.is_mean_pooled else rows[0]
        start, end, start_key, end_key, _, _ = self.layout.split(pooled)
        coherency = (
            (start_key * end_key).sum(1) if self.layout.is_product else np.ones(len(start), np.float32)
        )
        return QuestionVectors(start, end, coherency)

    def encode_paragraphs(self, paragraphs: Iterable[str]) -> Iterator[ParagraphVectors]:
        """Encode in groups of windows; a paragraph's vectors do not depend on its neighbours in a group."""
        group: list[tuple[Tokens, list[Window]]] = []
        windows = 0
        for text in paragraphs:
            tokens = self.tokenizer.tokenize(text)
            plan = plan_windows(len(tokens), self._size, self._overlap)
            group.append((tokens, plan))
            windows += len(plan)
            if windows >= self.settings.batch:
                yield from self._encode_group(group)
                group, windows = [], 0
        yield from self._encode_group(group)

    def _encode_group(self, group: list[tuple[Tokens, list[Window]]]) -> Iterator[ParagraphVectors]:
        framed = [self._framed(t.ids[w.start_token : w.end_token]) for t, plan in group for w in plan]
        rows = iter(self.runtime.rows(framed, False) if framed else [])
        for tokens, plan in group:
            inner = [next(rows)[1:-1] for _ in plan]  # without the special tokens
            pieces = stitch(plan, inner) if plan else np.zeros((0, self.layout.columns), np.float32)
            yield paragraph_vectors(tokens, pieces, self.layout)

    def _framed(self, ids: Ids) -> Ids:
        return np.concatenate(([self.tokenizer.cls_id], ids, [self.tokenizer.sep_id])).astype(np.int32)


def paragraph_vectors(tokens: Tokens, pieces: Floats, layout: Layout) -> ParagraphVectors:
    """Rows of words from rows of pieces: a word starts with its first piece and ends with its last."""
    can_start, can_end = tokens.first_piece >= 0, tokens.last_piece >= 0
    empty = np.zeros((1, layout.columns), np.float32)  # row -1: what a word without such a piece takes
    padded = np.concatenate([pieces, empty])
    start, _, start_key, _, start_logit, _ = layout.split(padded[tokens.first_piece])
    _, end, _, end_key, _, end_logit = layout.split(padded[tokens.last_piece])
    return ParagraphVectors(
        tokens.word_starts,
        tokens.word_ends,
        start,
        end,
        start_key,
        end_key,
        can_start,
        can_end,
        start_logit,
        end_logit,
    )
