"""The filter's thresholds against a search over all pairs of thresholds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.dense.filter import FilterThresholds
from denspi.training.examples import Example
from denspi.training.thresholds import (
    BorderLogits,
    area_under_curve,
    border_labels,
    border_logits,
    choose_thresholds,
    survival,
)
from denspi.vectors import Floats, ParagraphVectors


def random_logits(seed: int, answers: int = 8, places: int = 12, distinct: int = 9) -> BorderLogits:
    """Few distinct values, so that there are ties; answers with one to three occurrences."""
    random = np.random.default_rng(seed)
    starts, ends = random.integers(0, distinct, (2, places)).astype(np.float32)
    answer = np.repeat(np.arange(answers), random.integers(1, 4, answers))
    first, last = random.integers(0, places, (2, len(answer)))
    is_start, is_end = np.isin(np.arange(places), first), np.isin(np.arange(places), last)
    return BorderLogits(starts, ends, is_start, is_end, answer, starts[first], ends[last])


def rows(logits: BorderLogits, thresholds: FilterThresholds) -> int:
    return int((logits.starts >= thresholds.start).sum() + (logits.ends >= thresholds.end).sum())


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 0.5, 0.75, 0.8, 0.9, 1.0]))
def test_no_other_pair_keeps_fewer_rows(seed: int, recall: float) -> None:
    logits = random_logits(seed)
    values = np.unique(np.concatenate([logits.starts, logits.ends])).tolist()
    good_enough = [
        pair
        for pair in itertools.starmap(FilterThresholds, itertools.product(values, values))
        if survival(logits, pair).recall >= recall - 1e-9
    ]
    chosen = choose_thresholds(logits, recall)
    assert survival(logits, chosen).recall >= recall - 1e-9
    assert rows(logits, chosen) == min(rows(logits, pair) for pair in good_enough)


@given(st.integers(0, 10_000))
def test_more_recall_never_keeps_less(seed: int) -> None:
    logits = random_logits(seed, answers=30, places=60, distinct=50)
    chosen = {recall: choose_thresholds(logits, recall) for recall in (0.5, 0.9, 0.95, 1.0)}
    kept = [rows(logits, thresholds) for thresholds in chosen.values()]
    assert kept == sorted(kept)
    assert all(survival(logits, chosen[recall]).recall >= recall - 1e-9 for recall in chosen)


def test_an_answer_needs_both_borders_of_one_occurrence() -> None:
    logits = BorderLogits(
        starts=np.array([1, 5], np.float32),
        ends=np.array([5, 1], np.float32),
        is_start=np.array([True, True]),
        is_end=np.array([True, True]),
        answer=np.array([0, 0]),
        answer_starts=np.array([1, 5], np.float32),
        answer_ends=np.array([5, 1], np.float32),
    )
    assert survival(logits, FilterThresholds(5, 1)).recall == 1
    assert survival(logits, FilterThresholds(1, 5)).recall == 1
    assert survival(logits, FilterThresholds(5, 5)).recall == 0
    assert survival(logits, FilterThresholds(5, 5)).kept_starts == 0.5


@pytest.mark.parametrize("recall", [0.0, 1.1])
def test_a_recall_is_a_share(recall: float) -> None:
    with pytest.raises(ValueError, match="recall lies in"):
        choose_thresholds(random_logits(0), recall)


def test_labels_and_logits_of_examples(examples: list[Example]) -> None:
    """Every fact names a person, a town and a job: words 0, 3 and 8 of ten."""
    for example in examples[:5]:
        is_start, is_end = border_labels(example, 10)
        assert np.flatnonzero(is_start).tolist() == np.flatnonzero(is_end).tolist() == [0, 3, 8]
    found = border_logits(examples[:2], [numbered(10, 0), numbered(10, 100)])
    assert found.answers == 6
    assert found.answer_starts.tolist() == [0, 3, 8, 100, 103, 108]
    assert found.answer_ends.tolist() == [0.5, 3.5, 8.5, 100.5, 103.5, 108.5]
    assert (len(found.starts), len(found.ends)) == (18, 19)  # two words cannot start, one cannot end
    assert found.starts[found.is_start].tolist() == found.answer_starts.tolist()
    assert found.ends[found.is_end].tolist() == found.answer_ends.tolist()


def numbered(words: int, first: int) -> ParagraphVectors:
    empty, numbers = np.zeros((words, 0), np.float32), np.arange(words, dtype=np.int32)
    logits = (first + numbers).astype(np.float32)
    can_start, can_end = numbers != 1, (numbers != 2) | (first > 0)
    return ParagraphVectors(
        numbers, numbers + 1, empty, empty, empty, empty, can_start, can_end, logits, logits + np.float32(0.5)
    )


@given(st.integers(0, 10_000))
def test_the_area_is_the_share_of_pairs_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    logits: Floats = random.integers(0, 5, 12).astype(np.float32)
    is_right = np.arange(12) < random.integers(1, 12)
    pairs = [(x > y) + (x == y) / 2 for x in logits[is_right] for y in logits[~is_right]]
    assert area_under_curve(logits, is_right) == pytest.approx(np.mean(pairs))
