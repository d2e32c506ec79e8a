import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.search.evidence import find_answer, sentence_around
from denspi.types import Span

TEXT = 'It opened in 1889. J. S. Bach never saw it! Dr. Eiffel said: "Yes." A lift was added in 1890.'


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["1889"], "1889"),
        (["j. s. bach"], "J. S. Bach"),
        (["188", "1890"], "1890"),  # not inside another word
        (["", "nowhere"], None),
        ([], None),
    ],
)
def test_find_answer(answers: list[str], expected: str | None) -> None:
    found = find_answer(TEXT, answers)
    assert (found and found.of(TEXT)) == expected


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("1889", "It opened in 1889."),
        ("Bach", "J. S. Bach never saw it!"),
        ("Eiffel", 'Dr. Eiffel said: "Yes."'),
        ("lift", "A lift was added in 1890."),
        ("1889. J", "It opened in 1889. J. S. Bach never saw it!"),
    ],
)
def test_sentence_around(part: str, sentence: str) -> None:
    start_char = TEXT.index(part)
    assert sentence_around(TEXT, Span(start_char, start_char + len(part))).of(TEXT) == sentence


@given(st.text(alphabet="aB1. !?\n\"'É", min_size=1), st.data())
def test_a_sentence_holds_its_span(text: str, data: st.DataObject) -> None:
    start_char = data.draw(st.integers(0, len(text) - 1))
    end_char = data.draw(st.integers(start_char + 1, len(text)))
    part = text[start_char:end_char]
    if part == part.strip():
        sentence = sentence_around(text, Span(start_char, end_char))
        assert sentence.start_char <= start_char
        assert end_char <= sentence.end_char
