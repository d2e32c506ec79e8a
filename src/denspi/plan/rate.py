"""How fast this machine encodes, and what a model's filter keeps: the sample corpus, for a few seconds.

As a build does it: a process for each core. The processes and the model are loaded before the clock starts.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from denspi.build.cores import usable_cores
from denspi.build.model import IndexModel
from denspi.build.workers import Workers, WorkerSettings
from denspi.corpus import read_corpus
from denspi.index.rows import ParagraphRows
from denspi.sample import sample_articles_path
from denspi.types import Document

SECONDS = 4.0
_TASK_CHARS = 4_000  # small, so that no process is left working alone at the end


@dataclass(frozen=True, slots=True)
class Encoding:
    """What was measured on the sample corpus."""

    words_per_second: float  # all processes together
    processes: int
    starts_per_word: float  # kept
    ends_per_word: float


def measure_encoding(
    model: IndexModel,
    seconds: float = SECONDS,
    processes: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Encoding:
    """Encode the sample corpus once, then again and again for so many seconds."""
    texts, count = sample_texts(), processes or usable_cores()
    # Few tasks ahead: what is handed over when the time is up is still encoded and counted.
    settings = WorkerSettings(count, task_chars=_TASK_CHARS, tasks_ahead=2)
    with Workers(model, count, settings) as workers:
        starts, ends = _kept(workers.encode(texts))  # this also loads everything
        began = clock()
        words = 0

        def endless() -> Iterator[str]:
            nonlocal words
            for text in itertools.cycle(texts):
                if clock() - began >= seconds:
                    return
                words += len(text.split())
                yield text

        for _ in workers.encode(endless()):
            pass
        taken = clock() - began
    in_sample = words_of(texts)
    return Encoding(words / taken, count, starts / in_sample, ends / in_sample)


def sample_texts() -> list[str]:
    """The paragraphs of the sample corpus."""
    documents = (item for item in read_corpus(sample_articles_path()) if isinstance(item, Document))
    return [text for document in documents for text in document.paragraph_texts()]


def words_of(texts: Sequence[str]) -> int:
    """Runs between white space."""
    return sum(len(text.split()) for text in texts)


def _kept(paragraphs: Iterable[ParagraphRows]) -> tuple[int, int]:
    starts = ends = 0
    for rows in paragraphs:
        starts, ends = starts + len(rows.start_words), ends + len(rows.end_words)
    return starts, ends
