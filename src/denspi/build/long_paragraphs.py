"""A document whose paragraphs are all short enough to encode in bounded memory. Pure.

Prose never comes near the limit; a log without blank lines or a page without line ends does. Such a paragraph
becomes several, cut behind a sentence if there is one in the last half, else between words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from denspi.types import Document, Span

LONGEST_PARAGRAPH_CHARS = 20_000
"""About seven pages; at one piece a character still only 120 MB of vectors at work."""

_SENTENCE_END = re.compile(r"[.!?。！？]\s+|\n+")
_SPACE = re.compile(r"\s+")


def with_short_paragraphs(document: Document, longest_chars: int = LONGEST_PARAGRAPH_CHARS) -> Document:
    """The same text with no paragraph above `longest_chars`; the same document if there was none."""
    if all(len(span) <= longest_chars for span in document.paragraphs):
        return document
    spans = tuple(part for span in document.paragraphs for part in _parts(document.text, span, longest_chars))
    return replace(document, paragraphs=spans)


def _parts(text: str, span: Span, longest_chars: int) -> Iterator[Span]:
    start_char = span.start_char
    while start_char < span.end_char:
        end_char = span.end_char
        if end_char - start_char > longest_chars:
            end_char = _cut(text, start_char, start_char + longest_chars)
        part = text[start_char:end_char]
        leading = len(part) - len(part.lstrip())
        if part := part.strip():
            yield Span(start_char + leading, start_char + leading + len(part))
        start_char = end_char


def _cut(text: str, start_char: int, limit_char: int) -> int:
    """The last good place to cut before `limit_char`, in the second half so that parts are not tiny."""
    middle_char = (start_char + limit_char) // 2
    for pattern in (_SENTENCE_END, _SPACE):
        cut = 0
        for found in pattern.finditer(text, middle_char, limit_char):
            cut = found.end()
        if cut:
            return cut
    return limit_char
