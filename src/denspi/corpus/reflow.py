"""Printed lines (as a PDF gives them) back to paragraphs: lines joined, words cut at a line end mended. Pure.

A hyphen at a line end goes when the next line goes on in lower case, unless the same text writes that
word with its hyphen elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import quantiles

_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\xa0": " ", "\0": ""}
)
_PAGE_NUMBER = re.compile(r"[-–—\s]*(?:page\s+)?\d{1,4}(?:\s*(?:/|of)\s*\d{1,4})?[-–—\s]*", re.IGNORECASE)
_BULLET = re.compile(r"(?:[•◦▪●■–—*-]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+\S")
_CUT_WORD = re.compile(r"([^\W\d_]+)-$")
_WORD_START = re.compile(r"[^\W\d_]+")
_HYPHENATED = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_SENTENCE_END = re.compile(r"""[.!?:。！？]["'”’)\]]*$""")
SHORT_LINE = 0.8  # of the usual width: a line that ends a sentence before that ends its paragraph


def reflow(pages: Sequence[str]) -> list[str]:
    """The paragraphs of the pages; one may run on across a page border."""
    page_lines = [_body_lines(page) for page in pages]
    every_line = [line for lines in page_lines for line in lines if line]
    hyphenated = {word for line in every_line for word in _HYPHENATED.findall(line)}
    width = _usual_width(every_line)
    paragraphs: list[list[str]] = []  # of pieces to be put together
    previous = ""  # the line before, "" at a certain border
    for lines in page_lines:
        for number, line in enumerate(lines):
            if not line:
                previous = ""
                continue
            runs_on = previous and not _starts_paragraph(previous, line, width, at_page_top=number == 0)
            if runs_on:
                paragraphs[-1][-1] = _before(previous, line, hyphenated)
                paragraphs[-1].append(line)
            else:
                paragraphs.append([line])
            previous = line
    return ["".join(pieces) for pieces in paragraphs]


def _body_lines(page: str) -> list[str]:
    """The page's lines with clean spacing, without outer blank lines and a page number at top or bottom."""
    lines = [" ".join(line.split()) for line in page.translate(_LIGATURES).splitlines()]
    for edge in (0, -1):
        while lines and not lines[edge]:
            lines.pop(edge)
        if len(lines) > 1 and _PAGE_NUMBER.fullmatch(lines[edge]):
            lines.pop(edge)
            while lines and not lines[edge]:
                lines.pop(edge)
    return lines


def _usual_width(lines: Sequence[str]) -> float:
    """The width that a full line has: the upper quarter of all lines begins there."""
    return quantiles([len(line) for line in lines], n=4)[2] if len(lines) > 1 else 0.0


def _starts_paragraph(previous: str, line: str, width: float, *, at_page_top: bool) -> bool:
    if _CUT_WORD.search(previous) or line[0].islower():
        return False
    if at_page_top:
        return _SENTENCE_END.search(previous) is not None
    if _BULLET.match(line):
        return True
    return _SENTENCE_END.search(previous) is not None and len(previous) < SHORT_LINE * width


def _before(line: str, following: str, hyphenated: set[str]) -> str:
    """The line as it stands before the next of its paragraph: with a space, or with its word mended."""
    if line.endswith("\xad"):
        return line[:-1]
    cut, rest = _CUT_WORD.search(line), _WORD_START.match(following)
    if not cut or not rest:
        return f"{line} "
    keeps_hyphen = not rest[0][0].islower() or f"{cut[1]}-{rest[0]}" in hyphenated
    return line if keeps_hyphen else line[:-1]
