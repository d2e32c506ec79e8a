"""Where dense_first and hybrid get their starts from: lists of close rows, or a scan of all of them.

Lists are looked into where a segment has them and where many of its rows may be found; everything else is
scanned, which is exact. All scores are those of the stored rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Numbers, Reach, split_by_segment
from denspi.search.kernels import NO_ROW
from denspi.search.view import SearchView, SegmentView

SCAN_BELOW = 1 << 17
"""So few start rows that may be found are scanned: a filter would leave little in the lists."""
Found = tuple[Numbers, NDArray[np.int32]]
"""Rows of a segment and their scores."""


class StartSource(Protocol):
    """Whatever proposes starts for a question. It may miss some; candidates are scored from stored rows."""

    def top_starts(self, view: SearchView, question: AskedQuestion) -> list[tuple[int, Numbers]]:
        """Start rows with the highest start scores, ascending, of each segment that has any."""


@dataclass(frozen=True, slots=True)
class ListedStarts:
    """The highest scores in the closest lists and in all scanned segments, of equals the earlier rows.

    `reach` says how many lists, over all segments together; of equally close ones a few more. Where
    rows are forbidden there are more of them, until about as many rows are looked at: what a filter allows
    may lie in lists that are far from the question.
    """

    reach: Reach
    scan_below: int = SCAN_BELOW

    def top_starts(self, view: SearchView, question: AskedQuestion) -> list[tuple[int, Numbers]]:
        """One threshold for all segments: what reaches it holds the best rows."""
        count = self.reach.starts
        if count < 1:
            return []
        listed = self._in_lists(view, question)
        scanned = {n: question.maxima(view, s) for n, s in enumerate(view.segments) if n not in listed}
        known = [*(scores for _, scores in listed.values()), *scanned.values()]
        threshold = _nth_highest(np.concatenate([np.zeros(0, np.int32), *known]), count)
        found = [
            _at_least(threshold, *listed[number])
            if number in listed
            else _reaching(view, question, segment, scanned[number], threshold)
            for number, segment in enumerate(view.segments)
        ]
        segments = np.repeat(np.arange(len(found)), [len(rows) for rows, _ in found])
        rows = np.concatenate([np.zeros(0, np.int64), *(each[0] for each in found)])
        scores = np.concatenate([np.zeros(0, np.int64), *(each[1] for each in found)])
        # The rows come in order, and of equal scores the first stay first.
        order = np.argsort(-scores, kind="stable")[:count]
        return split_by_segment(segments[order], rows[order])

    def _in_lists(self, view: SearchView, question: AskedQuestion) -> dict[int, Found]:
        """Of each segment that is not scanned: the rows of its closest lists, and their scores."""
        weights, close = question.fixed.start_weights, {}
        for number, segment in enumerate(view.segments):
            lists = segment.reader.start_lists
            if lists is not None and is_probed(segment, self.scan_below):
                close[number] = view.kernels.row_scores(lists.centres.whole(), weights, np.arange(len(lists)))
        found = {}
        for number, rows in self._closest(view, close).items():
            codes = view.segments[number].reader.starts.codes.within(rows, rows + 1)
            found[number] = rows, view.kernels.row_scores(codes, weights, rows)
        return found

    def _closest(self, view: SearchView, close: dict[int, NDArray[np.int32]]) -> dict[int, Numbers]:
        """The rows that may be found of the closest lists, by the scores of all lists of each segment."""
        if not close:
            return {}
        scores = np.concatenate(list(close.values()))
        stored = sum(view.segments[number].reader.counts.starts for number in close)
        allowed = sum(view.segments[number].allowed_start_count for number in close)
        wanted = self.reach.probes_of(len(scores))
        probes = max(1, -(-wanted * stored // max(1, allowed)))
        enough = min(allowed, wanted * stored // len(scores)) // 2
        while True:
            threshold, found = _nth_highest(scores, probes), {}
            for number, of_lists in close.items():
                lists = view.segments[number].reader.start_lists
                assert lists is not None
                rows = lists.rows_of(np.flatnonzero(of_lists >= threshold))
                found[number] = view.segments[number].allowed_of(rows)
            if probes >= len(scores) or allowed == stored or sum(map(len, found.values())) >= enough:
                return found
            probes *= 2


def is_probed(segment: SegmentView, scan_below: int = SCAN_BELOW) -> bool:
    """Whether its lists are looked into; otherwise all its start rows that may be found are scanned."""
    return segment.reader.start_lists is not None and segment.allowed_start_count >= max(1, scan_below)


def start_source(reach: Reach) -> StartSource:
    """What proposes starts."""
    return ListedStarts(reach)


def _at_least(threshold: int, rows: Numbers, scores: NDArray[np.int32]) -> Found:
    """The rows that score so much, in their order."""
    reaches = np.flatnonzero(scores >= threshold)
    order = reaches[np.argsort(rows[reaches])]
    return rows[order], scores[order]


def _reaching(
    view: SearchView,
    question: AskedQuestion,
    segment: SegmentView,
    highest: NDArray[np.int32],
    threshold: int,
) -> Found:
    """A row among the best lies in a paragraph whose best row is among the best."""
    paragraphs = np.flatnonzero((highest >= threshold) & (highest > NO_ROW))
    side, weights = segment.reader.starts, question.fixed.start_weights
    codes = side.codes.within(side.offsets[paragraphs], side.offsets[paragraphs + 1])
    return view.kernels.reaching(codes, side.offsets, weights, paragraphs, threshold)


def _nth_highest(values: NDArray[np.int32], n: int) -> int:
    """`NO_ROW` where there are fewer."""
    return int(np.partition(values, len(values) - n)[len(values) - n]) if 0 < n <= len(values) else NO_ROW
