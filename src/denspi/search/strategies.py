"""The paper's plans of search, all with one signature, and `exact`; a mapping chooses.

They differ in the candidates that they look at. Each candidate is scored by the same formula from the same
stored rows, so a phrase that two of them find has the same score to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from denspi.errors import InputError
from denspi.index.rows import rows_of
from denspi.search.asked import AskedQuestion
from denspi.search.candidates import (
    Candidates,
    Certificate,
    Limits,
    Numbers,
    Pool,
    Reach,
    Stopwatch,
    Strategy,
)
from denspi.search.exact import bounds_of, exact
from denspi.search.starts import start_source
from denspi.search.view import SearchView


def sparse_first(view: SearchView, question: AskedQuestion, limits: Limits) -> Candidates:
    """The documents closest by words, and every phrase in them."""
    watch = Stopwatch()
    with watch.stage("sparse"):
        chosen = top_document_paragraphs(view, question, limits.top_documents)
    return _read(view, question, limits, watch, chosen, [])


def dense_first(view: SearchView, question: AskedQuestion, limits: Limits) -> Candidates:
    """The starts closest by their vectors, each with its best end; words count in the score alone."""
    watch = Stopwatch()
    with watch.stage("starts"):
        starts = top_starts(view, question, limits.reach("dense_first"))
    return _read(view, question, limits, watch, [], starts)


def hybrid(view: SearchView, question: AskedQuestion, limits: Limits) -> Candidates:
    """Starts closest by their vectors, and every phrase of the paragraphs closest by words.

    The paper joins dense_first with whole documents. Paragraphs find as much, with a fraction of the reading:
    the sparse score of a phrase depends on its paragraph as much as on its document.
    """
    watch = Stopwatch()
    with watch.stage("sparse"):
        chosen = top_paragraphs(view, question, limits.top_paragraphs)
    with watch.stage("starts"):
        starts = top_starts(view, question, limits.reach("hybrid"))
    return _read(view, question, limits, watch, chosen, starts)


STRATEGIES: dict[str, Strategy] = {
    "sparse_first": sparse_first,
    "dense_first": dense_first,
    "hybrid": hybrid,
    "exact": exact,
}


def find_strategy(name: str) -> Strategy:
    """A strategy by its name."""
    if name not in STRATEGIES:
        raise InputError(f"strategy {name!r}: there is no such one; choose from {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def top_document_paragraphs(
    view: SearchView, question: AskedQuestion, count: int
) -> list[tuple[int, Numbers]]:
    """The paragraphs of the documents with the highest sparse scores, by segment."""
    hits = [
        question.postings(segment).top_documents(count, segment.allowed_documents)
        for segment in view.segments
    ]
    chosen = _best_hits([(hit.numbers, hit.scores) for hit in hits], count)
    found = []
    for number, documents in chosen:
        offsets = view.segments[number].reader.document_paragraphs
        found.append((number, rows_of(offsets, np.sort(documents))))
    return found


def top_paragraphs(view: SearchView, question: AskedQuestion, count: int) -> list[tuple[int, Numbers]]:
    """The paragraphs with the highest sum of paragraph and document score, by segment."""
    if count < 1:
        return []
    hits = [
        question.postings(segment).top_paragraphs_by_both(
            count, None if segment.allows_all else segment.allowed_paragraphs
        )
        for segment in view.segments
    ]
    return _best_hits([(hit.numbers, hit.scores) for hit in hits], count)


def top_starts(view: SearchView, question: AskedQuestion, reach: Reach) -> list[tuple[int, Numbers]]:
    """The starts closest by their vectors, as far as they are found, by segment."""
    return start_source(reach).top_starts(view, question)


def _best_hits(hits: list[tuple[Numbers, np.ndarray]], count: int) -> list[tuple[int, Numbers]]:
    """The best hits of all segments together; of equals, those of the earlier segment."""
    if not hits:
        return []
    segments = np.repeat(np.arange(len(hits)), [len(numbers) for numbers, _ in hits])
    order = np.argsort(-np.concatenate([scores for _, scores in hits]), kind="stable")[:count]
    numbers = np.concatenate([numbers for numbers, _ in hits])
    return [
        (int(each), numbers[order][segments[order] == each]) for each in np.unique(segments[order]).tolist()
    ]


def _read(
    view: SearchView,
    question: AskedQuestion,
    limits: Limits,
    watch: Stopwatch,
    chosen: Sequence[tuple[int, Numbers]],
    starts: Sequence[tuple[int, Numbers]],
) -> Candidates:
    """Score all phrases of the chosen paragraphs, and those from the starts that lie elsewhere."""
    with watch.stage("read"):
        pool, whole = Pool(view, question, limits.phrases), {}
        for number in sorted({number for number, _ in chosen}):
            whole[number] = np.unique(np.concatenate([each for other, each in chosen if other == number]))
            pool.read_paragraphs(number, whole[number])
        for number, rows in starts:
            if number in whole:
                of_rows = view.segments[number].reader.starts.paragraphs_of(rows)
                place = np.searchsorted(whole[number], of_rows).clip(max=len(whole[number]) - 1)
                rows = rows[whole[number][place] != of_rows]
            pool.read_starts(number, rows)
        found, proof = pool.best(), None
    if limits.prove:
        with watch.stage("prove"):
            proof = _proof(view, question, found, whole, pool.paragraphs_read)
    return replace(found, stages_ms=watch.stages_ms, certificate=proof)


def _proof(
    view: SearchView, question: AskedQuestion, found: Candidates, whole: dict[int, Numbers], read: int
) -> Certificate | None:
    """How many of the candidates beat the bounds of all paragraphs that were not read as a whole."""
    findable, left = 0, -np.inf
    for number, segment in enumerate(view.segments):
        bounds = bounds_of(view, question, segment)
        findable += int((bounds > -np.inf).sum())
        bounds[whole.get(number, np.zeros(0, np.int64))] = -np.inf
        left = max(left, float(bounds.max(initial=-np.inf)))
    proven = int((found.scores > left).sum())
    return Certificate(proven, float(found.scores[proven - 1]), left, read, findable) if proven else None
