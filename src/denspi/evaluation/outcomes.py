"""What became of each question, kept in a file while an evaluation runs, so that it can go on later.

The file is JSON Lines: first what was evaluated, then an object for each question. Only whole lines count;
one that an interruption has cut is dropped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TextIO

from denspi.corpus.squad import SquadQuestion
from denspi.errors import InputError
from denspi.evaluation.recall import Reached


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question: its best answer, what that is worth, what it took, and how far the gold got."""

    question_id: str
    asked: str  # what the question and its reference answers were, see `fingerprint`
    prediction: str  # empty where there was no answer
    em: bool
    f1: float
    top_k_em: bool  # one of the k answers matches exactly
    seconds: float  # of a batch, its share
    is_alone: bool  # asked by itself, not in a batch
    documents: int  # visited
    recall: Mapping[str, Reached]  # by stage


_TYPES = {
    **dict.fromkeys(("question_id", "asked", "prediction"), str),
    **dict.fromkeys(("em", "top_k_em", "is_alone"), bool),
    **dict.fromkeys(("f1", "seconds", "documents"), int | float),
}


def fingerprint(question: SquadQuestion) -> str:
    """Tells a question from another that has its id in another file."""
    said = [question.question_id, question.text, *(answer.text for answer in question.answers)]
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=8).hexdigest()


class OutcomeFile:
    """Outcomes so far, and a place for more; a context manager that holds the file open."""

    def __init__(self, path: Path, about: Mapping[str, str | float]) -> None:
        """`about` says what is evaluated; a file about something else is refused."""
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        content = _read(path)
        lines = content[: content.rfind(b"\n") + 1].splitlines()
        if lines:
            self._check(lines[0], about)
            for number, line in enumerate(lines[1:], start=2):
                outcome = _parse(line, f"{path}:{number}")
                self.outcomes[outcome.question_id] = outcome
        elif content:
            raise InputError(f"{path}: not the state of an evaluation; name another file")
        try:
            os.truncate(path, content.rfind(b"\n") + 1) if content else None
            self._file: TextIO = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from error
        if not lines:
            self._write(dict(about))

    def of(self, questions: Iterable[SquadQuestion]) -> dict[str, Outcome]:
        """The outcomes of these very questions, by their ids; another file may use an id for another one."""
        prints = {question.question_id: fingerprint(question) for question in questions}
        return {name: each for name, each in self.outcomes.items() if prints.get(name) == each.asked}

    def add(self, outcome: Outcome) -> None:
        """Keep one more; it is in the file when this returns."""
        self.outcomes[outcome.question_id] = outcome
        self._write(dataclasses.asdict(outcome))

    def __enter__(self) -> OutcomeFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _write(self, fields: dict[str, object]) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()

    def _check(self, line: bytes, about: Mapping[str, str | float]) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.keys() != about.keys():
            raise InputError(f"{self.path}: not the state of an evaluation; name another file")
        for name, value in about.items():
            if found[name] != value:
                raise InputError(
                    f"{self.path}: its evaluation has {name} {found[name]!r}, this one {value!r}; "
                    "name another file"
                )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _parse(line: bytes, place: str) -> Outcome:
    try:
        fields = json.loads(line)
        recall = {str(stage): Reached(**reached) for stage, reached in fields.pop("recall").items()}
        outcome = Outcome(**fields, recall=recall)
        if not all(isinstance(getattr(outcome, name), kind) for name, kind in _TYPES.items()):
            raise ValueError
        return outcome
    except (ValueError, TypeError, AttributeError, KeyError):
        raise InputError(f"{place}: not an outcome; name another file") from None
