"""What a word and an n-gram are, and that their ids never change."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.sparse.ngrams import count_ngrams, hash_ngrams, name_ngrams, words
from denspi.sparse.stopwords import STOP_WORDS


def test_words() -> None:
    assert words("Beyoncé's 2nd album_title, don't!") == ["beyonce", "s", "2nd", "album", "title", "don", "t"]
    assert words("STRASSE Straße ŁÓDŹ") == ["strasse", "strasse", "łodz"]
    assert words("") == words("?! -- …") == []


@pytest.mark.parametrize("text", ["Beyoncé", "São Tomé", "Ångström", "İstanbul", "Ǖber ΐ", "한국 が"])
def test_composed_and_decomposed_text_are_the_same(text: str) -> None:
    assert words(unicodedata.normalize("NFC", text)) == words(unicodedata.normalize("NFD", text))


def test_accents_do_not_matter() -> None:
    assert words("Beyoncé Dvořák") == words("beyonce dvorak")


def test_stop_words_are_spelled_as_words_are() -> None:
    assert all(words(each) == [each] for each in STOP_WORDS)


def test_bigrams_reach_across_stop_words() -> None:
    named = set(name_ngrams("Who is the president of the United States?").values())
    assert named == {"president", "united", "states", "president united", "united states"}


def test_nothing_but_stop_words_keeps_them() -> None:
    assert set(name_ngrams("The Who").values()) == {"the", "who", "the who"}


def test_frozen_ids() -> None:
    """These are in every index ever built: if this fails, change `SCHEME`."""
    found = {name: ngram_id for ngram_id, name in name_ngrams("Warsaw Old Town, Beyoncé").items()}
    assert found == {
        "warsaw": 6439650,
        "old": 14535548,
        "town": 9892708,
        "beyonce": 2003330,
        "warsaw old": 9198663,
        "old town": 9078370,
        "town beyonce": 14953041,
    }


def test_ids_do_not_depend_on_the_process() -> None:
    program = (
        "from denspi.sparse.ngrams import count_ngrams; print(count_ngrams('Old Town of Łódź').ids.tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{count_ngrams('Old Town of Łódź').ids.tolist()}\n".encode()}


@given(st.text())
def test_agrees_with_the_slow_definition(slow_ngrams: Callable[[str], Counter[int]], text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    found = count_ngrams(text)
    assert dict(zip(found.ids.tolist(), found.counts.tolist(), strict=True)) == slow_ngrams(text)
    assert np.all(found.ids[1:] > found.ids[:-1])
    assert Counter(hash_ngrams([text])[0].tolist()) == slow_ngrams(text)
    assert set(name_ngrams(text)) == set(found.ids.tolist())


@given(st.lists(st.text(alphabet="ab the,é", max_size=30), max_size=6))
def test_many_texts_at_once_are_each_alone(texts: list[str]) -> None:
    ids, text_numbers = hash_ngrams(texts)
    for number, text in enumerate(texts):
        np.testing.assert_array_equal(np.sort(ids[text_numbers == number]), np.sort(hash_ngrams([text])[0]))


def test_a_lone_surrogate_is_no_failure() -> None:
    assert len(count_ngrams("a \ud800x b\udfff").ids)
