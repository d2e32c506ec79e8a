"""The sample corpus that ships in the package, for the demo, the tutorial and the golden tests.

Owns the articles, the questions with their answers and the questions that the articles leave open. Reads
them from package data, so an installed wheel has them too; the articles themselves are read by
`denspi.corpus.read_corpus(sample_articles_path())`, like any other JSON Lines file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from denspi.types import Question

__all__ = [
    "SampleQuestion",
    "sample_articles_path",
    "sample_questions",
    "sample_unanswerable_questions",
]


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question whose answers all occur, character for character, in the text of one sample article."""

    question: Question
    document_id: str


def sample_articles_path() -> Path:
    """The JSON Lines file of articles: a line holds ``id``, ``title``, ``topic`` and ``text``."""
    return _data_path("articles.jsonl")


def sample_questions() -> tuple[SampleQuestion, ...]:
    """The questions that the sample corpus answers, in a fixed order."""
    return tuple(
        SampleQuestion(Question(row["id"], row["question"], tuple(row["answers"])), row["document_id"])
        for row in _rows("questions.jsonl")
    )


def sample_unanswerable_questions() -> tuple[Question, ...]:
    """Plausible questions whose answer stands in no sample article: the right reply is none."""
    return tuple(Question(row["id"], row["question"]) for row in _rows("unanswerable.jsonl"))


def _data_path(name: str) -> Path:
    # Installers unpack wheels, so package data lies on disk and a path to it can be handed around.
    return Path(str(resources.files(__name__).joinpath(name)))


def _rows(name: str) -> list[dict[str, Any]]:
    # Split at newlines only: str.splitlines would also break at separators that JSON allows in strings.
    lines = _data_path(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]
