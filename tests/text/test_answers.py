import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.text.answers import exact_match, f1, mean_scores, normalize_answer


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("a man, an owl and the theatre", "man owl and theatre"),
        ("U.S.", "us"),
        ("don't", "dont"),
        ("“quoted”", "“quoted”"),  # only ASCII punctuation is removed, as in the official script
        ("the", ""),
    ],
)
def test_normalisation(text: str, normalized: str) -> None:
    assert normalize_answer(text) == normalized


def test_exact_match_takes_any_reference() -> None:
    assert exact_match("the Denver Broncos", ["Carolina Panthers", "Denver Broncos"])
    assert not exact_match("Denver", ["Denver Broncos"])
    assert not exact_match("Denver", [])


def test_f1_by_hand() -> None:
    assert f1("the Denver Broncos team", ["Denver Broncos"]) == pytest.approx(0.8)  # 2/3 precision, 1 recall
    assert f1("new new york", ["new york"]) == pytest.approx(0.8)  # a repeated word counts once
    assert f1("x", ["y"]) == 0.0
    assert f1("", ["y"]) == 0.0
    assert f1("y", []) == 0.0


@given(st.text(), st.text())
def test_f1_is_symmetric_and_one_on_equality(left: str, right: str) -> None:
    assert f1(left, [right]) == pytest.approx(f1(right, [left]))
    if normalize_answer(left) and exact_match(left, [right]):
        assert f1(left, [right]) == pytest.approx(1.0)


def test_a_question_without_a_reference_is_left_out_of_the_means() -> None:
    asked = [("in Oslo", ("Oslo",)), ("a guess", ()), ("Lima", ("Lima",))]
    em, f1_mean = mean_scores([prediction for prediction, _ in asked], [answers for _, answers in asked])
    assert em == 50
    assert f1_mean == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert mean_scores(["a guess"], [()]) == (0, 0)
