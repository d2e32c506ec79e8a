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
