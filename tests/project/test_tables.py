"""What the scripts of the paper's tables calculate themselves, against slow and obvious ways."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.project.figures import load_script

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.evaluation.open import asked_questions

pytest.importorskip("bm25s")


def articles(paragraphs: list[int]) -> list[SquadArticle]:
    """An article for each number, of one paragraph with so many questions."""
    return [
        SquadArticle(
            f"Article {place}",
            (
                SquadParagraph(
                    "text",
                    tuple(
                        SquadQuestion(f"{place}-{number}", "?", (SquadAnswer("text", 0),))
                        for number in range(count)
                    ),
                ),
            ),
        )
        for place, count in enumerate(paragraphs)
    ]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 40))
def test_a_spread_sample_is_even(paragraphs: list[int], count: int) -> None:
    given_articles = articles(paragraphs)
    every = [question.question_id for _, _, question in asked_questions(given_articles)]
    sample = load_script("experiments/tables/open_runs.py").spread(given_articles, count)
    kept = [question.question_id for _, _, question in asked_questions(sample)]
    assert len(kept) == min(count, len(every))
    places = [every.index(each) for each in kept]
    assert places == sorted(places)
    if len(kept) > 1:
        steps = np.diff(places)
        assert steps.max() - steps.min() <= 1


@given(st.lists(st.integers(0, 60), max_size=8))
def test_phrases_are_counted(words: list[int]) -> None:
    stored = SimpleNamespace(whole=lambda: np.array(words, np.uint32))
    snapshot = SimpleNamespace(segments=[SimpleNamespace(paragraph_words=stored)])
    expected = sum(
        1 for count in words for start in range(count) for end in range(start, min(count, start + 20))
    )
    assert load_script("experiments/tables/size.py").count_phrases(snapshot) == expected


@given(st.integers(1, 600), st.integers(1, 12))
def test_systems_take_turns_and_none_comes_right_after_another_with_its_questions(
    questions: int, systems: int
) -> None:
    """What one has read is in the caches: whoever is asked the same next would look faster."""
    rounds = list(load_script("benchmarks/query.py").rounds(questions, systems))
    for system in range(systems):
        asked = [place for shifts in rounds for place in shifts[system]]
        assert sorted(asked) == list(range(questions))
    if len(rounds) >= systems:
        for shifts in rounds:
            assert len({places.start for places in shifts}) == systems


def test_ratios_are_over_the_questions_that_both_were_asked() -> None:
    query = load_script("benchmarks/query.py")
    ours = query.Taken({0: 1.0, 1: 2.0, 2: 8.0}, {0: 1.0, 1: 1.0, 2: 1.0})
    few = query.Taken({2: 80.0}, {2: 3.0})
    found = query.ratios({query.OURS: ours, "few": few})
    assert found == {"few": {"wall": 10.0, "cpu": 3.0}}


def test_the_half_width_is_that_of_a_binomial() -> None:
    half_width = load_script("experiments/tables/open_runs.py").half_width
    assert half_width(50.0, 100) == pytest.approx(9.8)
    assert half_width(0.0, 100) == 0
