"""What a worker does, without HTTP: answers and documents of the newest generation. Threads may share one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from denspi.index.snapshot import Snapshot
from denspi.search.newest import NewestSearcher
from denspi.search.questions import MAX_QUESTION_CHARS
from denspi.search.reply_json import reply_json
from denspi.search.searcher import SearchOptions
from denspi.types import Document

_log = logging.getLogger("uvicorn.error")
QUESTIONS_A_TURN = 16
_WARM_UP = "who was first?"


@dataclass(frozen=True, slots=True)
class Asked:
    """Clean questions, and how to answer them."""

    questions: Sequence[str]
    k: int
    strategy: str
    options: SearchOptions

    def in_turns(self) -> Iterator[Asked]:
        """Few enough at a time that nobody waits long for a turn; reading rows together still pays."""
        some: list[str] = []
        for text in self.questions:
            chars = sum(map(len, some)) + len(text)
            if some and (len(some) == QUESTIONS_A_TURN or chars > MAX_QUESTION_CHARS):
                yield replace(self, questions=some)
                some = []
            some.append(text)
        yield replace(self, questions=some)


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply to one question: what is sent, and what is counted."""

    json: str
    stages_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Held:
    """The generation that is being served."""

    generation: int
    documents: int
    paragraphs: int
    words: int  # as `denspi info` counts them, between white space
    bytes: int
    model: str
    precision: str


class Service:
    """An index, open for questions."""

    def __init__(self, folder: Path) -> None:
        self._newest = NewestSearcher(folder, on_trouble=_log.error)

    @property
    def why_not_ready(self) -> str | None:
        """Why what is being served is not the newest generation, where it is not."""
        return self._newest.why_not

    def warm_up(self) -> None:
        """Load what the first question would otherwise wait for."""
        self._newest.searcher().ask(_WARM_UP)

    def ask(self, asked: Asked) -> list[Answered]:
        """A reply to each question, as JSON."""
        replies = self._newest.searcher().ask_batch(asked.questions, asked.k, asked.strategy, **asked.options)
        return [
            Answered(reply_json(reply, question=text), reply.stages_ms)
            for text, reply in zip(asked.questions, replies, strict=True)
        ]

    def document(self, document_id: str) -> Document | None:
        """A document by its id."""
        return self._newest.searcher().view.snapshot.document(document_id)

    def held(self) -> Held:
        """What is being served now."""
        snapshot: Snapshot = self._newest.searcher().view.snapshot
        live, model = snapshot.live, snapshot.model
        return Held(
            snapshot.generation,
            live.documents,
            live.paragraphs,
            snapshot.live_runs,
            snapshot.size_bytes,
            model.name,
            model.precision,
        )
