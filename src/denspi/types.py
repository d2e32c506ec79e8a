"""The records that the whole system speaks in. Owns their names and invariants; no numpy, no I/O.

Every span counts characters of the text it was cut from, so that ``text[span.start_char:span.end_char]``
is always exactly what it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open ``[start_char, end_char)`` in some text."""

    start_char: int
    end_char: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_char <= self.end_char:
            raise ValueError(f"not a span: [{self.start_char}, {self.end_char})")

    def __len__(self) -> int:
        return self.end_char - self.start_char

    def of(self, text: str) -> str:
        """The slice of `text` that this span names."""
        return text[self.start_char : self.end_char]


@dataclass(frozen=True, slots=True)
class Document:
    """A title and a text; `paragraphs` are spans of that text, in order and without overlap.

    `document_id` is the caller's own; `source` says where it was read from (a path), for people.
    """

    document_id: str
    title: str
    text: str
    paragraphs: tuple[Span, ...]
    source: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        previous_end = 0
        for span in self.paragraphs:
            if span.start_char < previous_end or span.end_char > len(self.text) or not len(span):
                raise ValueError(
                    f"{self.document_id}: paragraph {span} is empty, overlaps or leaves the text"
                )
            previous_end = span.end_char

    def paragraph_texts(self) -> Iterator[str]:
        """The text of each paragraph, in order."""
        return (span.of(self.text) for span in self.paragraphs)


@dataclass(frozen=True, slots=True)
class Question:
    """A user's question and, where known, the answers that count as right."""

    question_id: str
    text: str
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """What a phrase's score consists of (Equation 2); the sparse parts are weighted already."""

    start: float
    end: float
    coherency: float
    document: float
    paragraph: float

    @property
    def score(self) -> float:
        """Their sum, in the order in which every search adds them."""
        return ((self.start + self.end) + self.coherency) + (self.document + self.paragraph)


@dataclass(frozen=True, slots=True)
class NgramMatch:
    """A word or pair of words that a question shares with the place of an answer, and what it adds."""

    ngram: str
    document: float  # to the document part of the score
    paragraph: float  # to the paragraph part


MAX_EVIDENCE = 10
"""Other places that an answer lists at most."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Another place that gives the same answer."""

    text: str
    document_id: str
    title: str
    paragraph: int  # its number in the document, from 0
    span: Span  # in the text of the document
    context: str  # the sentence that it stands in
    context_span: Span  # where that is, in the text of the document
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A phrase of a document that answers a question."""

    text: str
    document_id: str
    title: str
    paragraph: int  # its number in the document, from 0
    span: Span  # in the text of the document
    context: str  # the sentence that it stands in
    context_span: Span  # where that is, in the text of the document
    score: float
    parts: ScoreParts
    confidence: float | None  # the probability that it is right; None where the model is not calibrated
    evidence: tuple[Evidence, ...] = ()  # other places with the same normalised text, best first
    matches: tuple[NgramMatch, ...] = ()  # where an explanation was asked for, heaviest first
