"""Compact rows: against Python's own numbers to the last bit, against floats within rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.compact_codes import compact_quantizer
from tests.search.conftest import COMPACT_CODES
from tests.search.oracle import all_phrases, dot, key_product, offered
from tests.search.test_searcher import open_searcher

from denspi.index.rows import rows_of
from denspi.search.compact_kernels import SCORE_DIM, CompactKernels
from denspi.search.compact_numbers import CompactVectors, compact_products
from denspi.search.compiled_compact import compiled_compact_products
from denspi.search.fixed_point import KeyTables, fix_questions
from denspi.search.kernels import (
    NO_ROW,
    PER_PARAGRAPH,
    Chosen,
    Side,
    compiled_kernels,
    numpy_kernels,
)
from denspi.search.searcher import Searcher
from denspi.search.strategies import STRATEGIES
from denspi.vectors import QuestionVectors

DIM, BYTES = 14, 8


def side(random: np.random.Generator, words: list[int], key_bytes: int, few: bool) -> Side:
    kept = [np.flatnonzero(random.random(count) < 0.5) for count in words]
    rows, least = sum(map(len, kept)), 254 if few else 0
    return Side(
        random.integers(least, 256, (rows, BYTES), np.uint8),
        random.integers(least, 256, (rows, key_bytes), np.uint8),
        np.concatenate([np.zeros(0, np.int64), *kept]).astype(np.uint16),
        np.cumsum([0, *map(len, kept)]).astype(np.int64),
    )


def vectors(random: np.random.Generator, count: int, dim: int = DIM) -> QuestionVectors:
    sides = (random.standard_normal((count, dim)).astype(np.float32) for _ in range(2))
    return QuestionVectors(*sides, random.choice([1.0, 0.0, -2.5], count).astype(np.float32))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    words=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    keys=st.sampled_from([0, 2, 3]),
    wides=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    few=st.booleans(),
    count=st.sampled_from([1, 4, 100]),
)
def test_kernels_of_compact_rows_give_what_the_oracle_gives(
    seed: int, words: list[int], keys: int, wides: tuple[int, int], few: bool, count: int
) -> None:
    random, codec = np.random.default_rng(seed), compact_quantizer(DIM, keys, wides, BYTES, seed)
    starts, ends = (side(random, words, codec.key_bytes, few) for _ in range(2))
    tables = KeyTables.of(codec)
    questions = fix_questions(vectors(random, 2), codec, tables)
    is_wanted = random.random(len(words)) < 0.8
    wanted = np.flatnonzero(is_wanted)
    rows = rows_of(starts.offsets, wanted)
    rows = rows[random.random(len(rows)) < 0.7]
    offsets = np.append(np.searchsorted(rows, starts.offsets[wanted]), len(rows)).astype(np.int64)
    chosen = Chosen(wanted, rows, offsets, random.random(len(wanted)))
    scores = [[dot(row, question.start_weights) for row in starts.codes] for question in questions]
    phrases = [all_phrases(questions[0], tables, starts, ends, p, 0.0) for p in range(len(words))]
    expected = []
    for n, p in enumerate(wanted.tolist()):
        tried = all_phrases(questions[0], tables, starts, ends, p, float(chosen.sparse[n]))
        own = [phrase for phrase in tried if phrase.start_row in set(rows.tolist())]
        expected += offered(own, starts, ends, PER_PARAGRAPH)
    ranked = sorted((-p.score, p.paragraph, p.start_row, p.end_row) for p in expected)[:count]
    threshold = int(np.median(scores[0])) if scores[0] else 0
    for kernels in (
        CompactKernels(numpy_kernels(), compact_products),
        CompactKernels(compiled_kernels(SCORE_DIM, keys), compiled_compact_products),
    ):
        weights = np.stack([question.start_weights for question in questions])
        maxima = kernels.maxima(starts.codes, starts.offsets, weights, is_wanted)
        for q, own in enumerate(scores):
            for p in range(len(words)):
                of_rows = own[starts.offsets[p] : starts.offsets[p + 1]] if is_wanted[p] else []
                assert maxima[q, p] == max(of_rows, default=NO_ROW)
        reaching = kernels.reaching(starts.codes, starts.offsets, weights[0], wanted, threshold)
        tried_rows = rows_of(starts.offsets, wanted).tolist()
        assert reaching[0].tolist() == [row for row in tried_rows if scores[0][row] >= threshold]
        assert reaching[1].tolist() == [scores[0][row] for row in reaching[0].tolist()]
        tops = np.full(count, -np.inf)
        found = kernels.best_phrases(questions[0], tables, starts, ends, chosen, 20, tops)
        at, nth = np.nonzero(found.scores > -np.inf)
        columns = (-found.scores[at, nth], wanted[at], found.starts[at, nth], found.ends[at, nth])
        assert sorted(zip(*(each.tolist() for each in columns), strict=True))[:count] == ranked
        bounds = kernels.key_bounds(tables, starts, ends, 20)
        for p, each in enumerate(phrases):
            products = [key_product(tables, starts.keys[x.start_row], ends.keys[x.end_row]) for x in each]
            assert bool(bounds.has_phrase[p]) == bool(products)
            assert (bounds.least[p], bounds.greatest[p]) == (
                min(products, default=0),
                max(products, default=0),
            )


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), wide=st.integers(0, 7), size=st.sampled_from([1.0, 1e-30, 1e15]))
def test_scores_are_those_of_the_floats_and_below_their_bounds(seed: int, wide: int, size: float) -> None:
    random, codec = np.random.default_rng(seed), compact_quantizer(DIM, 2, (wide, wide), BYTES, seed)
    rows, asked = side(random, [60], 1, False), vectors(random, 1)
    asked = QuestionVectors(asked.starts, (size * asked.ends).astype(np.float32), asked.coherency)
    question = fix_questions(asked, codec, KeyTables.of(codec))[0]
    scores = [dot(row, question.end_weights) for row in rows.codes]
    floats = codec.end.decode(rows.codes).astype(np.float64) @ asked.ends[0].astype(np.float64)
    whole = np.array([question.end_part(score) for score in scores])
    spread = max(1.0, size) * float(np.abs(floats / size).max(initial=1))
    np.testing.assert_allclose(whole, floats, rtol=0, atol=1e-5 * spread)
    lengths = CompactVectors(codec.end).lengths(rows.codes)
    assert (question.step * np.array(scores) <= question.end_length * lengths + question.end_slack).all()


@pytest.mark.parametrize("extreme", [0, 255])
@pytest.mark.parametrize("vector", ["ones", "one", "zeros"])
@pytest.mark.parametrize("vector_bytes", [2, 64, 600])
def test_no_row_leaves_32_bits(extreme: int, vector: str, vector_bytes: int) -> None:
    dim = 2 * vector_bytes
    codec = compact_quantizer(dim, 2, (vector_bytes // 2, 0), vector_bytes)
    values = {"ones": np.ones(dim), "one": np.eye(1, dim)[0], "zeros": np.zeros(dim)}[vector].astype(
        np.float32
    )
    asked = QuestionVectors(values[None], -values[None], np.ones(1, np.float32))
    question = fix_questions(asked, codec, KeyTables.of(codec))[0]
    for weights, wide in ((question.start_weights, vector_bytes // 2), (question.end_weights, 0)):
        most = np.where(np.arange(len(weights) - 1) < wide, 255, 15)
        sizes = np.abs(weights.astype(np.int64))
        assert 2 * (int(sizes[:-1] @ most) + int(sizes[-1])) < 2**31 - 1
        row = np.full((1, vector_bytes), extreme, np.uint8)
        for products in (compact_products, compiled_compact_products):
            assert products(row, weights[None]).tolist() == [[dot(row[0], weights)]]


@pytest.fixture(scope="module", params=[False, True])
def searcher(compact_folder: Path, request: pytest.FixtureRequest) -> Searcher:
    return open_searcher(compact_folder, compiled=request.param)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("where", [{}, {"number": ["2", "5", "15", "16"]}])
def test_answers_of_a_compact_index(
    searcher: Searcher, strategy: str, k: int, where: dict[str, list[str]]
) -> None:
    """Parts add up, every strategy gives a place the same score, and floats agree within rounding."""
    question = "which river by the old town ?"
    asked = searcher.encoder.encode_questions([question])
    every = searcher.answer(question, k=1000, strategy="exact", where=where)
    known = {(each.document_id, each.span): each.score for each in every}
    found = searcher.answer(question, k=k, strategy=strategy, where=where)
    assert found
    for answer in found[:8]:
        assert answer.parts.score == answer.score
        assert known.get((answer.document_id, answer.span), answer.score) == answer.score
        why = searcher.why_not(question, answer.document_id, answer.span, k, strategy, where=where)
        assert (why.step, why.score) == ("answer", answer.score)
        place = searcher.view.snapshot.find(answer.document_id)
        assert place is not None
        reader = searcher.view.segments[place.segment].reader
        rows = reader.rows_of(int(reader.document_paragraphs[place.document]) + answer.paragraph)
        local = (
            answer.span.start_char
            - reader.paragraph_span(
                int(reader.document_paragraphs[place.document]) + answer.paragraph
            ).start_char
        )
        first = rows.starts[rows.start_chars == local]
        last = rows.ends[rows.end_chars == local + len(answer.span)]
        start = COMPACT_CODES.start.decode(first)[0] @ asked.starts[0]
        end = COMPACT_CODES.end.decode(last)[0] @ asked.ends[0]
        assert (answer.parts.start, answer.parts.end) == pytest.approx((start, end), abs=1e-4)
    if strategy == "exact":
        assert found == every[:k]
