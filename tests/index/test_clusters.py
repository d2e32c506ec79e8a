"""Clusters against a slow search for the nearest centre, and on points that break careless ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspi.index import clusters
from denspi.index.clusters import Points, centres_of, cluster, grow


def reader(points: Points) -> clusters.ReadPoints:
    return lambda numbers: points[numbers]


def distance(point: np.ndarray, centre: np.ndarray) -> int:
    return sum((int(a) - int(b)) ** 2 for a, b in zip(point, centre, strict=True))


def some_points(seed: int, count: int, dim: int, spread: int) -> Points:
    return np.random.default_rng(seed).integers(-spread, spread, (count, dim), np.int8, endpoint=True)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1000),
    st.integers(0, 60),
    st.integers(1, 5),
    st.sampled_from([0, 1, 127]),
    st.integers(0, 40),
)
def test_every_point_has_a_centre_and_every_centre_a_point(
    seed: int, count: int, dim: int, spread: int, wanted: int
) -> None:
    points = some_points(seed, count, dim, spread)
    centres, own = cluster(reader(points), count, wanted)
    assert centres.dtype == np.int8
    assert len(own) == count
    assert len(centres) <= wanted + 1 + wanted**0.5
    if count and wanted:
        assert np.unique(own).tolist() == list(range(len(centres)))


@pytest.mark.parametrize("spread", [0, 1, 127])
def test_a_point_is_put_to_the_nearest_centre_of_the_two_nearest_groups(spread: int) -> None:
    points = some_points(1, 90, 3, spread)
    tree = grow(points, 16)
    found = tree.nearest(points)
    for point, centre in zip(points, found.tolist(), strict=True):
        tops = sorted(range(len(tree.tops)), key=lambda top: (distance(point, tree.tops[top]), top))[:2]
        rivals = [n for top in tops for n in range(*tree.offsets[top : top + 2].tolist())]
        assert centre == min(rivals, key=lambda n: (distance(point, tree.centres[n]), n))


def test_extreme_codes_are_summed_exactly() -> None:
    """At the largest size and length that floats of 32 bits are used for, and just beyond."""
    for dim in (clusters._EXACT_DIM, clusters._EXACT_DIM + 1):
        points = np.where(some_points(2, 6, dim, 1) > 0, 127, -128).astype(np.int8)
        points[1] = points[0]
        points[1, 0] = points[0, 0] - 1 if points[0, 0] > 0 else points[0, 0] + 1
        scores = clusters._closeness(points, points)
        for i in range(6):
            for j in range(6):
                exact = sum(
                    2 * int(a) * int(b) - int(b) ** 2 for a, b in zip(points[i], points[j], strict=True)
                )
                assert scores[i, j] == exact


def test_clouds_are_told_apart() -> None:
    random = np.random.default_rng(3)
    clouds = np.array([[90, 0], [-90, 0], [0, 90], [0, -90]])
    points = (clouds[:, None] + random.integers(-9, 9, (4, 50, 2))).reshape(-1, 2).astype(np.int8)
    found = centres_of(points, 4)
    assert sorted(int(np.abs(clouds - centre).sum(axis=1).argmin()) for centre in found) == [0, 1, 2, 3]


def test_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    points = some_points(4, 700, 8, 40)
    whole = cluster(reader(points), 700, 30)
    monkeypatch.setattr(clusters, "_BLOCK_POINTS", 7)
    for one, other in zip(whole, cluster(reader(points), 700, 30), strict=True):
        np.testing.assert_array_equal(one, other)
