"""Blank lines inside a paragraph: where they are, and that no phrase is numbered across one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.text.breaks import breaks_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("one line", []),
        ("wrapped\nprose", []),
        ("heading\n\ntext", [9]),
        ("heading\n \t\n  text\n\n\nmore", [13, 20]),
    ],
)
def test_where_text_goes_on(text: str, expected: list[int]) -> None:
    assert breaks_in(text) == expected


@given(st.text(alphabet="ab \n\t", max_size=60))
def test_every_blank_line_is_found(text: str) -> None:
    """Two neighbouring words have a break between them just where a blank line lies there."""
    breaks = np.array(breaks_in(text))
    words = [place for place, sign in enumerate(text) if sign in "ab"]
    for first, second in pairwise(words):
        has_blank_line = "\n\n" in text[first + 1 : second].replace(" ", "").replace("\t", "")
        assert ((breaks > first) & (breaks <= second)).any() == has_blank_line
