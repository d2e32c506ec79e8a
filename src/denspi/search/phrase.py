"""One phrase of an index in detail: its score parts and its place in the text. Slow and plain, for a few."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.index.segment import SideRows
from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Candidates
from denspi.search.row_numbers import keys_of, vectors_of
from denspi.search.view import SearchView, SegmentView
from denspi.sparse.rescoring import Match, explain_document, explain_paragraph
from denspi.types import NgramMatch, ScoreParts, Span


@dataclass(frozen=True)
class StoredPhrase:
    """A start row and an end row of one paragraph."""

    view: SearchView
    segment_number: int
    paragraph: int  # in its segment
    start_row: int
    end_row: int

    @property
    def segment(self) -> SegmentView:
        """Where it is stored."""
        return self.view.segments[self.segment_number]

    @cached_property
    def document(self) -> int:
        """Its document in the segment."""
        return int(self.segment.reader.documents_of(np.array([self.paragraph]))[0])

    @property
    def paragraph_number(self) -> int:
        """Its paragraph in the document."""
        return self.paragraph - int(self.segment.reader.document_paragraphs[self.document])

    @cached_property
    def local_span(self) -> Span:
        """Its characters in the paragraph."""
        reader = self.segment.reader
        first = int(reader.starts.chars.rows(self.start_row, self.start_row + 1)[0])
        last = int(reader.ends.chars.rows(self.end_row, self.end_row + 1)[0])
        return Span(first, max(first, last))

    @cached_property
    def paragraph_text(self) -> str:
        """The text around it."""
        return self.segment.reader.paragraph_text(self.paragraph)

    @property
    def text(self) -> str:
        """What it says."""
        return self.local_span.of(self.paragraph_text)

    def in_document(self, local: Span) -> Span:
        """A span of the paragraph as one of the document."""
        begin = self.segment.reader.paragraph_span(self.paragraph).start_char
        return Span(begin + local.start_char, begin + local.end_char)

    def parts(self, question: AskedQuestion) -> ScoreParts:
        """The parts of its score; their sum is the score that every strategy gives it, to the last bit."""
        reader, fixed, tables, codec = self.segment.reader, question.fixed, self.view.tables, self.view.codec
        start_codes, start_key = _row(reader.starts, self.start_row)
        end_codes, end_key = _row(reader.ends, self.end_row)
        columns = np.arange(tables.start.shape[1])
        start_values = tables.start[keys_of(codec.start_key).codes(start_key).astype(int) + 128, columns]
        end_values = tables.end[keys_of(codec.end_key).codes(end_key).astype(int) + 128, columns]
        start = vectors_of(codec.start).products(start_codes, fixed.start_weights[None])
        end = vectors_of(codec.end).products(end_codes, fixed.end_weights[None])
        return ScoreParts(
            fixed.start_part(int(start[0, 0])),
            fixed.end_part(int(end[0, 0])),
            fixed.coherency_unit * int((start_values.astype(np.int64) * end_values).sum()),
            float(question.document_parts(self.segment)[self.document]),
            float(question.paragraph_parts(self.segment)[self.paragraph]),
        )

    def matches(self, question: AskedQuestion) -> tuple[NgramMatch, ...]:
        """The n-grams that question and place share, heaviest first."""
        postings, sparse, weight = self.segment.reader.postings, question.sparse, question.sparse_weight
        of_document = _by_name(explain_document(postings, sparse, self.document))
        of_paragraph = _by_name(explain_paragraph(postings, sparse, self.paragraph))
        found = [
            NgramMatch(name, weight * of_document.get(name, 0.0), weight * of_paragraph.get(name, 0.0))
            for name in sorted(of_document.keys() | of_paragraph.keys())
        ]
        return tuple(sorted(found, key=lambda match: -(match.document + match.paragraph)))


def phrases_of(view: SearchView, candidates: Candidates) -> list[StoredPhrase]:
    """The candidates, one by one."""
    columns = (candidates.segments, candidates.paragraphs, candidates.starts, candidates.ends)
    return [StoredPhrase(view, *row) for row in zip(*(each.tolist() for each in columns), strict=True)]


def _row(side: SideRows, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes and key of one row, as rows."""
    return side.codes.rows(row, row + 1), side.keys.rows(row, row + 1)


def _by_name(matches: list[Match]) -> dict[str, float]:
    return {match.ngram: match.score for match in matches}
