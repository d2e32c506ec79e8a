"""The place of a known answer in a paragraph and the sentence around it, for showing. Pure.

Sentences are only ever cut for the reader's eye: nothing is indexed or scored by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from denspi.types import Span

# An end mark, closing quotes or brackets, white space, and then something that can open a sentence.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])")
# What ends in a full stop without ending a sentence: an initial ("J. S. Bach") and a few titles.
_NOT_AN_END = re.compile(r"(?:\b[^\W\d_]|\b(?:Dr|Mr|Mrs|Ms|St|No|vs|ca|approx))\.\s+$")


def find_answer(text: str, answers: Iterable[str]) -> Span | None:
    """Where the first of `answers` that stands in `text` as whole words does so; case does not count."""
    for answer in answers:
        found = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, flags=re.IGNORECASE) if answer else None
        if found:
            return Span(*found.span())
    return None


def sentence_around(text: str, span: Span) -> Span:
    """The sentence of `text` that holds `span`, or the sentences if it reaches over several."""
    borders = [
        found.end()
        for found in _SENTENCE_END.finditer(text)
        # The longest of the titles and a sign before it are all that can matter.
        if not _NOT_AN_END.search(text[max(0, found.start() - 8) : found.end()])
    ]
    start_char = max((border for border in borders if border <= span.start_char), default=0)
    end_char = min((border for border in borders if border >= span.end_char), default=len(text))
    sentence = text[start_char:end_char]
    start_char += len(sentence) - len(sentence.lstrip())
    return Span(start_char, start_char + len(sentence.strip()))
