"""The sample corpus keeps its promises: enough of it, well formed, every answer findable in its article."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from importlib import resources

import pytest

from denspi.corpus import read_corpus
from denspi.sample import sample_articles_path, sample_questions, sample_unanswerable_questions
from denspi.types import Document

DATA_FILES = ("articles.jsonl", "questions.jsonl", "unanswerable.jsonl")

NOT_TEXT = {"Cc", "Cf", "Cn", "Co", "Cs"}  # control, invisible, unassigned, private and lone surrogates
LONGEST_ANSWER_WORDS = 6
PARAGRAPH_WORDS = range(50, 111)


def repeated(values: list[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


@pytest.fixture(scope="module")
def articles() -> dict[str, Document]:
    items = read_corpus(sample_articles_path(), strict=True)
    documents = [item for item in items if isinstance(item, Document)]
    assert not repeated([document.document_id for document in documents])
    return {document.document_id: document for document in documents}


@pytest.mark.parametrize("name", DATA_FILES)
def test_every_line_is_a_json_object_of_clean_text(name: str) -> None:
    text = resources.files("denspi.sample").joinpath(name).read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert unicodedata.is_normalized("NFC", text)
    for line in text.removesuffix("\n").split("\n"):
        row = json.loads(line)
        assert isinstance(row, dict)
        for value in row.values():
            for string in value if isinstance(value, list) else [value]:
                categories = {unicodedata.category(c) for c in string.replace("\n\n", "")}
                assert not categories & NOT_TEXT, (row["id"], categories)
                assert "\N{REPLACEMENT CHARACTER}" not in string
                assert string.strip() == string != ""
                assert "  " not in string


def test_there_is_enough_of_it(articles: dict[str, Document]) -> None:
    assert len(articles) >= 60
    assert len(sample_questions()) >= 150
    assert len(sample_unanswerable_questions()) >= 20
    assert len({document.metadata["topic"] for document in articles.values()}) >= 20


def test_articles_have_two_to_four_short_paragraphs(articles: dict[str, Document]) -> None:
    for document in articles.values():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", document.document_id)
        paragraphs = list(document.paragraph_texts())
        assert 2 <= len(paragraphs) <= 4, document.document_id
        assert "\n\n".join(paragraphs) == document.text
        for paragraph in paragraphs:
            assert len(paragraph.split()) in PARAGRAPH_WORDS, (document.document_id, paragraph)


def test_nothing_is_said_twice(articles: dict[str, Document]) -> None:
    assert not repeated([document.title for document in articles.values()])
    assert not repeated([text for document in articles.values() for text in document.paragraph_texts()])
    questions = [sample.question for sample in sample_questions()] + list(sample_unanswerable_questions())
    assert not repeated([question.question_id for question in questions])
    assert not repeated([question.text.casefold() for question in questions])


def test_every_answer_stands_in_its_article_as_whole_words(articles: dict[str, Document]) -> None:
    for sample in sample_questions():
        text = articles[sample.document_id].text
        assert sample.question.answers, sample
        assert not repeated(list(sample.question.answers)), sample
        for answer in sample.question.answers:
            assert re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text), (sample, answer)
            assert len(answer.split()) <= LONGEST_ANSWER_WORDS, (sample, answer)


def test_every_article_is_asked_about(articles: dict[str, Document]) -> None:
    assert {sample.document_id for sample in sample_questions()} == set(articles)


def test_questions_look_like_questions() -> None:
    questions = [sample.question for sample in sample_questions()] + list(sample_unanswerable_questions())
    for question in questions:
        assert question.text.endswith("?")
        assert len(question.text.split()) >= 3


def test_no_question_gives_its_answer_away() -> None:
    for sample in sample_questions():
        for answer in sample.question.answers:
            assert not re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", sample.question.text), sample


def test_unanswerable_questions_carry_no_answers() -> None:
    assert all(not question.answers for question in sample_unanswerable_questions())


def test_the_text_exercises_tokenisation(articles: dict[str, Document]) -> None:
    text = "".join(document.text for document in articles.values())
    names = {"Skłodowska", "Żelazowa Wola", "São Paulo", "Ångström", "Tōkaidō", "Saint-Rémy-de-Provence"}
    signs = {"°C", "%", "−", "£", "½", "π²/6", "10⁻¹⁰", "ㄱ"}
    assert not [piece for piece in names | signs if piece not in text]
