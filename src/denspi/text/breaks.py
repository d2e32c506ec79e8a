"""Blank lines inside a paragraph, such as the one between a heading and the text that it opens. Pure.

What stands on either side belongs together by its topic, but no phrase and no sentence reaches across.
"""

from __future__ import annotations

import re

BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")


def breaks_in(text: str) -> list[int]:
    """Where the text goes on behind each blank line, in characters."""
    return [found.end() for found in BLANK_LINE.finditer(text)] if "\n" in text else []
