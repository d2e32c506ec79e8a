"""Files of questions: one a line, JSON (Lines or a list) with ``question`` and perhaps ``id``, or SQuAD's.

The content tells which; .gz and .bz2 are read as they are. One line that cannot be used refuses the file: an
answer that is missing would be noticed too late.
"""

from __future__ import annotations

import json
from pathlib import Path

from denspi.corpus.encoding import decode_all
from denspi.corpus.files import UnreadableError, stream_bytes
from denspi.corpus.folders import PathLike, existing_paths, shown
from denspi.corpus.squad import read_squad
from denspi.errors import InputError
from denspi.types import Question

LARGEST_FILE_BYTES = 512 << 20


def read_questions(path: PathLike) -> list[Question]:
    """The questions of a file, in order. The id is the file's own, else the number of the line, from 1."""
    (found,) = existing_paths(path)
    name = shown(found)
    try:
        with Path(found).open("rb") as file:
            text = decode_all(stream_bytes(file, lambda _: None).read_all(LARGEST_FILE_BYTES))
    except OSError as error:
        raise InputError(f"{name}: cannot be opened: {error.strerror}") from error
    except UnreadableError as error:
        raise InputError(f"{name}: {error}") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line and not line.isspace()]
    if not lines:
        raise InputError(f"{name}: holds no question")
    first = lines[0][1].lstrip()
    if first.startswith("[") and (listed := _listed(text)) is not None:
        return [_of_fields(each, f"{name}, question {n}", str(n)) for n, each in enumerate(listed, 1)]
    if not first.startswith("{"):
        return [Question(str(number), line.strip()) for number, line in lines]
    if '"data"' in text and not _has_question(first):
        return _of_squad(found)
    return [_of_object(line, f"{name}:{number}", str(number)) for number, line in lines]


def _of_squad(path: Path) -> list[Question]:
    found = [
        Question(question.question_id, question.text, tuple(answer.text for answer in question.answers))
        for article in read_squad(path)
        for paragraph in article.paragraphs
        for question in paragraph.questions
    ]
    if not found:
        raise InputError(f"{shown(path)}: holds no question")
    return found


def _has_question(line: str) -> bool:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "question" in fields


def _of_object(line: str, place: str, default_id: str) -> Question:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); write an object with 'question'") from None
    return _of_fields(fields, place, default_id)


def _listed(text: str) -> list[object] | None:
    """What a file holds that is one JSON list; None where it is none, but lines that begin with a bracket."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and found else None


def _of_fields(fields: object, place: str, default_id: str) -> Question:
    if isinstance(fields, str):
        return Question(default_id, fields)
    text = fields.get("question") if isinstance(fields, dict) else None
    if not isinstance(text, str):
        raise InputError(f"{place}: has no text under 'question'; write an object with 'question'")
    assert isinstance(fields, dict)
    question_id = fields.get("id", default_id)
    if isinstance(question_id, bool) or not isinstance(question_id, str | int):
        raise InputError(f"{place}: field 'id' is neither a text nor a whole number")
    return Question(str(question_id), text)
