"""Paragraphs above the limit are cut into parts that lose nothing but white space."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from denspi.build.long_paragraphs import with_short_paragraphs
from denspi.corpus import split_paragraphs
from denspi.types import Document, Span

TEXTS = st.text(st.sampled_from("ab.! \n\t。é"), max_size=300)


def document_of(text: str) -> Document:
    return Document("d", "D", text, split_paragraphs(text))


@given(TEXTS, st.integers(1, 60))
def test_no_character_is_lost_and_no_part_is_too_long(text: str, longest_chars: int) -> None:
    document = document_of(text)
    short = with_short_paragraphs(document, longest_chars)
    assert all(0 < len(span) <= longest_chars for span in short.paragraphs)
    whole = "".join(document.paragraph_texts())
    assert re.sub(r"\s", "", "".join(short.paragraph_texts())) == re.sub(r"\s", "", whole)
    for part in short.paragraph_texts():
        assert part == part.strip() != ""


@given(TEXTS)
def test_short_paragraphs_stay_as_they_are(text: str) -> None:
    document = document_of(text)
    assert with_short_paragraphs(document, 300) is document


def test_cut_behind_a_sentence_else_between_words_else_hard() -> None:
    def parts(text: str) -> list[str]:
        return list(
            with_short_paragraphs(Document("d", "D", text, (Span(0, len(text)),)), 20).paragraph_texts()
        )

    assert parts("one two three. four five six") == ["one two three.", "four five six"]
    assert parts("one two three four five six") == ["one two three four", "five six"]
    assert parts("x" * 45) == ["x" * 20, "x" * 20, "x" * 5]
