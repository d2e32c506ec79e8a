"""What `evaluate_reading` asks: something that answers the questions of paragraphs, and says what that took.

A phrase model encodes a paragraph once for all its questions; a reader reads it anew for each of them. Both
count words as runs between white space, as often as they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from denspi.dense.encoder import Encoder
from denspi.dense.models import open_encoder
from denspi.dense.runtime_folder import READER_KIND, kind_of
from denspi.errors import ModelError
from denspi.search.reading import read_paragraph, rows_of
from denspi.types import Span

if TYPE_CHECKING:
    from denspi.dense.reader import ReaderAnswer

_TORCH_READER_KIND = "reader"
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Answered:
    """The best span of its paragraph for each question, and what was read for it."""

    spans: list[list[Span]]  # [paragraph][question]
    words: int  # read, as often as they were
    reading_s: float  # spent on text
    asking_s: float  # spent on questions; for a reader the same seconds, it does both at once


class Answerer(Protocol):
    """Whatever answers questions from given paragraphs."""

    def answer(self, paragraphs: Sequence[str], questions: Sequence[Sequence[str]], clock: Clock) -> Answered:
        """`questions` holds those of each paragraph."""


class Reads(Protocol):
    """A `denspi.dense.reader.Reader`."""

    def read(self, question: str, paragraphs: Sequence[str]) -> list[ReaderAnswer]:
        """The best phrase of each paragraph."""


class PhraseAnswerer:
    """A phrase model: paragraphs once, questions apart from them."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def answer(self, paragraphs: Sequence[str], questions: Sequence[Sequence[str]], clock: Clock) -> Answered:
        """Encode the paragraphs, then the questions, then search."""
        started = clock()
        vectors = list(self.encoder.encode_paragraphs(paragraphs))
        encoded = clock()
        question_vectors = self.encoder.encode_questions([text for each in questions for text in each])
        runs = rows_of(question_vectors, [len(each) for each in questions])
        spans = [read_paragraph(run, paragraph) for run, paragraph in zip(runs, vectors, strict=True)]
        words = sum(len(text.split()) for text in paragraphs)
        return Answered(spans, words, encoded - started, clock() - encoded)


class RereadingAnswerer:
    """A reader: every paragraph anew for each of its questions."""

    def __init__(self, reader: Reads) -> None:
        self.reader = reader

    def answer(self, paragraphs: Sequence[str], questions: Sequence[Sequence[str]], clock: Clock) -> Answered:
        """Read every pair."""
        started = clock()
        spans = [
            [self.reader.read(question, [text])[0].span for question in each]
            for text, each in zip(paragraphs, questions, strict=True)
        ]
        seconds = clock() - started
        words = sum(len(text.split()) * len(each) for text, each in zip(paragraphs, questions, strict=True))
        return Answered(spans, words, seconds, seconds)


def open_answerer(folder: Path) -> Answerer:
    """The phrase model or the exported reader of a model folder."""
    kind = kind_of(folder)
    if kind == READER_KIND:
        from denspi.dense.reader import load_reader

        return RereadingAnswerer(load_reader(folder))
    if kind == _TORCH_READER_KIND:
        raise ModelError(
            f"{folder}: holds a reader that is not exported; export it first "
            "(denspi.dense.export.export_reader_model) and pass that folder"
        )
    return PhraseAnswerer(open_encoder(folder))
