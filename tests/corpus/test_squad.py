from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from denspi.corpus import SquadAnswer, SquadQuestion, read_squad
from denspi.errors import InputError

QUESTIONS = [
    {"id": "q1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 1}]},
    {"id": "q2", "question": "Why?", "answers": [], "is_impossible": True, "plausible_answers": []},
]
CONTENT = {
    "version": "v2.0",
    "data": [
        {
            "title": "Ada_Lovelace",
            "paragraphs": [
                {"context": " Ada wrote.\n\nMuch. ", "qas": QUESTIONS},
                {"context": "Second.", "qas": []},
            ],
        }
    ],
}


def test_an_article_is_a_document_with_exact_contexts(read: Callable, write: Callable) -> None:
    document = read(write("dev.json.gz", gzip.compress(json.dumps(CONTENT).encode()))).only
    assert (document.document_id, document.title) == ("Ada_Lovelace", "Ada Lovelace")
    assert list(document.paragraph_texts()) == [" Ada wrote.\n\nMuch. ", "Second."]


def test_a_blank_context_is_skipped(read: Callable, write: Callable) -> None:
    contexts = [{"context": context, "qas": []} for context in ("First.", " \n", "Third.", "")]
    path = write("dev.json", json.dumps({"data": [{"title": "A_b", "paragraphs": contexts}]}))
    result = read(path)
    assert list(result.documents[0].paragraph_texts()) == ["First.", "Third."]
    assert [str(skipped) for skipped in result.skipped] == [
        f"{path}:A_b paragraph 2: empty",
        f"{path}:A_b paragraph 4: empty",
    ]


def test_questions_and_answers(write: Callable) -> None:
    (article,) = read_squad(write("dev.json", json.dumps(CONTENT)))
    first, second = article.paragraphs
    assert article.title == "Ada_Lovelace"
    assert first.questions == (
        SquadQuestion("q1", "Who?", (SquadAnswer("Ada", 1),)),
        SquadQuestion("q2", "Why?", ()),
    )
    assert (second.context, second.questions) == ("Second.", ())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[", "not JSON"),
        ("[]", "expected an object with 'data' at the file"),
        ('{"data": {}}', "expected a list at data"),
        ('{"data": [{"title": 3, "paragraphs": []}]}', r"expected a string at data\[0\].title"),
        (
            '{"data": [{"title": "a", "paragraphs": [{"context": "c"}]}]}',
            r"expected an object with 'qas' at data\[0\].paragraphs\[0\]",
        ),
    ],
)
def test_another_layout_is_refused(content: str, expected: str, read: Callable, write: Callable) -> None:
    path = write("other.json", content)
    with pytest.raises(InputError, match=rf"other\.json: .*{expected}"):
        read_squad(path)
    assert read(path, format="squad").skipped


def test_a_missing_or_cut_file_is_refused(write: Callable, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_squad(tmp_path / "gone.json")
    cut = gzip.compress(json.dumps(CONTENT).encode())[:-20]
    with pytest.raises(InputError, match=r"truncated \.gz"):
        read_squad(write("cut.json.gz", cut))


@pytest.mark.data
def test_squad_dev(data_dir: Path, read: Callable) -> None:
    path = data_dir / "squad" / "dev-v1.1.json.gz"
    result = read(path)
    assert not result.skipped
    assert len(result.documents) == 48
    assert sum(len(document.paragraphs) for document in result.documents) == 2067
    articles = read_squad(path)
    for document, article in zip(result.documents, articles, strict=True):
        assert list(document.paragraph_texts()) == [paragraph.context for paragraph in article.paragraphs]
    for paragraph in (paragraph for article in articles for paragraph in article.paragraphs):
        for answer in (answer for question in paragraph.questions for answer in question.answers):
            assert paragraph.context.startswith(answer.text, answer.start_char)


@pytest.mark.data
@pytest.mark.slow
def test_squad_train(data_dir: Path) -> None:
    articles = read_squad(data_dir / "squad" / "train-v1.1.json.gz")
    paragraphs = [paragraph for article in articles for paragraph in article.paragraphs]
    assert (len(articles), len(paragraphs)) == (442, 18_896)
    assert sum(len(paragraph.questions) for paragraph in paragraphs) == 87_599
