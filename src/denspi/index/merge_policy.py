"""Which segments to merge, from their sizes alone. Pure.

Copying a word is thousands of times cheaper than encoding it, while every segment costs each question a
little: so merge early. Four neighbours of one level become one, and the smaller ones among them too; a level
is a factor of four in words. Nothing larger is pulled in, so a word is copied about once a level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from denspi.index.manifest import Counts


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """When segments are merged by themselves."""

    fanout: int = 4  # so many neighbours of a level become one; also the ratio between levels
    smallest_words: int = 1 << 14  # segments below are all of the lowest level
    largest_words: int = 100_000_000  # no merge makes a larger segment
    most_deleted: float = 0.5  # a segment with a larger share of deleted words is written anew


@dataclass(frozen=True, slots=True)
class Size:
    """What the policy looks at."""

    live: Counts
    words: int  # deleted ones included


def due_merges(sizes: Sequence[Size], policy: MergePolicy) -> Iterator[range]:
    """Runs of neighbours to merge, the most urgent first; do one and ask again."""
    for number, size in enumerate(sizes):
        if size.words - size.live.words > policy.most_deleted * size.words or not size.live.documents:
            yield range(number, number + 1)
    words = [size.live.words for size in sizes]
    levels = [_level(each, policy) for each in words]
    for level in sorted(set(levels)):
        for first in range(len(sizes)):
            end = _end_of_run(first, level, levels, words, policy)
            if levels[first:end].count(level) >= policy.fanout:
                yield range(first, end)


def joined_runs(sizes: Sequence[Size], policy: MergePolicy) -> list[range]:
    """All segments in as few runs as `largest_words` allows: what a first build and `merge` ask for."""
    runs: list[range] = []
    first, words = 0, 0
    for number, size in enumerate(sizes):
        if number > first and words + size.live.words > policy.largest_words:
            runs.append(range(first, number))
            first, words = number, 0
        words += size.live.words
    if sizes:
        runs.append(range(first, len(sizes)))
    return runs


def next_group(words: Sequence[int], most: int) -> range:
    """Which neighbours of a run to merge first, where at most so many can be at once; do it and ask again.

    Those that have the fewest words together, and no more of them than are needed for the last merge to take
    all that is left: so a word is copied about once a level of a tree, and not with every further group.
    """
    size = len(words) if len(words) <= most else min(most, len(words) - most + 1)
    together = [sum(words[first : first + size]) for first in range(len(words) - size + 1)]
    first = together.index(min(together))
    return range(first, first + size)


def _end_of_run(
    first: int, level: int, levels: Sequence[int], words: Sequence[int], policy: MergePolicy
) -> int:
    """One past the last neighbour from `first` on that is not above the level and still fits with them."""
    end, together = first, 0
    while end < len(words) and levels[end] <= level and together + words[end] <= policy.largest_words:
        together += words[end]
        end += 1
    return end


def _level(words: int, policy: MergePolicy) -> int:
    level, bound = 0, policy.smallest_words
    while words > bound:
        level, bound = level + 1, bound * policy.fanout
    return level
