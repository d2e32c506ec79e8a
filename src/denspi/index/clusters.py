"""Clusters of small integer vectors, for lists of rows that lie close together. Pure; the same everywhere.

Points and centres are int8, so every distance is a sum of whole numbers that a float holds exactly: the
result depends on no library, processor or number of threads, and on no random number. Safe for any points:
few, equal, or all zero. Centres stand in two levels, so that a point is compared with some hundred of them
and not with all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.int8]  # [point, dim]
ReadPoints = Callable[[NDArray[np.int64]], Points]
"""The points with these numbers, which ascend."""

ROUNDS = 6
SAMPLED_POINTS = 32
"""Points a centre is fitted to, on average."""
_MOST_SAMPLED = 1 << 20
_NEAR_TOPS = 2  # whose centres a point is compared with
_BLOCK_POINTS = 1 << 14
_EXACT_DIM = (1 << 24) // (3 << 14)  # up to here 2 * point * centre - centre ** 2 is exact in float32


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Centres in groups, each with a centre of its own."""

    tops: Points  # [top, dim]
    centres: Points  # [centre, dim] those of the first top, then those of the second, ...
    offsets: NDArray[np.int64]  # [top + 1] the first centre of each

    def nearest(self, points: Points) -> NDArray[np.int64]:
        """``[point]`` the closest centre of the two closest groups; of equals the first."""
        scores = _closeness(points, self.tops)
        best = np.full(len(points), -np.inf)
        found = np.zeros(len(points), np.int64)
        for _ in range(min(_NEAR_TOPS, len(self.tops))):
            chosen = scores.argmax(axis=1)
            scores[np.arange(len(points)), chosen] = -np.inf
            order = np.argsort(chosen, kind="stable")
            ends = np.cumsum(np.bincount(chosen, minlength=len(self.tops)))
            for top, members in enumerate(np.split(order, ends[:-1])):
                self._compare(points, top, members, best, found)
        return found

    def _compare(
        self,
        points: Points,
        top: int,
        members: NDArray[np.int64],
        best: NDArray[np.float64],
        found: NDArray[np.int64],
    ) -> None:
        first, last = self.offsets[top : top + 2].tolist()
        if first == last or not len(members):
            return
        scores = _closeness(points[members], self.centres[first:last])
        nearest = scores.argmax(axis=1)
        closeness = scores[np.arange(len(members)), nearest]
        is_closer = (closeness > best[members]) | (
            (closeness == best[members]) & (first + nearest < found[members])
        )
        best[members[is_closer]] = closeness[is_closer]
        found[members[is_closer]] = first + nearest[is_closer]


def cluster(read: ReadPoints, count: int, clusters: int) -> tuple[Points, NDArray[np.int64]]:
    """About `clusters` centres of `count` points, each the closest of some; the centre of each point."""
    dim = read(np.zeros(0, np.int64)).shape[1]
    if not count or clusters < 1:
        return np.zeros((0, dim), np.int8), np.zeros(count, np.int64)
    sample = read(_spread(count, min(SAMPLED_POINTS * clusters, _MOST_SAMPLED)))
    tree = grow(sample, min(clusters, len(sample)))
    found = np.empty(count, np.int64)
    for first in range(0, count, _BLOCK_POINTS):
        numbers = np.arange(first, min(first + _BLOCK_POINTS, count))
        found[numbers] = tree.nearest(read(numbers))
    used, renumbered = np.unique(found, return_inverse=True)
    return tree.centres[used], renumbered


def grow(points: Points, clusters: int) -> Tree:
    """About the square root of `clusters` groups, each with centres in proportion to its points."""
    top_count = max(1, round(clusters**0.5))
    tops = centres_of(points[_spread(len(points), 8 * SAMPLED_POINTS * top_count)], top_count)
    own = _nearest(points, tops)
    found, offsets = [np.zeros((0, points.shape[1]), np.int8)], [0]
    for top in range(len(tops)):
        members = points[own == top]
        wanted = round(clusters * len(members) / len(points))
        found.append(centres_of(members, max(1, wanted)) if len(members) else tops[:0])
        offsets.append(offsets[-1] + len(found[-1]))
    return Tree(tops, np.concatenate(found), np.array(offsets, np.int64))


def centres_of(points: Points, count: int) -> Points:
    """k-means: at most `count` centres, rounded to whole numbers; one that loses all its points stays.

    It begins with points that differ: of a text that is repeated all through a collection, thousands of equal
    centres would be compared with every point.
    """
    centres = _distinct(points[_spread(len(points), count)])
    for _ in range(ROUNDS):
        own = _nearest(points, centres)
        order, counts = np.argsort(own, kind="stable"), np.bincount(own, minlength=len(centres))
        has_points = counts > 0
        firsts = (np.cumsum(counts) - counts)[has_points]
        sums = np.add.reduceat(points[order], firsts, axis=0, dtype=np.int64)
        centres[has_points] = np.rint(sums / counts[has_points, None]).astype(np.int8)
    return centres


def _distinct(points: Points) -> Points:
    """The first of all that are equal, in their order."""
    return points[np.sort(np.unique(points, axis=0, return_index=True)[1])]


def _nearest(points: Points, centres: Points) -> NDArray[np.int64]:
    """``[point]`` the closest centre, of equals the first."""
    found = np.empty(len(points), np.int64)
    for first in range(0, len(points), _BLOCK_POINTS):
        block = points[first : first + _BLOCK_POINTS]
        found[first : first + _BLOCK_POINTS] = _closeness(block, centres).argmax(axis=1)
    return found


def _closeness(points: Points, centres: Points) -> NDArray[Any]:
    """``[point, centre]`` whole numbers that order centres by their distance, the closest highest."""
    exact: type[np.floating] = np.float32 if points.shape[1] <= _EXACT_DIM else np.float64
    columns: NDArray[Any] = centres.astype(exact).T
    scores: NDArray[Any] = (2 * points.astype(exact)) @ columns
    scores -= (columns * columns).sum(axis=0)
    return scores


def _spread(count: int, wanted: int) -> NDArray[np.int64]:
    """At most so many numbers below `count`, evenly spread."""
    wanted = min(count, wanted)
    return np.arange(wanted, dtype=np.int64) * count // max(1, wanted)
