from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.text.windows import plan_windows, stitch


@given(st.integers(0, 2000), st.integers(1, 400), st.data())
def test_every_token_is_kept_exactly_once_with_the_best_context(
    count: int, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    windows = plan_windows(count, size, overlap)
    positions = np.arange(count)
    if not windows:
        assert count == 0
        return
    rows = [positions[w.start_token : w.end_token] for w in windows]
    assert stitch(windows, rows).tolist() == positions.tolist()
    for window in windows:
        assert window.end_token - window.start_token == min(size, count)
        assert window.start_token <= window.keep_start < window.keep_end <= window.end_token
    for left, right in pairwise(windows):
        assert left.end_token - right.start_token >= overlap
        # a kept token has at least half of the overlap as context on the inner side
        assert left.end_token - left.keep_end >= overlap // 2
        assert right.keep_start - right.start_token >= overlap // 2


def test_impossible_overlap_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot overlap"):
        plan_windows(10, 4, 4)
    with pytest.raises(ValueError, match="-3 tokens"):
        plan_windows(-3, 4, 2)
