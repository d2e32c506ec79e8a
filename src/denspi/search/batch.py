"""What questions of a batch share: one pass over rows that each of them would read by itself.

Changes no answer: it only computes early what a strategy asks an `AskedQuestion` for, and asks it for the
same numbers if they are not there yet.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from denspi.search.asked import AskedQuestion, scan_ends, scan_starts
from denspi.search.candidates import Strategy
from denspi.search.exact import exact
from denspi.search.starts import is_probed
from denspi.search.strategies import dense_first, hybrid
from denspi.search.view import SearchView, SegmentView

QUESTIONS_AT_ONCE = 32
"""More gain little: their vectors no longer stay in the nearest cache."""
_FEWEST_FOR_ENDS = 8  # fewer scan only the ends that they need, which are about two thirds of all


def scan_together(
    view: SearchView, questions: Sequence[AskedQuestion], search: Strategy, prove: bool = False
) -> dict[str, float]:
    """Milliseconds for each of the questions; nothing where there is but one, which scans by itself."""
    started, scanned = time.perf_counter(), 0
    for segment in view.segments if len(questions) > 1 else ():
        if _is_scanned(segment, search, prove):
            scan_starts(questions, view, segment)
            scanned += 1
        if search is exact and len(questions) >= _FEWEST_FOR_ENDS:
            scan_ends(questions, view, segment)
    return {"scan": 1000 * (time.perf_counter() - started) / len(questions)} if scanned else {}


def _is_scanned(segment: SegmentView, search: Strategy, prove: bool) -> bool:
    """Whether the strategy asks for the best start of every paragraph of a segment."""
    if search in (dense_first, hybrid):
        return prove or not is_probed(segment)
    return search is exact
