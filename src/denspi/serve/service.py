"""What a worker does, without HTTP: answers and documents of the newest generation. Threads may share one.

Components of an index are opened when they are first used; those that documents are read from are opened with
each generation, so that an index which is taken away can still be read as far as it was open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from denspi.errors import DenspiError, StorageError
from denspi.index.snapshot import Snapshot
from denspi.search.newest import NewestSearcher
from denspi.search.questions import MAX_QUESTION_CHARS
from denspi.search.reply_json import reply_json
from denspi.search.searcher import Searcher, SearchOptions
from denspi.types import Document

_log = logging.getLogger("uvicorn.error")
QUESTIONS_A_TURN = 16
_WARM_UP = "who was first?"
T = TypeVar("T")


class AwayError(DenspiError):
    """The index is not where it was, and what is asked for was not open yet."""

    def __init__(self) -> None:
        super().__init__("the index is not there any more; the log of the service says why")


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
        self._opened: Snapshot | None = None

    @property
    def why_not_ready(self) -> str | None:
        """Why what is being served is not the newest generation, where it is not."""
        return self._newest.why_not

    def warm_up(self) -> None:
        """Load what the first question would otherwise wait for."""
        self._with(lambda searcher: searcher.ask(_WARM_UP))
        self.held()

    def ask(self, asked: Asked) -> list[Answered]:
        """A reply to each question, as JSON."""
        replies = self._with(
            lambda searcher: searcher.ask_batch(asked.questions, asked.k, asked.strategy, **asked.options)
        )
        return [
            Answered(reply_json(reply, question=text), reply.stages_ms)
            for text, reply in zip(asked.questions, replies, strict=True)
        ]

    def document(self, document_id: str) -> Document | None:
        """A document by its id."""
        return self._with(lambda searcher: searcher.view.snapshot.document(document_id))

    def held(self) -> Held:
        """What is being served now."""
        return self._with(lambda searcher: _held(searcher.view.snapshot))

    def _with(self, work: Callable[[Searcher], T]) -> T:
        """What `work` makes of the newest generation; `AwayError` where it is gone before it was open."""
        searcher = self._newest.searcher()
        try:
            if searcher.view.snapshot is not self._opened:
                _open_documents(searcher.view.snapshot)
                self._opened = searcher.view.snapshot
            return work(searcher)
        except StorageError as error:
            if self.why_not_ready is None:  # it is there, and damaged
                raise
            _log.error("%s", error)
            raise AwayError from error


def _open_documents(snapshot: Snapshot) -> None:
    """Map what any document may be read from."""
    for segment in snapshot.segments:
        if segment.counts.documents:
            segment.document(0)
            segment.find("")


def _held(snapshot: Snapshot) -> Held:
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
