from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus.questions import read_questions
from denspi.errors import InputError
from denspi.types import Question


def save(folder: Path, content: str | bytes) -> Path:
    path = folder / "questions"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_question_a_line(tmp_path: Path) -> None:
    path = save(tmp_path, "\ufeffWho?\r\n\r\n  What for? \n")
    assert read_questions(path) == [Question("1", "Who?"), Question("3", "What for?")]


def test_compressed(tmp_path: Path) -> None:
    path = save(tmp_path, gzip.compress('{"question": "Who?", "id": "a"}\n'.encode("utf-16")))
    assert read_questions(path) == [Question("a", "Who?")]


@pytest.mark.parametrize("indent", [None, 2])
def test_squad_with_its_answers(indent: int | None, tmp_path: Path) -> None:
    asked = [
        {"id": "a", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]},
        {"id": "b", "question": "Why?", "answers": []},
    ]
    content = {"data": [{"title": "t", "paragraphs": [{"context": "Ada.", "qas": asked}]}]}
    path = save(tmp_path, json.dumps(content, indent=indent))
    assert read_questions(path) == [Question("a", "Who?", ("Ada",)), Question("b", "Why?")]


def test_json_lines_may_hold_a_field_called_data(tmp_path: Path) -> None:
    path = save(tmp_path, '{"question": "Who?", "data": 1}\n')
    assert read_questions(path) == [Question("1", "Who?")]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1), st.booleans())
def test_json_lines_come_back_as_they_are(texts: list[str], escaped: bool) -> None:
    lines = [json.dumps({"id": n, "question": text}, ensure_ascii=escaped) for n, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        found = read_questions(save(Path(folder), "\n".join(lines)))
    assert found == [Question(str(number), text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"\n \n", "questions: holds no question"),
        (b"Who\xff?", "questions: not UTF-8 text (0xff at byte 3)"),
        (b'{"question": 5}', "questions:1: has no text under 'question'"),
        (b'{"question": "Who?"}\n[1]', "questions:2: has no text under 'question'"),
        (b'{"question": "Who?"}\n{', "questions:2: not JSON ("),
        (b'{"question": "Who?", "id": true}', "questions:1: field 'id' is neither a text nor a whole number"),
        (gzip.compress(b"Who?\n" * 999, mtime=0)[:30], "questions: truncated .gz"),
    ],
)
def test_what_cannot_be_used_is_one_line(content: bytes, finding: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read_questions(save(tmp_path, content))
    assert finding in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened: Is a directory"):
        read_questions(tmp_path)


def test_a_json_list_of_questions(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text('[{"question": "Who?", "id": "a"}, "When?"]')
    assert [(each.question_id, each.text) for each in read_questions(path)] == [("a", "Who?"), ("2", "When?")]
    path.write_text("[sic] is what?\n")
    assert [each.text for each in read_questions(path)] == ["[sic] is what?"]
    path.write_text('[{"asked": "Who?"}]')
    with pytest.raises(InputError, match="question 1: has no text under 'question'"):
        read_questions(path)
