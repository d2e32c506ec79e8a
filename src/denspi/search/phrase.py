"""One phrase of an index in detail: its score parts and its place in the text. Slow and plain, for a few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from denspi.index.documents import Stretch
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
    def stretch(self) -> Stretch:
        """Where the text around it is stored."""
        return self.segment.reader.paragraph_stretches(np.array([self.paragraph]))[0]

    @cached_property
    def paragraph_text(self) -> str:
        """The text around it."""
        return self.segment.reader.text_at(self.stretch)

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
        return parts_of([self], question)[0]

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
    """The candidates, one by one; what many can be asked for at once is known of each already."""
    columns = (candidates.segments, candidates.paragraphs, candidates.starts, candidates.ends)
    phrases = [StoredPhrase(view, *row) for row in zip(*(each.tolist() for each in columns), strict=True)]
    for segment, places in _by_segment(phrases):
        reader, (_, paragraphs, starts, ends) = segment.reader, (each[places] for each in columns)
        firsts, lasts = reader.starts.chars.at(starts).tolist(), reader.ends.chars.at(ends).tolist()
        documents, stretches = segment.documents[paragraphs].tolist(), reader.paragraph_stretches(paragraphs)
        known = zip(places, documents, stretches, firsts, lasts, strict=True)
        for place, document, stretch, first, last in known:
            local_span = Span(first, max(first, last))
            vars(phrases[place]).update(document=document, stretch=stretch, local_span=local_span)
    return phrases


def parts_of(phrases: Sequence[StoredPhrase], question: AskedQuestion) -> list[ScoreParts]:
    """The parts of the score of each."""
    found: dict[int, ScoreParts] = {}
    for segment, places in _by_segment(phrases):
        some = [phrases[place] for place in places]
        tables, codec = some[0].view.tables, some[0].view.codec
        starts, ends = segment.reader.starts, segment.reader.ends
        start_rows = np.array([each.start_row for each in some])
        end_rows = np.array([each.end_row for each in some])
        columns = np.arange(tables.start.shape[1])
        start_keys = keys_of(codec.start_key).codes(starts.keys.at(start_rows)).astype(np.intp)
        end_keys = keys_of(codec.end_key).codes(ends.keys.at(end_rows)).astype(np.intp)
        values = (
            tables.start[start_keys + 128, columns].astype(np.int64) * tables.end[end_keys + 128, columns]
        )
        fixed = question.fixed
        start = vectors_of(codec.start).products(starts.codes.at(start_rows), fixed.start_weights[None])
        end = vectors_of(codec.end).products(ends.codes.at(end_rows), fixed.end_weights[None])
        documents = question.document_parts(segment, np.array([each.document for each in some]))
        paragraphs = question.paragraph_parts(segment, np.array([each.paragraph for each in some]))
        for n, place in enumerate(places):
            found[place] = ScoreParts(
                fixed.start_part(int(start[n, 0])),
                fixed.end_part(int(end[n, 0])),
                fixed.coherency_unit * int(values[n].sum()),
                float(documents[n]),
                float(paragraphs[n]),
            )
    return [found[place] for place in range(len(phrases))]


def _by_segment(phrases: Sequence[StoredPhrase]) -> list[tuple[SegmentView, list[int]]]:
    """The places of the phrases of each segment."""
    places: dict[int, list[int]] = {}
    for place, phrase in enumerate(phrases):
        places.setdefault(phrase.segment_number, []).append(place)
    return [(phrases[own[0]].segment, own) for own in places.values()]


def _by_name(matches: list[Match]) -> dict[str, float]:
    return {match.ngram: match.score for match in matches}
