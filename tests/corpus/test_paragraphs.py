from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus import join_paragraphs, split_paragraphs

WRAPPED = (
    "The quick brown fox jumps over the lazy dog near the river bank and then\n"
    "runs on through the forest until the night falls and the moon comes out\n"
    "from behind the clouds to shine upon the quiet land below."
)
LONG_LINE = "A sentence that is much longer than anyone would wrap. " * 4


def texts_of(text: str) -> list[str]:
    return [span.of(text) for span in split_paragraphs(text)]


LAYOUT = st.sampled_from(
    [*list(" \t\n\r\x0c\x0b\x85\u2028\u2029\x1c"), "\r\n", "\n\n", "word", "Ein Satz.", "é", "𝔘"]
)


@given(st.one_of(st.text(), st.lists(LAYOUT).map("".join)))
def test_spans_are_stripped_ordered_and_cover_all_but_white_space(text: str) -> None:
    end_char = 0
    for span in split_paragraphs(text):
        assert not text[end_char : span.start_char].strip()
        assert span.of(text)
        assert span.of(text) == span.of(text).strip()
        end_char = span.end_char
    assert not text[end_char:].strip()


@given(st.lists(st.text()))
def test_joined_paragraphs_stand_where_their_spans_say(paragraphs: list[str]) -> None:
    text, spans = join_paragraphs(paragraphs)
    assert [span.of(text) for span in spans] == [paragraph for paragraph in paragraphs if paragraph.strip()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t\n", []),
        ("one", ["one"]),
        ("one\n\ntwo", ["one", "two"]),
        ("  one \r\n \t\r\n two\r\n", ["one", "two"]),
        ("one\ftwo", ["one", "two"]),
        ("one\u2029two\u2028", ["one", "two"]),
        ("one\rtwo", ["one", "two"]),
        ("a short line\nanother short line", ["a short line", "another short line"]),
        ("- milk\n- bread\n\nnext", ["- milk\n- bread", "next"]),
    ],
)
def test_borders(text: str, expected: list[str]) -> None:
    assert texts_of(text) == expected


def test_wrapped_lines_belong_together() -> None:
    assert texts_of(WRAPPED) == [WRAPPED]
    assert texts_of(f"{WRAPPED}\n\nThe next\none.") == [WRAPPED, "The next\none."]


def test_lines_beyond_any_wrap_are_paragraphs_even_among_blank_lines() -> None:
    line = LONG_LINE.strip()
    assert texts_of(f"{line}\n{line}") == [line, line]
    assert texts_of(f"{line}\n{line}\n\nend") == [line, line, "end"]


def test_one_sentence_a_line_is_not_wrapped() -> None:
    lines = [f"This is the sentence with the number {number} of a list of facts." for number in range(5)]
    assert texts_of("\n".join(lines)) == lines


def test_a_very_long_paragraph_stays_whole() -> None:
    text = "word " * 100_000
    assert texts_of(text) == [text.strip()]
