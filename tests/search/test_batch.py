"""Batches: the kernel for many questions against sums in plain integers, and whole replies against a loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.made import WORDS
from tests.search.conftest import ask
from tests.search.test_searcher import MadeUpEncoder, MadeUpIndex, open_searcher

from denspi.search import batch
from denspi.search.asked import scan_ends
from denspi.search.batch_lanes import FEWEST_QUESTIONS, LANES, maxima_of_many
from denspi.search.candidates import Limits
from denspi.search.exact import closer_bounds
from denspi.search.kernels import NO_ROW
from denspi.search.searcher import Reply, Searcher
from denspi.search.strategies import STRATEGIES
from denspi.search.view import SearchView

QUESTIONS = [f"{first} {second}?" for first in WORDS for second in WORDS[:4]]


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.lists(st.integers(0, 150), min_size=1, max_size=6),  # of each paragraph
    dim=st.integers(1, 40),
    questions=st.integers(1, 3 * LANES),
    most=st.sampled_from([1, 300, 32767]),
)
def test_maxima_of_many_are_sums_of_integers(
    seed: int, rows: list[int], dim: int, questions: int, most: int
) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(-128, 128, (sum(rows), dim), np.int8)
    weights = random.integers(-most, most + 1, (questions, dim), np.int16)
    offsets = np.cumsum([0, *rows])
    is_wanted = random.random(len(rows)) < 0.8
    found = maxima_of_many(codes, offsets, weights, is_wanted)
    scores = codes.astype(np.int64) @ weights.astype(np.int64).T  # [row, question]
    for paragraph, wanted in enumerate(is_wanted):
        own = scores[offsets[paragraph] : offsets[paragraph + 1]]
        expected = own.max(axis=0) if wanted and len(own) else np.full(questions, NO_ROW)
        np.testing.assert_array_equal(found[:, paragraph], expected)


def test_the_largest_sums_stay_within_their_lanes() -> None:
    """All weights and codes at their limits, at a length whose sums just fit into 32 bits."""
    dim = (1 << 31) // (128 * 32767)
    codes = np.full((3, dim), -128, np.int8)
    weights = np.repeat(np.array([[32767], [-32767]], np.int16), dim, axis=1)
    found = maxima_of_many(codes, np.array([0, 3]), weights, np.ones(1, np.bool_))
    assert found.tolist() == [[-128 * 32767 * dim], [128 * 32767 * dim]]


def told(reply: Reply) -> Reply:
    """A reply without its times."""
    return replace(reply, stages_ms={})


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [2, FEWEST_QUESTIONS, 40])
def test_replies_are_those_of_a_loop(folder: Path, strategy: str, compiled: bool, count: int) -> None:
    searcher = open_searcher(folder, compiled=compiled)
    where = ["document_id=d1", "document_id=d7", "document_id=d13"]
    for options in ({}, {"where": where}, {"sparse_weight": 0.0}):
        together = searcher.ask_batch(QUESTIONS[:count], 3, strategy, **options)  # type: ignore[arg-type]
        alone = [searcher.ask(each, 3, strategy, **options) for each in QUESTIONS[:count]]  # type: ignore[arg-type]
        # Certificates too: a batch reads the same paragraphs for the same reasons.
        assert list(map(told, together)) == list(map(told, alone))


def test_many_questions_of_exact_scan_the_ends_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(batch, "scan_ends", lambda questions, *_: calls.append(len(questions)))
    searcher = Searcher(MadeUpIndex(folder, MadeUpEncoder()), threads=1)  # type: ignore[arg-type]
    segments = len(searcher.view.segments)
    searcher.ask_batch(QUESTIONS[:40], strategy="exact")
    assert calls == [batch.QUESTIONS_AT_ONCE] * segments + [8] * segments
    calls.clear()
    searcher.ask_batch(QUESTIONS[:40], strategy="hybrid")
    assert calls == []


@pytest.mark.parametrize(
    ("strategy", "prove", "is_scanned"),
    [
        ("sparse_first", False, False),
        ("dense_first", False, False),
        ("hybrid", False, False),
        ("hybrid", True, True),
        ("exact", False, True),
    ],
)
def test_segments_that_have_lists_are_scanned_for_proofs_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, strategy: str, prove: bool, is_scanned: bool
) -> None:
    searcher = Searcher(MadeUpIndex(folder, MadeUpEncoder()), threads=1)  # type: ignore[arg-type]
    monkeypatch.setattr(batch, "is_probed", lambda segment: True)
    replies = searcher.ask_batch(QUESTIONS[:3], strategy=strategy, limits=Limits(prove=prove))
    # A strategy has no stage of this name of its own but for `exact`, whose scan then takes no time.
    assert all(("scan" in reply.stages_ms) == is_scanned for reply in replies)
    asked = searcher.asked_batch(QUESTIONS[:3], strategy)
    assert all(bool(each._maxima) == (strategy == "exact") for each in asked)


def test_bounds_are_the_same_from_ends_that_were_scanned_before(view: SearchView) -> None:
    for segment in view.segments:
        paragraphs = np.flatnonzero(segment.allowed_paragraphs)
        alone, together = [[ask(view, seed) for seed in range(9)] for _ in range(2)]
        scan_ends(together, view, segment)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(
                closer_bounds(view, one, segment, paragraphs), closer_bounds(view, other, segment, paragraphs)
            )
