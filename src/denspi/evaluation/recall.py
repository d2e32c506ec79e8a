"""How far the right article, paragraph and answer get: in the index, after each stage, among the answers.

What a stage loses shows as the step from the one before. Computed apart from the answers that are timed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from denspi.corpus.squad import SquadArticle
from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Limits
from denspi.search.phrase import phrases_of
from denspi.search.strategies import find_strategy, top_document_paragraphs, top_paragraphs, top_starts
from denspi.search.view import SearchView
from denspi.text.answers import exact_match, normalize_answer
from denspi.types import Answer

_KEPT_TEXTS, _KEPT_PHRASES = 50_000, 64
Places = frozenset[tuple[int, int]]  # (segment, paragraph)


@dataclass(frozen=True, slots=True)
class Reached:
    """What of the gold is there at some stage.

    In the index: the answer as a phrase of the gold paragraph whose start and end were kept. Of paragraphs:
    the answer's words, in any of them. Of candidates and answers: one that matches exactly.
    """

    document: bool
    paragraph: bool
    answer: bool


class RecallOfStages:
    """Follows the gold of some articles through searches of one view."""

    def __init__(self, view: SearchView, articles: Sequence[SquadArticle]) -> None:
        self._view = view
        self._documents = _find_articles(view, articles)
        self._paragraphs = {
            (article.title, context): places
            for article in articles
            for context, places in self._find_paragraphs(article).items()
        }
        self._normalized = lru_cache(_KEPT_TEXTS)(self._normalized_text)
        self._stored = lru_cache(_KEPT_PHRASES)(self._stored_phrases)

    def trace(
        self,
        question: AskedQuestion,
        answers: Sequence[Answer],
        strategy: str,
        limits: Limits,
        gold: tuple[str, str],
        references: Sequence[str],
    ) -> dict[str, Reached]:
        """By stage, in order; `gold` is the title of the article and the text of the paragraph."""
        documents, paragraphs = self._documents[gold[0]], self._paragraphs[gold]
        right = [text for each in references if (text := normalize_answer(each))]
        stored = any(text in self._stored(place) for place in paragraphs for text in right)
        found = {"index": Reached(bool(documents), bool(paragraphs), stored)}
        for stage, places in self._retrieved(question, strategy, limits).items():
            texts = (self._normalized(place) for place in places)
            has_answer = any(f" {text} " in each for each in texts for text in right)
            found[stage] = Reached(
                any((segment, self._document_of(segment, each)) in documents for segment, each in places),
                not paragraphs.isdisjoint(places),
                has_answer,
            )
        best = find_strategy(strategy)(self._view, question, limits)
        phrases = phrases_of(self._view, best)
        found["candidates"] = Reached(
            any((each.segment_number, each.document) in documents for each in phrases),
            any((each.segment_number, each.paragraph) in paragraphs for each in phrases),
            any(exact_match(each.text, references) for each in phrases),
        )
        shown = [self._place(each) for each in answers]
        found["answers"] = Reached(
            any((segment, self._document_of(segment, each)) in documents for segment, each in shown),
            any(place in paragraphs for place in shown),
            any(exact_match(each.text, references) for each in answers),
        )
        return found

    def _retrieved(
        self, question: AskedQuestion, strategy: str, limits: Limits
    ) -> dict[str, set[tuple[int, int]]]:
        """The paragraphs that the stages before reading come up with; `exact` has no such stage."""
        found = {}
        if strategy == "sparse_first":
            found["sparse"] = _flat(top_document_paragraphs(self._view, question, limits.top_documents))
        if strategy == "hybrid":
            found["sparse"] = _flat(top_paragraphs(self._view, question, limits.top_paragraphs))
        if strategy in ("hybrid", "dense_first"):
            found["dense"] = _flat(
                (number, self._view.segments[number].reader.starts.paragraphs_of(rows))
                for number, rows in top_starts(self._view, question, limits.reach(strategy))
            )
        return found

    def _document_of(self, segment: int, paragraph: int) -> int:
        return int(self._view.segments[segment].documents[paragraph])

    def _place(self, answer: Answer) -> tuple[int, int]:
        place = self._view.snapshot.find(answer.document_id)
        assert place is not None, "an answer's document is in the snapshot that it was found in"
        offsets = self._view.segments[place.segment].reader.document_paragraphs
        return place.segment, int(offsets[place.document]) + answer.paragraph

    def _find_paragraphs(self, article: SquadArticle) -> dict[str, Places]:
        """By their texts; of a paragraph that was too long for one, the parts."""
        stored = {
            (segment, paragraph): self._view.segments[segment].reader.paragraph_text(paragraph)
            for segment, document in self._documents[article.title]
            for paragraph in _paragraphs_of(self._view, segment, document)
        }
        found = {}
        for context in (paragraph.context for paragraph in article.paragraphs):
            whole = frozenset(place for place, text in stored.items() if text == context)
            found[context] = whole or frozenset(place for place, text in stored.items() if text in context)
        return found

    def _normalized_text(self, place: tuple[int, int]) -> str:
        segment, paragraph = place
        return f" {normalize_answer(self._view.segments[segment].reader.paragraph_text(paragraph))} "

    def _stored_phrases(self, place: tuple[int, int]) -> frozenset[str]:
        """Every phrase that can be found in a paragraph, normalised."""
        reader = self._view.segments[place[0]].reader
        rows, text = reader.rows_of(place[1]), reader.paragraph_text(place[1])
        return frozenset(
            normalize_answer(text[start_char:end_char])
            for start_char, word in zip(rows.start_chars.tolist(), rows.start_words.tolist(), strict=True)
            for end_char in rows.end_chars[
                (rows.end_words >= word) & (rows.end_words < word + self._view.max_words)
            ].tolist()
        )


def _find_articles(view: SearchView, articles: Sequence[SquadArticle]) -> dict[str, Places]:
    """Documents by the id that an article is indexed under, else by the title."""
    found: dict[str, Places] = {}
    for article in articles:
        place = view.snapshot.find(article.title)
        found[article.title] = frozenset([(place.segment, place.document)] if place else [])
    left = {title.replace("_", " "): title for title, places in found.items() if not places}
    if left:
        for number, segment in enumerate(view.segments):
            for document in np.flatnonzero(segment.reader.live).tolist():
                title = left.get(segment.reader.record(document).title.replace("_", " "))
                if title is not None:
                    found[title] |= {(number, document)}
    return found


def _paragraphs_of(view: SearchView, segment: int, document: int) -> range:
    first, last = view.segments[segment].reader.document_paragraphs[document : document + 2].tolist()
    return range(first, last)


def _flat(chosen: Iterable[tuple[int, np.ndarray]]) -> set[tuple[int, int]]:
    return {(segment, paragraph) for segment, numbers in chosen for paragraph in numbers.tolist()}
