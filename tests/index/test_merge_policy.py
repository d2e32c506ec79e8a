"""What merging costs over many commits, from sizes alone: words copied, and segments there are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspi.index import MergePolicy
from denspi.index.manifest import Counts
from denspi.index.merge_policy import Size, due_merges, next_group

POLICY = MergePolicy()


def live_through(segments: list[int], commits: Sequence[int]) -> tuple[int, int]:
    """Words copied by merges, and the most segments there were, while commits of these words came in."""
    copied = most = 0
    for words in commits:
        segments.append(words)
        while run := next(due_merges([Size(Counts(1, 1, each), each) for each in segments], POLICY), None):
            together = sum(segments[run.start : run.stop])
            assert together <= POLICY.largest_words
            copied += together
            segments[run.start : run.stop] = [together]
        most = max(most, len(segments))
    return copied, most


@pytest.mark.parametrize(
    ("words", "commits"), [(1_000, 400), (1_000, 1_600), (20_000, 400), (1_000_000, 400)]
)
def test_equal_commits_are_copied_a_few_times_and_stay_few(words: int, commits: int) -> None:
    copied, most = live_through([], [words] * commits)
    assert copied <= 7 * words * commits
    assert most <= 14


@settings(max_examples=30)
@given(commits=st.lists(st.integers(1, 1_000_000), min_size=1, max_size=200))
def test_any_commits_are_copied_a_few_times_and_stay_few(commits: list[int]) -> None:
    """A word is copied once a level, and some more within the lowest; there are three of a level at most."""
    copied, most = live_through([], commits)
    levels = 1
    while POLICY.smallest_words * POLICY.fanout ** (levels - 1) < sum(commits):
        levels += 1
    lowest = sum(min(each, POLICY.smallest_words) for each in commits)
    assert copied <= levels * sum(commits) + 8 * lowest
    # Larger ones split the runs of smaller ones: three of each level, next to each larger one.
    assert most <= 3 * (levels + 1) * (levels + 1)


def test_small_commits_do_not_pull_in_a_large_neighbour() -> None:
    large = 3_900_000
    copied, _ = live_through([large], [100] * 12)
    assert copied < large / 100
    assert list(due_merges([Size(Counts(1, 1, each), each) for each in (90_000_000, 1, 1, 1)], POLICY)) == []


def test_what_does_not_fit_together_merges_in_parts() -> None:
    """Five of 24 million words: four fit below the largest segment."""
    sizes = [Size(Counts(1, 1, each), each) for each in [24_000_000] * 5]
    assert next(due_merges(sizes, POLICY)) == range(4)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=80), st.integers(2, 16))
def test_groups_become_one_segment_and_the_last_merge_takes_as_many_as_it_may(
    words: list[int], most: int
) -> None:
    while len(words) > 1:
        group = next_group(words, most)
        assert 2 <= len(group) <= most
        if len(words) > most:  # no window of this length has fewer words, and none is longer than needed
            sums = [sum(words[n : n + len(group)]) for n in range(len(words) - len(group) + 1)]
            assert sums[group.start] == min(sums)
            assert len(words) - len(group) + 1 >= most
        else:
            assert len(group) == len(words)
        words = [*words[: group.start], sum(words[group.start : group.stop]), *words[group.stop :]]
    assert next_group(words, most) == range(1)
