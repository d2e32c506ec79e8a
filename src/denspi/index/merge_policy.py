"""Which segments to merge, from their sizes alone. Pure.

Copying a word is thousands of times cheaper than encoding it, while every segment costs each question a
little: so merge early. Neighbours of one level merge four at a time; a level is a factor of four in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from denspi.index.manifest import Counts


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """When segments are merged by themselves."""

    fanout: int = 4  # neighbours of a level that become one; also the ratio between levels
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
    levels = [_level(size.live.words, policy) for size in sizes]
    for level in sorted(set(levels)):
        run: list[int] = []
        for number, own in [*enumerate(levels), (len(levels), level + 1)]:
            if own <= level and number < len(levels):
                run.append(number)
                continue
            if len(run) >= policy.fanout and sum(sizes[n].live.words for n in run) <= policy.largest_words:
                yield range(run[0], run[-1] + 1)
            run = []


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


def _level(words: int, policy: MergePolicy) -> int:
    level, bound = 0, policy.smallest_words
    while words > bound:
        level, bound = level + 1, bound * policy.fanout
    return level
