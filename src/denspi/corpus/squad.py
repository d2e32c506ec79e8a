"""SQuAD's JSON layout: v1.1, and v2 with questions that have no answer.

`read_squad` gives the articles with their questions; `read_squad_documents` gives each article as a document
whose paragraphs are the contexts, character for character, with blank lines between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from denspi.corpus.encoding import decode_all
from denspi.corpus.files import ByteStream, CorpusFile, UnreadableError, stream_bytes
from denspi.corpus.folders import PathLike, existing_paths, shown
from denspi.corpus.paragraphs import join_paragraphs
from denspi.corpus.records import Item, Skipped
from denspi.errors import InputError
from denspi.types import Document

LARGEST_FILE_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class SquadAnswer:
    """An answer and where the file says that it starts in its paragraph's context."""

    text: str
    start_char: int


@dataclass(frozen=True, slots=True)
class SquadQuestion:
    """A question with the answers that count as right; none if the paragraph does not answer it (v2)."""

    question_id: str
    text: str
    answers: tuple[SquadAnswer, ...]


@dataclass(frozen=True, slots=True)
class SquadParagraph:
    """A paragraph exactly as in the file, and what is asked about it."""

    context: str
    questions: tuple[SquadQuestion, ...]


@dataclass(frozen=True, slots=True)
class SquadArticle:
    """An article; the title as in the file, with underscores."""

    title: str
    paragraphs: tuple[SquadParagraph, ...]


def read_squad(path: PathLike) -> list[SquadArticle]:
    """All articles of a file (.json, .json.gz or .json.bz2); `InputError` if it is not in SQuAD's layout."""
    (found,) = existing_paths(path)
    try:
        with Path(found).open("rb") as file:
            return parse_squad(stream_bytes(file, lambda _: None))
    except OSError as error:
        raise InputError(f"{shown(found)}: cannot be opened: {error.strerror}") from error
    except UnreadableError as error:
        raise InputError(f"{shown(found)}: {error}") from error


def read_squad_documents(file: CorpusFile, stream: ByteStream) -> Iterator[Item]:
    """One document an article; its id is the title as in the file, its title has the spaces restored."""
    for article in parse_squad(stream):
        text, spans = join_paragraphs(paragraph.context for paragraph in article.paragraphs)
        source = f"{file.source}:{article.title}"
        yield Document(article.title, article.title.replace("_", " "), text, spans, source)
        for number, paragraph in enumerate(article.paragraphs, start=1):
            if not paragraph.context.strip():
                yield Skipped(f"{source} paragraph {number}", "empty")


def parse_squad(stream: ByteStream) -> list[SquadArticle]:
    """The articles in a stream; `UnreadableError` says what was expected and where."""
    try:
        content = json.loads(decode_all(stream.read_all(LARGEST_FILE_BYTES)))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"not JSON ({error}); expected SQuAD's layout") from error
    articles = _list(_field(content, "data", "the file"), "data")
    return [_article(article, f"data[{number}]") for number, article in enumerate(articles)]


def _article(value: object, place: str) -> SquadArticle:
    title = _string(_field(value, "title", place), f"{place}.title")
    if not title:
        raise _unexpected(f"{place}.title", "a title")
    paragraphs = _list(_field(value, "paragraphs", place), f"{place}.paragraphs")
    return SquadArticle(
        title,
        tuple(_paragraph(item, f"{place}.paragraphs[{number}]") for number, item in enumerate(paragraphs)),
    )


def _paragraph(value: object, place: str) -> SquadParagraph:
    context = _string(_field(value, "context", place), f"{place}.context")
    questions = _list(_field(value, "qas", place), f"{place}.qas")
    return SquadParagraph(
        context, tuple(_question(item, f"{place}.qas[{number}]") for number, item in enumerate(questions))
    )


def _question(value: object, place: str) -> SquadQuestion:
    question_id = _string(_field(value, "id", place), f"{place}.id")
    text = _string(_field(value, "question", place), f"{place}.question")
    answers = _list(_field(value, "answers", place), f"{place}.answers")
    return SquadQuestion(
        question_id,
        text,
        tuple(_answer(item, f"{place}.answers[{number}]") for number, item in enumerate(answers)),
    )


def _answer(value: object, place: str) -> SquadAnswer:
    start_char = _field(value, "answer_start", place)
    if isinstance(start_char, bool) or not isinstance(start_char, int) or start_char < 0:
        raise _unexpected(f"{place}.answer_start", "a whole number")
    return SquadAnswer(_string(_field(value, "text", place), f"{place}.text"), start_char)


def _field(value: object, name: str, place: str) -> object:
    if not isinstance(value, dict) or name not in value:
        raise _unexpected(place, f"an object with {name!r}")
    return value[name]


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise _unexpected(place, "a list")
    return value


def _string(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _unexpected(place, "a string")
    return value


def _unexpected(place: str, expected: str) -> UnreadableError:
    return UnreadableError(f"not SQuAD's layout: expected {expected} at {place}")
