from __future__ import annotations

import pytest

from denspi.errors import InputError
from denspi.search.questions import MAX_QUESTION_CHARS, clean_question, with_question_mark


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "empty"),
        (" \t\n\x00\x07 ", "empty"),
        ("\ud800", "empty"),
        ("?!…", "no word"),
        ("_", "no word"),
        ("a" * 100_000, "100,000 characters"),
        (7, "not int"),
        (b"who", "not bytes"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(text: str, finding: str) -> None:
    with pytest.raises(InputError, match=finding) as raised:
        clean_question(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Who wrote it?", "Who wrote it?"),
        ("  who\x00wrote\r\nit ", "who wrote it"),
        ("Кто это написал?", "Кто это написал?"),
        ("谁写的", "谁写的"),
        ("1889", "1889"),
        ("who \udc80 is it", "who   is it"),
        ("x" * MAX_QUESTION_CHARS, "x" * MAX_QUESTION_CHARS),
    ],
)
def test_everything_else_is_asked(text: str, cleaned: str) -> None:
    assert clean_question(text) == cleaned


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("danube source", "danube source?"),
        ("in 1990", "in 1990?"),
        ("Where?", "Where?"),
        ("Tell me.", "Tell me."),
        ("איפה", "איפה?"),
        ("أين؟", "أين؟"),
    ],
)
def test_the_model_reads_a_question_mark(text: str, read: str) -> None:
    assert with_question_mark(text) == read
