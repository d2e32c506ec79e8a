"""Paragraphs as exact, stripped, non-empty character spans of the original text. Pure.

Blank lines, form feeds and Unicode paragraph separators always end a paragraph. A single line end does so
where the lines cannot be hard-wrapped prose: see `split_paragraphs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from denspi.types import Span

# No editor or mail client wraps wider than this; a longer line is a paragraph of its own.
WIDEST_WRAP_CHARS = 120
NARROWEST_WRAP_CHARS = 40
FULL_LINES_OF_WRAPPED_TEXT = 0.75

_BREAK_SIGNS = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_LINE = re.compile(rf"\S(?:[^{_BREAK_SIGNS}]*\S)?")
_LINE_END = re.compile(r"\r\n|[\n\r\x0b\x85\u2028]")
_ALWAYS_A_BORDER = re.compile("[\x0c\x1c-\x1e\u2029]")
_SENTENCE_ENDS = (".", "!", "?", ":", "。", "！", "？")


def split_paragraphs(text: str) -> tuple[Span, ...]:
    """The paragraphs of `text`, in order; what lies between them is white space only.

    Blank lines separate. Lines without a blank line between them are paragraphs of their own if one is
    longer than any hard wrap, or if the text has no blank line at all and they do not look hard-wrapped
    (`_look_wrapped`); otherwise they belong together: wrapped prose, a list, an address, a poem.
    """
    blocks = _blocks(text)
    paragraphs: list[Span] = []
    for lines in blocks:
        if _has_line_beyond_wrapping(lines) or (len(blocks) == 1 and not _look_wrapped(text, lines)):
            paragraphs.extend(lines)
        else:
            paragraphs.append(Span(lines[0].start_char, lines[-1].end_char))
    return tuple(paragraphs)


def join_paragraphs(paragraphs: Iterable[str]) -> tuple[str, tuple[Span, ...]]:
    """One text with blank lines between the paragraphs, and where each stands in it; blank ones vanish."""
    pieces: list[str] = []
    spans: list[Span] = []
    start_char = 0
    for paragraph in paragraphs:
        if not paragraph or paragraph.isspace():
            continue
        pieces.append(paragraph)
        spans.append(Span(start_char, start_char + len(paragraph)))
        start_char += len(paragraph) + 2
    return "\n\n".join(pieces), tuple(spans)


def _blocks(text: str) -> list[list[Span]]:
    """Runs of non-blank lines (stripped) with no blank line or other border between them."""
    blocks: list[list[Span]] = []
    previous_end = 0
    for match in _LINE.finditer(text):
        start, end = match.span()
        if not blocks or _is_border(text[previous_end:start]):
            blocks.append([])
        blocks[-1].append(Span(start, end))
        previous_end = end
    return blocks


def _is_border(gap: str) -> bool:
    """Whether the white space between two lines holds a blank line or a sign that always separates."""
    if gap == "\n":
        return False
    return len(_LINE_END.findall(gap)) > 1 or _ALWAYS_A_BORDER.search(gap) is not None


def _has_line_beyond_wrapping(lines: Sequence[Span]) -> bool:
    return any(len(line) > WIDEST_WRAP_CHARS for line in lines)


def _look_wrapped(text: str, lines: Sequence[Span]) -> bool:
    """Whether most lines end because the next word did not fit the width, and not because a sentence did."""
    width = max(len(line) for line in lines)
    if len(lines) < 2 or not NARROWEST_WRAP_CHARS <= width <= WIDEST_WRAP_CHARS:
        return False
    full = 0
    for line, following in pairwise(lines):
        next_word = following.of(text).split(maxsplit=1)[0]
        ends_a_sentence = text.endswith(_SENTENCE_ENDS, line.start_char, line.end_char)
        full += len(line) + 1 + len(next_word) > width and not ends_a_sentence
    return full >= FULL_LINES_OF_WRAPPED_TEXT * (len(lines) - 1)
