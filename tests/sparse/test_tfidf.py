"""Frequencies add, subtract, survive the disk and never let a collection vanish."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.errors import InputError
from denspi.sparse import UnitFrequencies, weigh_question
from denspi.sparse.table import CountTable
from denspi.sparse.tfidf import inverse_frequency

TEXTS = st.lists(st.text(alphabet="abc the", max_size=20), max_size=8)


def same(left: UnitFrequencies, right: UnitFrequencies) -> bool:
    return left.unit_count == right.unit_count and left.fingerprint() == right.fingerprint()


@given(TEXTS, TEXTS, TEXTS)
def test_parts_add_up_to_the_whole(one: list[str], two: list[str], three: list[str]) -> None:
    a, b, c = map(UnitFrequencies.fit, (one, two, three))
    whole = UnitFrequencies.fit([*one, *two, *three])
    assert same(a + b + c, whole)
    assert same(c + (b + a), whole)
    assert same(whole - b, a + c)
    assert same(a + b - b, a)


def test_removing_what_was_never_counted_is_an_error() -> None:
    with pytest.raises(InputError, match="never counted"):
        UnitFrequencies.fit(["one"]) - UnitFrequencies.fit(["two"])


def test_frozen_fingerprint() -> None:
    """Stored in manifests: if this fails, old indexes no longer open."""
    fitted = UnitFrequencies.fit(["Warsaw", "Warsaw is the capital of Poland.", "The Who", ""])
    assert fitted.unit_count == 4
    assert fitted.fingerprint() == "3150ebeb89ec2447"


def test_save_and_open(folder: Path) -> None:
    fitted = UnitFrequencies.fit(["old town", "old river", "new town"])
    fitted.save(folder)
    assert same(UnitFrequencies.open(folder), fitted)
    empty = UnitFrequencies.fit([])
    empty.save(folder)
    assert same(UnitFrequencies.open(folder), empty)


def test_idf_is_drqas_where_that_is_healthy_and_never_zero() -> None:
    frequency = np.array([0, 1, 10, 100])
    drqa = np.log((100_000 - frequency + 0.5) / (frequency + 0.5))
    np.testing.assert_allclose(inverse_frequency(100_000, frequency), drqa, atol=2e-3)
    assert np.all(inverse_frequency(7, np.arange(8)) > 0)
    assert np.all(np.diff(inverse_frequency(7, np.arange(8))) < 0)
    assert inverse_frequency(1, np.array([1]))[0] > 0


def test_unknown_ngrams_stay_in_the_length_of_a_question() -> None:
    fitted = UnitFrequencies.fit(["old town"])
    known, mixed = weigh_question("town", fitted), weigh_question("town zzyzx", fitted)
    assert np.sum(known.weights**2) == pytest.approx(1)
    assert np.sum(mixed.weights**2) == pytest.approx(1)
    assert mixed.weights[mixed.ids == known.ids[0]] < known.weights[0]


@pytest.mark.parametrize("text", ["", "?!", " \n"])
def test_a_question_without_words_is_an_empty_vector(text: str) -> None:
    question = weigh_question(text, UnitFrequencies.fit(["old town"]))
    assert len(question.ids) == len(question.weights) == 0


@pytest.mark.parametrize("rows", [0, 1, 300, 65_535, 65_536, 200_000])
def test_table_looks_up_what_it_was_given(rows: int) -> None:
    generator = np.random.default_rng(rows)
    ids = np.sort(generator.choice(1 << 24, rows, replace=False)).astype(np.uint32)
    counts = generator.geometric(0.02, rows) ** 2  # both sides of 255
    table = CountTable.of(ids, counts)
    np.testing.assert_array_equal(table.ids(), ids)
    np.testing.assert_array_equal(table.counts(), counts)
    wanted = np.concatenate(
        [ids[:: max(1, rows // 500)], generator.integers(0, 1 << 24, 200), [0, (1 << 24) - 1]]
    )
    found, offsets = table.look_up(wanted.astype(np.uint32))
    truth, running = (
        dict(zip(ids.tolist(), counts.tolist(), strict=True)),
        np.concatenate([[0], np.cumsum(counts)]),
    )
    assert found == [truth.get(each, 0) for each in wanted.tolist()]
    assert offsets == running[np.searchsorted(ids, wanted)].tolist()
    assert table.total == counts.sum()
