"""Slips are repaired, and nothing else is: against a vocabulary that the test knows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.search import spelling
from denspi.search.spelling import repair_question
from denspi.sparse.ngrams import bigram_id, count_ngrams, hash_word, unigram_id
from denspi.sparse.tfidf import UnitFrequencies

TEXTS = [
    "the houston ship channel serves a petrochemical complex",
    "the houston ship channel was dredged for larger vessels",
    "the government of japan measured daylight in kelvin",
    "the government of japan printed new banknotes",
    "trees lose their leaves and the river freezes",
    "trees lose their leaves beside the river banks",
] * 40
HELD = {word for text in TEXTS for word in text.split()}
WORDS = sorted(word for word in HELD if len(word) >= 4)
FREQUENCIES = UnitFrequencies.fit(TEXTS)
ENGLISH = {"boat", "house", "leases", "freeze", "serve"}  # what the model knows although no text holds it


def repair(text: str) -> str:
    return repair_question(text, FREQUENCIES, ENGLISH.__contains__, HELD.__contains__)


@pytest.mark.parametrize(
    ("slipped", "meant"),
    [
        ("What does the Housto ship channel serve?", "What does the Houston ship channel serve?"),
        ("What does the Houstonn ship channel serve?", "What does the Houston ship channel serve?"),
        ("the govrenment of Japan", "the government of Japan"),
        ("the goverment of jaapn?", "the government of japan?"),
        ("which tressl? leaves", "which tressl? leaves"),  # two edits away from anything
        ("RIEVR", "River"),
    ],
)
def test_slips(slipped: str, meant: str) -> None:
    assert repair(slipped) == meant


@pytest.mark.parametrize(
    "text",
    [
        "Where does the river freeze?",
        "Is there a boat or a house?",  # the model knows them: they may be right, though no text has them
        "leases",  # even beside a word that fits
        "rivr 1984x b2b",  # would be river, but the rest stays
        "rvr",  # too short to tell
        "Rivér",  # not plain letters
        "",
        "?!",
        "the of and",
    ],
)
def test_what_may_be_right_stays(text: str) -> None:
    assert repair(text) == text.replace("rivr", "river")


@given(st.lists(st.sampled_from([*WORDS, "the", "of", "1990", "Zürich"]), min_size=1, max_size=12))
def test_a_question_of_known_words_is_the_very_same(chosen: list[str]) -> None:
    text = "Which " + " ".join(chosen) + "?"
    assert repair(text) == text


@given(st.sampled_from(WORDS), st.data())
def test_one_edit_ends_at_a_word_of_the_texts_or_where_it_was(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(word) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
    slipped = data.draw(
        st.sampled_from(
            [
                word[:place] + word[place + 1 :],
                word[:place] + letter + word[place:],
                word[:place] + letter + word[place + 1 :],
            ]
        )
    )
    before, after = "  (Is the ", '" or not?)\t'
    repaired = repair(before + slipped + after)
    assert repaired.startswith(before)
    assert repaired.endswith(after)
    assert repaired[len(before) : -len(after)] in {*WORDS, slipped}


def test_neighbours_decide_between_words_that_fit_alike() -> None:
    texts = ["bright light", "left right", "a dark night"] * 40
    frequencies = UnitFrequencies.fit(texts)
    nothing, held = set[str](), set(" ".join(texts).split())
    # One edit leads from "xight" to light, right and night.
    for text, meant in (
        ("bright xight", "bright light"),
        ("left xight", "left right"),
        ("dark xight", "dark night"),
    ):
        assert repair_question(text, frequencies, nothing.__contains__, held.__contains__) == meant


def test_a_word_of_one_text_is_enough() -> None:
    text = "the lease was signed by Okafor"
    frequencies, held = UnitFrequencies.fit([text]), set(text.lower().split())
    for slipped, meant in (("Okafro's laese", "Okafor's lease"), ("leases", "lease"), ("xkafor", "xkafor")):
        assert repair_question(slipped, frequencies, set[str]().__contains__, held.__contains__) == meant


def test_an_id_that_another_word_has_is_no_word() -> None:
    def is_held(word: str) -> bool:
        return word != "river"

    assert repair_question("rievr", FREQUENCIES, ENGLISH.__contains__, is_held) == "rievr"


def test_who_slips_all_the_time_writes_another_language() -> None:
    assert repair("govrenment rievr tress jaapn") == "government river trees japan"
    text = "govrenment rievr tress jaapn housto"
    assert repair(text) == text


def test_an_index_with_most_ids_taken_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "BUCKETS", 4 * len(FREQUENCIES.table))
    assert repair("rievr") == "river"
    monkeypatch.setattr(spelling, "BUCKETS", 4 * len(FREQUENCIES.table) - 1)
    assert repair("rievr") == "rievr"


def test_the_ids_are_those_of_the_index() -> None:
    first, second = hash_word("ship"), hash_word("channel")
    expected = {unigram_id(first), unigram_id(second), bigram_id(first, second)}
    assert set(count_ngrams("ship channel").ids.tolist()) == expected
    assert np.array_equal(FREQUENCIES.table.look_up(np.array(sorted(expected), np.uint32))[0], [80, 80, 80])
