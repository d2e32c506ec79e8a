"""The place of a known answer in a paragraph and the sentence around it, for showing. Pure.

Sentences are only ever cut for the reader's eye: nothing is indexed or scored by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from denspi.text.breaks import BLANK_LINE
from denspi.types import Span

# An end mark, closing quotes or brackets, white space, and what can open a sentence; or a blank line.
_SENTENCE_END = re.compile(
    r"[.!?…][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])|[。！？][\"'”’）」』]*|" + BLANK_LINE.pattern
)
# What ends in a full stop without ending a sentence: an initial ("J. S. Bach") and a few titles.
_NOT_AN_END = re.compile(r"(?:\b[^\W\d_]|\b(?:Dr|Mr|Mrs|Ms|St|No|vs|ca|approx))\.\s+$")
_SPACE = re.compile(r"\s+")

_LOOK_BACK = 240
_MOST_AROUND = 300
"""Characters on either side of a span: a list without full stops can go on for pages."""


def find_answer(text: str, answers: Iterable[str]) -> Span | None:
    """Where the first of `answers` that stands in `text` as whole words does so; case does not count."""
    for answer in answers:
        found = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, flags=re.IGNORECASE) if answer else None
        if found:
            return Span(*found.span())
    return None


def sentence_around(text: str, span: Span) -> Span:
    """The sentence of `text` that holds `span`, or the sentences if it reaches over several.

    Of a very long one, what is near.
    """
    start_char = _last_border(text, span.start_char)
    end_char = next((b for b in _borders(text, start_char) if b >= span.end_char), len(text))
    start_char, end_char = _nearby(text, span, start_char, end_char)
    sentence = text[start_char:end_char]
    start_char += len(sentence) - len(sentence.lstrip())
    return Span(start_char, start_char + len(sentence.strip()))


def _nearby(text: str, span: Span, start_char: int, end_char: int) -> tuple[int, int]:
    """The stretch, cut between words where it goes on for too long."""
    if span.start_char - start_char > _MOST_AROUND:
        start_char = span.start_char - _MOST_AROUND
        space = _SPACE.search(text, start_char, span.start_char)
        start_char = space.end() if space else start_char
    if end_char - span.end_char > _MOST_AROUND:
        end_char = span.end_char + _MOST_AROUND
        spaces = list(_SPACE.finditer(text, span.end_char, end_char))
        end_char = spaces[-1].start() if spaces else end_char
    return start_char, end_char


def _last_border(text: str, before_char: int) -> int:
    """The last end of a sentence up to there. Most sentences are short: what is near is looked at first."""
    found = 0
    for begin in (max(0, before_char - _LOOK_BACK), 0):
        for border in _borders(text, begin):
            if border > before_char:
                break
            found = border
        if found or not begin:
            break
    return found


def _borders(text: str, begin: int) -> Iterator[int]:
    """Where sentences end whose end marks stand from `begin` on. Each mark is looked at by itself."""
    for found in _SENTENCE_END.finditer(text, begin):
        # The longest of the titles and a sign before it are all that can matter.
        is_break = BLANK_LINE.search(found[0])
        if is_break or not _NOT_AN_END.search(text[max(0, found.start() - 8) : found.end()]):
            yield found.end()
