"""Questions made from plain text ask for what they say, and nothing is made up twice."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiny import save_tokenizer

from denspi.errors import InputError
from denspi.text.tokens import Tokenizer
from denspi.training.cloze import cloze_examples, make_clozes
from denspi.training.examples import Limits

TEXT = (
    "The bridge was opened on 27 May 1937 by the engineer Joseph Strauss. It carries about 110,000 cars over "
    "the strait each day. Painters from Oakland keep its colour fresh in every season of the year."
)


def test_names_numbers_and_dates_are_asked_for() -> None:
    asked = {c.answer.of(TEXT): c.question for c in make_clozes(TEXT, random.Random(1), 10, drop=0.0)}
    assert set(asked) == {"27 May 1937", "Joseph Strauss", "110,000", "Oakland"}
    assert asked["27 May 1937"].split()[0] in {"when", "on", "The"}
    for answer, question in asked.items():
        assert answer not in question
        assert question.endswith("?")
    assert "engineer" in asked["Joseph Strauss"]


def test_words_are_dropped_at_the_given_rate() -> None:
    whole = make_clozes(TEXT, random.Random(1), 10, drop=0.0)
    thin = make_clozes(TEXT, random.Random(1), 10, drop=0.9)
    assert sum(len(c.question) for c in thin) < sum(len(c.question) for c in whole) / 2


@given(st.text(max_size=300), st.integers(0, 5))
def test_any_text_gives_spans_that_say_what_they_cover(text: str, most: int) -> None:
    clozes = make_clozes(text, random.Random(0), most)
    assert len(clozes) <= most
    assert len({c.answer for c in clozes}) == len(clozes)
    for cloze in clozes:
        assert cloze.answer.of(text).strip() == cloze.answer.of(text) != ""


def test_examples_of_a_corpus(tmp_path: Path) -> None:
    save_tokenizer(tmp_path / "tokenizer.json")
    tokenizer = Tokenizer(tmp_path / "tokenizer.json")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        "".join(json.dumps({"id": n, "text": f"{TEXT} Numbered {n}."}) + "\n" for n in range(20))
    )

    def made(paragraphs: int, seed: int) -> list[str]:
        examples = cloze_examples([corpus], tokenizer, Limits(200, 40), paragraphs, 2, seed)
        assert len(examples) == min(paragraphs, 20)
        for example in examples:
            assert len(example.questions) == 2
            for question in example.questions:
                first, length = question.gold[0]
                tokens = example.tokens
                cut = example.text[tokens.word_starts[first] : tokens.word_ends[first + length]]
                assert cut == question.answers[0]
        return [example.text[-4:] for example in examples]

    assert made(100, 1) == made(20, 1)
    assert made(5, 1) == made(5, 1) != made(5, 2)


def test_a_corpus_without_facts_is_one_clear_line(tmp_path: Path) -> None:
    save_tokenizer(tmp_path / "tokenizer.json")
    (tmp_path / "plain.txt").write_text(
        "nothing to ask for here, in words without names, again and again. " * 9
    )
    with pytest.raises(InputError, match=r"plain\.txt: no paragraph with a name, number or date"):
        cloze_examples([tmp_path / "plain.txt"], Tokenizer(tmp_path / "tokenizer.json"), Limits(), 5, 2, 1)
