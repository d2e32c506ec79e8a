import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.search import evidence
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


def test_a_heading_is_no_part_of_a_sentence() -> None:
    text = "Backup\n\nBy Dr.\n\nThey run at\nnight. And by day"
    for part, sentence in (("night", "They run at\nnight."), ("By", "By Dr."), ("day", "And by day")):
        start_char = text.index(part)
        assert sentence_around(text, Span(start_char, start_char + len(part))).of(text) == sentence


@given(st.text(alphabet="aB1. !?\n\"'É", min_size=1), st.data())
def test_a_sentence_holds_its_span(text: str, data: st.DataObject) -> None:
    start_char = data.draw(st.integers(0, len(text) - 1))
    end_char = data.draw(st.integers(start_char + 1, len(text)))
    part = text[start_char:end_char]
    if part == part.strip():
        sentence = sentence_around(text, Span(start_char, end_char))
        assert sentence.start_char <= start_char
        assert end_char <= sentence.end_char


def plain_sentence(text: str, span: Span) -> Span:
    """By all borders of the text."""
    borders = list(evidence._borders(text, 0))
    start_char = max((border for border in borders if border <= span.start_char), default=0)
    end_char = min((border for border in borders if border >= span.end_char), default=len(text))
    sentence = text[start_char:end_char]
    start_char += len(sentence) - len(sentence.lstrip())
    return Span(start_char, start_char + len(sentence.strip()))


@given(st.text(alphabet="aB1. !?)\n\"'É", min_size=1, max_size=300), st.data())
def test_near_borders_are_the_right_ones(text: str, data: st.DataObject) -> None:
    start_char = data.draw(st.integers(0, len(text) - 1))
    span = Span(start_char, data.draw(st.integers(start_char + 1, len(text))))
    with pytest.MonkeyPatch.context() as patch:
        for look_back in (0, 1, 7, 240):
            patch.setattr(evidence, "_LOOK_BACK", look_back)
            assert sentence_around(text, span) == plain_sentence(text, span)


def test_of_a_sentence_without_end_only_what_is_near_is_shown() -> None:
    text = "item one, " * 500 + "the name of Ada Lovelace, " + "item two, " * 500
    start_char = text.index("Ada")
    span = Span(start_char, start_char + 12)
    near = sentence_around(text, span)
    assert "Ada Lovelace" in near.of(text)
    assert len(near) <= 12 + 2 * 300
    assert text[near.start_char - 1].isspace()  # cut between words
    assert text[near.end_char].isspace()
    assert len(sentence_around(text.replace(" ", ""), Span(2500, 2510))) <= 610


def test_sentences_end_in_other_scripts_too() -> None:
    text = "他出生于北京。他在上海工作！后来去了广州。"
    start_char = text.index("上海")
    assert sentence_around(text, Span(start_char, start_char + 2)).of(text) == "他在上海工作！"
