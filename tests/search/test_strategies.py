"""Every strategy against the oracle that enumerates the whole index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.search.conftest import SPARSE_WEIGHT, ask
from tests.search.oracle import Phrase, all_phrases, dot, offered

from denspi.errors import InputError
from denspi.search.asked import AskedQuestion, scan_starts
from denspi.search.candidates import REACHES, Candidates, Limits, Reach, Stopwatch
from denspi.search.exact import bounds_of, closer_bounds
from denspi.search.kernels import PER_PARAGRAPH
from denspi.search.starts import ListedStarts
from denspi.search.strategies import STRATEGIES, dense_first, exact, find_strategy, hybrid, sparse_first
from denspi.search.view import SearchView, SegmentView

SEEDS = range(5)
Row = tuple[float, int, int, int, int]


def by_paragraph(view: SearchView, question: AskedQuestion) -> dict[tuple[int, int], list[Phrase]]:
    """Every phrase that may be found, by segment and paragraph."""
    found = {}
    for number, segment in enumerate(view.segments):
        reader = segment.reader
        everything = np.arange(reader.counts.paragraphs)
        starts, ends = segment.sides_within(everything)
        of_documents = reader.postings.document_scores(question.sparse)
        of_paragraphs = reader.postings.paragraph_scores(question.sparse)
        for paragraph in everything.tolist():
            document = int(reader.documents_of(np.array([paragraph]))[0])
            sparse = (
                question.sparse_weight * of_documents[document]
                + question.sparse_weight * of_paragraphs[paragraph]
            )
            if segment.allowed_documents[document]:
                found[number, paragraph] = all_phrases(
                    question.fixed, view.tables, starts, ends, paragraph, float(sparse)
                )
    return found


def ranked(view: SearchView, phrases: dict[tuple[int, int], list[Phrase]]) -> list[Row]:
    """What these phrases come to when each paragraph offers its best ones."""
    rows = []
    for (number, paragraph), each in phrases.items():
        sides = view.segments[number].sides_within(np.array([paragraph]))
        for phrase in offered(each, *sides, PER_PARAGRAPH):
            rows.append((phrase.score, number, paragraph, phrase.start_row, phrase.end_row))
    return sorted(rows, key=lambda row: (-row[0], *row[1:]))


def rows(found: Candidates) -> list[Row]:
    columns = (found.scores, found.segments, found.paragraphs, found.starts, found.ends)
    return list(zip(*(each.tolist() for each in columns), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 7, 10_000])
@pytest.mark.parametrize("weight", [0.0, SPARSE_WEIGHT, 50.0])
def test_exact_gives_the_best_of_everything(view: SearchView, seed: int, count: int, weight: float) -> None:
    question = ask(view, seed, weight)
    found = exact(view, question, Limits(phrases=count))
    expected = ranked(view, by_paragraph(view, question))
    assert rows(found) == expected[:count]
    proof = found.certificate
    assert proof is not None
    assert proof.proven_phrases == len(found)
    assert proof.highest_bound < proof.lowest_score
    assert proof.paragraphs_read <= proof.paragraphs
    if count > len(expected):
        assert proof.highest_bound == -np.inf


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_no_phrase_exceeds_the_bounds_of_its_paragraph(view: SearchView, seed: int, size: float) -> None:
    question = ask(view, seed, size=size)
    phrases = by_paragraph(view, question)
    for number, segment in enumerate(view.segments):
        everything = np.arange(segment.reader.counts.paragraphs)
        bounds = bounds_of(view, question, segment)
        closer = closer_bounds(view, question, segment, everything)
        for paragraph in everything.tolist():
            scores = [phrase.score for phrase in phrases.get((number, paragraph), [])]
            if scores:
                assert max(scores) <= closer[paragraph] <= bounds[paragraph]
            else:
                assert bounds[paragraph] == -np.inf


def test_exact_need_not_read_everything(view: SearchView) -> None:
    read = [exact(view, ask(view, seed, 50.0), Limits(phrases=1)).certificate for seed in SEEDS]
    assert min(proof.paragraphs_read / proof.paragraphs for proof in read if proof) < 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_first_reads_the_closest_documents_and_no_others(view: SearchView, seed: int) -> None:
    question = ask(view, seed)
    found = sparse_first(view, question, Limits(phrases=10_000, top_documents=3))
    scores = []
    for number, segment in enumerate(view.segments):
        of_documents = segment.reader.postings.document_scores(question.sparse)
        scores += [
            (-score, number, document)
            for document, score in enumerate(of_documents.tolist())
            if score > 0 and segment.allowed_documents[document]
        ]
    chosen = {place[1:] for place in sorted(scores)[:3]}
    phrases = by_paragraph(view, question)
    inside = {
        place: each
        for place, each in phrases.items()
        if (place[0], int(view.segments[place[0]].documents[place[1]])) in chosen
    }
    assert rows(found) == ranked(view, inside)
    assert found.documents_visited <= 3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 20, 10_000])
def test_dense_first_tries_the_best_starts(view: SearchView, seed: int, count: int) -> None:
    question = ask(view, seed)
    phrases = by_paragraph(view, question)
    scores = []
    for number, segment in enumerate(view.segments):
        for paragraph in np.flatnonzero(segment.allowed_paragraphs).tolist():
            starts, _ = segment.sides_within(np.array([paragraph]))
            for row in range(*starts.offsets[paragraph : paragraph + 2].tolist()):
                scores.append((-dot(starts.codes[row], question.fixed.start_weights), number, row))
    best = {place[1:] for place in sorted(scores)[:count]}
    source = ListedStarts(Reach(count, probes=1)).top_starts(view, question)
    assert {(number, row) for number, each in source for row in each.tolist()} == best
    kept = {
        place: [phrase for phrase in each if (place[0], phrase.start_row) in best]
        for place, each in phrases.items()
    }
    assert rows(dense_first(view, question, Limits(phrases=10_000, top_starts=count))) == ranked(view, kept)


@pytest.mark.parametrize("seed", SEEDS)
def test_hybrid_is_the_union_of_starts_and_paragraphs(view: SearchView, seed: int) -> None:
    limits = Limits(phrases=10_000, top_paragraphs=3, top_starts=15)
    question = ask(view, seed)
    sums = []
    for number, segment in enumerate(view.segments):
        postings = segment.reader.postings
        both = postings.document_scores(question.sparse)[segment.documents]
        both += postings.paragraph_scores(question.sparse)
        for paragraph in np.flatnonzero(segment.allowed_paragraphs & (both > 0)).tolist():
            sums.append((-both[paragraph], number, paragraph))
    whole = {place[1:] for place in sorted(sums)[:3]}
    starts = {
        (number, row)
        for number, each in ListedStarts(Reach(15, probes=1)).top_starts(view, question)
        for row in each.tolist()
    }
    kept = {
        place: [p for p in each if place in whole or (place[0], p.start_row) in starts]
        for place, each in by_paragraph(view, question).items()
    }
    found = hybrid(view, question, limits)
    assert rows(found) == ranked(view, kept)
    assert set(found.stages_ms) == {"sparse", "starts", "read"}


def test_what_hybrid_proves_is_true(view: SearchView) -> None:
    proven = 0
    for seed in range(12):
        question = ask(view, seed, sparse_weight=[0.7, 30.0][seed % 2])
        found = hybrid(view, question, Limits(top_paragraphs=5, top_starts=10, prove=True))
        best = exact(view, question, Limits())
        if found.certificate is not None:
            count = found.certificate.proven_phrases
            assert count > 0
            assert rows(found)[:count] == rows(best)[:count]
            assert found.certificate.highest_bound < found.certificate.lowest_score == found.scores[count - 1]
            proven += 1
        assert hybrid(view, question, Limits()).certificate is None
    assert proven > 0


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_with_no_limits_all_strategies_agree(view: SearchView, name: str, seed: int) -> None:
    limits = Limits(phrases=10_000, top_documents=100, top_paragraphs=100, top_starts=100_000)
    question = ask(view, seed)
    everything = rows(exact(view, question, limits))
    found = rows(STRATEGIES[name](view, question, limits))
    if name == "sparse_first":  # documents that share no word are not found
        assert set(found) <= set(everything)
    else:
        assert found == everything


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_may_not_be_found_is_not(view: SearchView, name: str) -> None:
    def allows(segment: SegmentView) -> np.ndarray:
        return np.arange(segment.reader.counts.documents) % 2 == 0

    only = view.where(allows)
    for seed in SEEDS:
        question = ask(only, seed)
        found = rows(STRATEGIES[name](only, question, Limits(top_starts=5)))
        assert found
        for _, number, paragraph, *_ in found:
            segment = view.segments[number]
            document = segment.documents[paragraph]
            assert document % 2 == 0
            assert segment.reader.live[document]
    nothing = view.where(lambda segment: np.zeros(segment.reader.counts.documents, np.bool_))
    assert len(STRATEGIES[name](nothing, ask(nothing, 0), Limits())) == 0


def test_questions_scanned_together_are_as_alone(view: SearchView) -> None:
    together = [ask(view, seed) for seed in SEEDS]
    for segment in view.segments:
        scan_starts(together, view, segment)
    for seed, question in zip(SEEDS, together, strict=True):
        assert rows(exact(view, question, Limits())) == rows(exact(view, ask(view, seed), Limits()))


def test_a_strategy_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"'fast'.*hybrid"):
        find_strategy("fast")


def test_strategies_have_limits_of_their_own() -> None:
    assert Limits().reach("dense_first") == Reach(1000, 256)
    own = REACHES["hybrid"]
    assert Limits(top_starts=7).reach("hybrid") == Reach(7, own.probes, own.lists_per_probe)
    assert Limits(probes=3).reach("hybrid") == Reach(own.starts, 3)


def test_large_indexes_have_more_of_their_lists_looked_into() -> None:
    reach = Reach(100, probes=64, lists_per_probe=256)
    assert [reach.probes_of(lists) for lists in (0, 10_000, 64 * 256, 65 * 256, 256_000)] == [
        64,
        64,
        64,
        65,
        1000,
    ]
    assert Reach(100, probes=64).probes_of(256_000) == 64


@pytest.mark.parametrize(
    "wrong", [{"phrases": 0}, {"probes": -1}, {"top_starts": 1.5}, {"top_documents": None}]
)
def test_limits_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"limits: {next(iter(wrong))} is .*, not a whole number from"):
        Limits(**wrong)


def test_stages_add_up() -> None:
    ticks = iter([0.0, 1.0, 5.0, 7.0])
    watch = Stopwatch(lambda: next(ticks))
    for _ in range(2):
        with watch.stage("read"):
            pass
    assert watch.stages_ms == {"read": 3000.0}
