"""Both sets of kernels against the oracle that enumerates every phrase, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.oracle import all_phrases, dot, key_product, offered

from denspi.dense.quantizer import Int8Code, Quantizer
from denspi.errors import ModelError
from denspi.index.rows import rows_of
from denspi.search.fixed_point import FixedQuestion, KeyTables, fix_questions
from denspi.search.kernels import (
    NO_ROW,
    PER_PARAGRAPH,
    Chosen,
    Kernels,
    Side,
    compiled_kernels,
    fastest_kernels,
    numpy_kernels,
)
from denspi.search.scoring import phrase_scores
from denspi.vectors import ParagraphVectors, QuestionVectors

DIM = 7


def quantizer(keys: int, seed: int = 0, dim: int = DIM) -> Quantizer:
    random = np.random.default_rng(seed)

    def code(size: int) -> Int8Code:
        scale = random.uniform(0.001, 0.02, size).astype(np.float32)
        return Int8Code(scale, random.normal(0, 0.3, size).astype(np.float32))

    return Quantizer(code(dim), code(dim), code(keys), code(keys))


def side(random: np.random.Generator, words: list[int], keys: int, share: float, few_codes: bool) -> Side:
    """Rows of some words of paragraphs of these lengths; with few codes, equal scores are common."""
    kept = [np.flatnonzero(random.random(count) < share) for count in words]
    rows = sum(map(len, kept))
    low, high = (-1, 2) if few_codes else (-128, 128)
    return Side(
        random.integers(low, high, (rows, DIM), np.int8),
        random.integers(low, high, (rows, keys), np.int8),
        np.concatenate([np.zeros(0, np.int64), *kept]).astype(np.uint16),
        np.cumsum([0, *map(len, kept)]).astype(np.int64),
    )


def ask(keys: int, seed: int, coherency: float = 1.0) -> tuple[FixedQuestion, KeyTables]:
    random, codes = np.random.default_rng(seed), quantizer(keys)
    tables = KeyTables.of(codes)
    vectors = (random.standard_normal((1, DIM)).astype(np.float32) for _ in range(2))
    asked = QuestionVectors(*vectors, np.array([coherency], np.float32))
    return fix_questions(asked, codes, tables)[0], tables


@pytest.fixture(params=["numpy", "compiled"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def kernels(name: str, keys: int) -> Kernels:
    return numpy_kernels() if name == "numpy" else compiled_kernels(DIM, keys)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    words=st.lists(st.integers(0, 45), min_size=1, max_size=5),
    keys=st.sampled_from([0, 3]),
    share=st.sampled_from([0.3, 1.0]),
    few_codes=st.booleans(),
    coherency=st.sampled_from([1.0, 0.0, -2.5]),
    max_words=st.sampled_from([1, 5, 20]),
    data=st.data(),
)
def test_the_best_phrases_are_those_of_the_oracle(
    seed: int,
    words: list[int],
    keys: int,
    share: float,
    few_codes: bool,
    coherency: float,
    max_words: int,
    data: st.DataObject,
) -> None:
    random = np.random.default_rng(seed)
    starts, ends = (side(random, words, keys, share, few_codes) for _ in range(2))
    question, tables = ask(keys, seed, coherency)
    chosen = np.array(data.draw(st.sets(st.integers(0, len(words) - 1)).map(sorted)), np.int64)
    rows = rows_of(starts.offsets, chosen)
    kept = rows[random.random(len(rows)) < data.draw(st.sampled_from([0.4, 1.0]))]
    offsets = np.searchsorted(kept, np.append(starts.offsets[chosen], len(starts.words)))
    if len(chosen):
        offsets[-1] = len(kept)
    sparse = random.random(len(chosen))
    asked = Chosen(chosen, kept, offsets.astype(np.int64), sparse)
    expected = []
    for n, paragraph in enumerate(chosen.tolist()):
        phrases = all_phrases(question, tables, starts, ends, paragraph, float(sparse[n]), max_words)
        phrases = [phrase for phrase in phrases if phrase.start_row in set(kept.tolist())]
        expected += offered(phrases, starts, ends, PER_PARAGRAPH)
    ranked = sorted((-p.score, p.paragraph, p.start_row, p.end_row) for p in expected)
    count = data.draw(st.sampled_from([1, 4, 100]))
    best = [score for score, *_ in ranked[:count]][::-1]
    for name in ("numpy", "compiled"):
        tops = np.full(count, -np.inf)
        found = kernels(name, keys).best_phrases(question, tables, starts, ends, asked, max_words, tops)
        at, nth = np.nonzero(found.scores > -np.inf)
        columns = (-found.scores[at, nth], chosen[at], found.starts[at, nth], found.ends[at, nth])
        assert sorted(zip(*(each.tolist() for each in columns), strict=True))[:count] == ranked[:count]
        assert tops.tolist() == [-np.inf] * (count - len(best)) + [-score for score in best]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    words=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    questions=st.integers(1, 4),
    few_codes=st.booleans(),
)
def test_maxima_and_rows_that_reach_a_threshold(
    seed: int, words: list[int], questions: int, few_codes: bool
) -> None:
    random = np.random.default_rng(seed)
    rows = side(random, words, 2, 0.7, few_codes)
    weights = random.integers(-32767, 32768, (questions, DIM)).astype(np.int16)
    is_wanted = random.random(len(words)) < 0.7
    scores = [[dot(row, question) for row in rows.codes] for question in weights]
    threshold = int(np.median(scores[0])) if scores[0] else 0
    paragraphs = np.flatnonzero(is_wanted)
    for name in ("numpy", "compiled"):
        found = kernels(name, 2).maxima(rows.codes, rows.offsets, weights, is_wanted)
        for q in range(questions):
            for p in range(len(words)):
                own = scores[q][rows.offsets[p] : rows.offsets[p + 1]] if is_wanted[p] else []
                assert found[q, p] == max(own, default=NO_ROW)
        numbers, values = kernels(name, 2).reaching(
            rows.codes, rows.offsets, weights[0], paragraphs, threshold
        )
        expected = [
            (row, scores[0][row]) for row in rows_of(rows.offsets, paragraphs).tolist()
            if scores[0][row] >= threshold
        ]  # fmt: skip
        assert list(zip(numbers.tolist(), values.tolist(), strict=True)) == expected


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), words=st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_bounds_of_coherency_are_reached(seed: int, words: list[int]) -> None:
    random = np.random.default_rng(seed)
    starts, ends = side(random, words, 3, 0.5, False), side(random, words, 3, 0.5, False)
    question, tables = ask(3, seed)
    for name in ("numpy", "compiled"):
        found = kernels(name, 3).key_bounds(tables, starts, ends, 20)
        for p in range(len(words)):
            products = [
                key_product(tables, starts.keys[phrase.start_row], ends.keys[phrase.end_row])
                for phrase in all_phrases(question, tables, starts, ends, p, 0.0)
            ]
            assert bool(found.has_phrase[p]) == bool(products)
            if products:
                assert (found.least[p], found.greatest[p]) == (min(products), max(products))


def test_whole_numbers_score_as_the_floats_do() -> None:
    random, codes = np.random.default_rng(3), quantizer(4)
    tables = KeyTables.of(codes)
    starts, ends = side(random, [30], 4, 1.0, False), side(random, [30], 4, 1.0, False)
    vectors = QuestionVectors(
        *(random.standard_normal((2, DIM)).astype(np.float32) for _ in range(2)),
        np.array([1.0, -0.7], np.float32),
    )
    places = np.arange(30, dtype=np.int32)
    everything = np.ones(30, np.bool_)
    paragraph = ParagraphVectors(
        *(places, places + 1),
        *(codes.start.decode(starts.codes), codes.end.decode(ends.codes)),
        *(codes.start_key.decode(starts.keys), codes.end_key.decode(ends.keys)),
        *(everything, everything, places.astype(np.float32), places.astype(np.float32)),
    )
    floats = phrase_scores(vectors, paragraph)
    for number, question in enumerate(fix_questions(vectors, codes, tables)):
        for phrase in all_phrases(question, tables, starts, ends, 0, 0.0):
            expected = floats[number, phrase.start_row, phrase.end_row - phrase.start_row]
            assert phrase.score == pytest.approx(float(expected), abs=2e-3)


@pytest.mark.parametrize("dim", [1, 176, 1000, 4096])
def test_no_row_leaves_32_bits(dim: int) -> None:
    codes = quantizer(2, dim=dim)
    for vector in (np.ones(dim, np.float32), np.eye(1, dim, dtype=np.float32)[0], np.zeros(dim, np.float32)):
        asked = QuestionVectors(vector[None], -vector[None], np.ones(1, np.float32))
        question = fix_questions(asked, codes, KeyTables.of(codes))[0]
        for weights in (question.start_weights, question.end_weights):
            assert 128 * int(np.abs(weights.astype(np.int64)).sum()) < 2**31 - 1
    largest = np.abs(question.start_weights).max() if vector.any() else 1
    assert largest <= 32767


@pytest.mark.parametrize("keys", [1, 16, 300])
def test_no_product_of_keys_leaves_32_bits(keys: int) -> None:
    tables = KeyTables.of(quantizer(keys))
    most = [np.abs(table.astype(np.int64)).max(axis=0) for table in (tables.start, tables.end)]
    assert int((most[0] * most[1]).sum()) < 2**31


def test_a_question_that_is_not_a_number_is_refused() -> None:
    codes = quantizer(2)
    asked = QuestionVectors(
        np.full((1, DIM), np.nan, np.float32), np.zeros((1, DIM), np.float32), np.ones(1, np.float32)
    )
    with pytest.raises(ModelError, match="not a number"):
        fix_questions(asked, codes, KeyTables.of(codes))


def test_without_numba_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "denspi.search.compiled", None)
    assert type(fastest_kernels(DIM, 2)) is type(numpy_kernels())
