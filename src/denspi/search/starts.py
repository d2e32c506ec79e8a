"""Where dense_first gets its starts from. Today a scan of all start rows; a vector index fits in here."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Numbers, split_by_segment
from denspi.search.kernels import NO_ROW
from denspi.search.view import SearchView


class StartSource(Protocol):
    """Whatever proposes starts for a question. It may miss some; candidates are scored from stored rows."""

    def top_starts(self, view: SearchView, question: AskedQuestion, count: int) -> list[tuple[int, Numbers]]:
        """Start rows with the highest start scores, ascending, of each segment that has any."""


class FlatStarts:
    """All start rows, exactly: the `count` highest scores, of equals the earlier rows."""

    def top_starts(self, view: SearchView, question: AskedQuestion, count: int) -> list[tuple[int, Numbers]]:
        """A row among the best lies in a paragraph whose best row is among the best."""
        maxima = [question.maxima(view, segment) for segment in view.segments]
        threshold = _nth_highest(np.concatenate([np.zeros(0, np.int32), *maxima]), count)
        rows, scores, segments = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for number, (segment, highest) in enumerate(zip(view.segments, maxima, strict=True)):
            paragraphs = np.flatnonzero((highest >= threshold) & (highest > NO_ROW))
            side, weights = segment.reader.starts, question.fixed.start_weights
            codes = side.codes.within(side.offsets[paragraphs], side.offsets[paragraphs + 1])
            found = view.kernels.reaching(codes, side.offsets, weights, paragraphs, threshold)
            rows.append(found[0])
            scores.append(found[1])
            segments.append(np.full(len(found[0]), number, np.int64))
        # The rows come in order, and of equal scores the first stay first.
        order = np.argsort(-np.concatenate(scores).astype(np.int64), kind="stable")[: max(0, count)]
        return split_by_segment(np.concatenate(segments)[order], np.concatenate(rows)[order])


def start_source(view: SearchView) -> StartSource:
    """What proposes starts in this view."""
    return FlatStarts()


def _nth_highest(values: NDArray[np.int32], n: int) -> int:
    """`NO_ROW` where there are fewer."""
    return int(np.partition(values, len(values) - n)[len(values) - n]) if 0 < n <= len(values) else NO_ROW
