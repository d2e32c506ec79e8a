"""Which words the filter keeps."""

import numpy as np
import pytest

from denspi.dense.filter import FilterThresholds, filtered, kept_ends, kept_starts
from denspi.vectors import ParagraphVectors


@pytest.fixture
def paragraph() -> ParagraphVectors:
    words = 4
    rows = np.zeros((words, 2), np.float32)
    return ParagraphVectors(
        np.arange(words, dtype=np.int32),
        np.arange(1, words + 1, dtype=np.int32),
        rows,
        rows,
        rows,
        rows,
        can_start=np.array([True, True, False, True]),
        can_end=np.array([False, True, True, True]),
        start_logits=np.array([-1, 0.1, 9, 2], np.float32),
        end_logits=np.array([9, -3, 1, 0.3], np.float32),
    )


def test_words_at_or_above_the_threshold_are_kept_if_they_can_be(paragraph: ParagraphVectors) -> None:
    thresholds = FilterThresholds(float(np.float32(0.1)), 0.5)
    assert kept_starts(paragraph, thresholds).tolist() == [False, True, False, True]
    assert kept_ends(paragraph, thresholds).tolist() == [False, False, True, False]
    after = filtered(paragraph, thresholds)
    assert after.can_start.tolist() == [False, True, False, True]
    assert after.can_end.tolist() == [False, False, True, False]
    assert after.starts is paragraph.starts


def test_no_threshold_keeps_what_cannot_start_or_end(paragraph: ParagraphVectors) -> None:
    everything = FilterThresholds(-np.inf, -np.inf)
    assert kept_starts(paragraph, everything).tolist() == paragraph.can_start.tolist()
    assert kept_ends(paragraph, everything).tolist() == paragraph.can_end.tolist()
    nothing = FilterThresholds(np.inf, np.inf)
    assert not kept_starts(paragraph, nothing).any()
    assert not kept_ends(paragraph, nothing).any()


def test_a_threshold_is_a_number() -> None:
    with pytest.raises(ValueError, match="not a number"):
        FilterThresholds(np.nan, 0.0)
