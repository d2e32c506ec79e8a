"""Why a span is not the answer: its score and rank, or the step that lost it. For people who wonder.

Slow beside a search: the rank counts everything in the index that scores higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from denspi.search.answers import has_word, reads_as
from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Candidates, Pool, concatenated, split_by_segment
from denspi.search.exact import bounds_of
from denspi.search.kernels import PER_PARAGRAPH
from denspi.search.phrase import StoredPhrase, phrases_of
from denspi.search.view import SearchView
from denspi.text.breaks import breaks_in
from denspi.text.tokens import word_spans
from denspi.types import Answer, ScoreParts, Span

_PARAGRAPHS_AT_ONCE = 256


class Step(StrEnum):
    """Where a span was lost, in the order of the steps."""

    DOCUMENT = "document"  # not in the index, or filtered out
    PARAGRAPH = "paragraph"  # not within one paragraph, or across a blank line of it
    BORDERS = "borders"  # does not begin or end where a word does
    LENGTH = "length"  # more words than a phrase may have
    START_FILTERED = "start_filtered"  # its first word is not stored as a start
    END_FILTERED = "end_filtered"  # its last word is not stored as an end
    OVERLAP = "overlap"  # a phrase that overlaps it scores higher
    CROWDED = "crowded"  # its paragraph offers better ones, as many as it may
    NO_WORD = "no_word"  # it has no letter or digit
    RETRIEVAL = "retrieval"  # the strategy did not come up with it
    RANK = "rank"  # others score higher
    CONFIDENCE = "confidence"  # it would be an answer, but the best one is not sure enough
    ANSWER = "answer"  # it was not lost


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What became of a span. Parts, score and rank are there if it is stored as a phrase."""

    step: Step
    reason: str  # one line, for people
    text: str = ""
    parts: ScoreParts | None = None
    score: float | None = None
    rank: int | None = None  # 1 + the phrases in the whole index that score higher, of those that are offered


def why_not(
    view: SearchView,
    question: AskedQuestion,
    found: Candidates,
    answers: Sequence[Answer],
    k: int,
    document_id: str,
    span: Span,
    min_confidence: float | None,
) -> WhyNot:
    """What became of `span` of a document's text, in a search for k answers that found these."""
    phrase = _stored(view, document_id, span)
    if isinstance(phrase, WhyNot):
        return phrase
    parts = phrase.parts(question)
    score, text = parts.score, phrase.text
    rank = _rank(view, question, phrase, score)

    def lost(step: Step, reason: str) -> WhyNot:
        return WhyNot(step, reason, text, parts, score, rank)

    for number, answer in enumerate(answers, start=1):
        places = [(answer.document_id, answer.span), *((e.document_id, e.span) for e in answer.evidence)]
        if (document_id, span) in places:
            sure = answers[0].confidence
            if min_confidence is not None and sure is not None and sure < min_confidence:
                return lost(Step.CONFIDENCE, f"the best answer is {sure:.0%} sure, which is not enough")
            return lost(Step.ANSWER, f"it is answer {number}, or evidence for it")
    if not has_word(text):
        return lost(Step.NO_WORD, "it has no letter or digit, and is no answer to anything")
    offered = _offered(view, question, phrase)
    if phrase not in offered:
        if (rival := _overlapping(view, question, phrase, offered)) is not None:
            rival_score = rival.parts(question).score
            return lost(Step.OVERLAP, f"{rival.text!r}, which overlaps it, scores {rival_score:.3f}")
        return lost(Step.CROWDED, f"its paragraph offers {len(offered)} phrases, which score higher")
    own = (found.segments == phrase.segment_number) & (found.starts == phrase.start_row)
    is_seen = own.any() or (found.is_cut and score <= found.scores[-1])
    alike = [number for number, answer in enumerate(answers, 1) if reads_as(answer.text) == reads_as(text)]
    # Candidates that are no answers do not count: what lies between them and the last answer was beaten.
    if not is_seen and (alike or len(answers) < k or score > answers[-1].score):
        return lost(Step.RETRIEVAL, "scores high enough, but the strategy did not look at it; try exact")
    if alike:
        listed = len(answers[alike[0] - 1].evidence)
        return lost(Step.ANSWER, f"it reads as answer {alike[0]} does, which lists {listed} other places")
    return lost(Step.RANK, f"{rank - 1} phrases score higher")


def _stored(view: SearchView, document_id: str, span: Span) -> StoredPhrase | WhyNot:
    """The phrase of a span, or the step that kept it from being one."""
    place = view.snapshot.find(document_id)
    if place is None:
        return WhyNot(Step.DOCUMENT, f"there is no document {document_id!r} in the index")
    segment = view.segments[place.segment]
    reader = segment.reader
    if not segment.allowed_documents[place.document]:
        return WhyNot(Step.DOCUMENT, f"document {document_id!r} does not fit the conditions")
    for paragraph in range(*reader.document_paragraphs[place.document : place.document + 2].tolist()):
        around = reader.paragraph_span(paragraph)
        if around.start_char <= span.start_char and span.end_char <= around.end_char and len(span):
            break
    else:
        return WhyNot(Step.PARAGRAPH, "it is empty, or not within one paragraph of the document")
    local = Span(span.start_char - around.start_char, span.end_char - around.start_char)
    text = reader.paragraph_text(paragraph)
    begins, ends = (each.tolist() for each in word_spans(text))
    if local.start_char not in begins or local.end_char not in ends:
        return WhyNot(Step.BORDERS, "it does not begin and end at words", local.of(text))
    if any(local.start_char < place < local.end_char for place in breaks_in(text)):
        return WhyNot(Step.PARAGRAPH, "a blank line runs through it, which no phrase crosses", local.of(text))
    words = ends.index(local.end_char) - begins.index(local.start_char) + 1
    if words > view.max_words:
        return WhyNot(
            Step.LENGTH, f"it has {words} words; phrases have up to {view.max_words}", local.of(text)
        )
    starts, stops = reader.starts.of(paragraph), reader.ends.of(paragraph)
    start = np.flatnonzero(reader.starts.chars.rows(starts.start, starts.stop) == local.start_char)
    stop = np.flatnonzero(reader.ends.chars.rows(stops.start, stops.stop) == local.end_char)
    if not len(start):
        return WhyNot(Step.START_FILTERED, "its first word was filtered out as a start", local.of(text))
    if not len(stop):
        return WhyNot(Step.END_FILTERED, "its last word was filtered out as an end", local.of(text))
    rows = starts.start + int(start[0]), stops.start + int(stop[0])
    return StoredPhrase(view, place.segment, paragraph, *rows)


def _offered(view: SearchView, question: AskedQuestion, phrase: StoredPhrase) -> list[StoredPhrase]:
    """The phrases that its paragraph offers, best first."""
    pool = Pool(view, question, PER_PARAGRAPH)
    pool.read_paragraphs(phrase.segment_number, np.array([phrase.paragraph]))
    return phrases_of(view, pool.best())


def _overlapping(
    view: SearchView, question: AskedQuestion, phrase: StoredPhrase, offered: Sequence[StoredPhrase]
) -> StoredPhrase | None:
    """What stands in its place: one of those that are offered, or the best one from its own start."""
    mine = phrase.local_span
    for other in offered:
        theirs = other.local_span
        if mine.start_char < theirs.end_char and theirs.start_char < mine.end_char:
            return other
    pool = Pool(view, question, 1)
    pool.read_starts(phrase.segment_number, np.array([phrase.start_row]))
    return next((other for other in phrases_of(view, pool.best()) if other != phrase), None)


def _rank(view: SearchView, question: AskedQuestion, phrase: StoredPhrase, score: float) -> int:
    """1 + the number of phrases that score higher, over all paragraphs that could hold one."""
    bounds, segments, paragraphs = concatenated([bounds_of(view, question, each) for each in view.segments])
    higher = 0
    for number, possible in split_by_segment(segments[bounds > score], paragraphs[bounds > score]):
        for first in range(0, len(possible), _PARAGRAPHS_AT_ONCE):
            some = possible[first : first + _PARAGRAPHS_AT_ONCE]
            pool = Pool(view, question, PER_PARAGRAPH * len(some))
            pool.read_paragraphs(number, some)
            higher += int((pool.best().scores > score).sum())
    return 1 + higher
