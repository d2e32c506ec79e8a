"""Every question of the sample corpus put to sparse search: what `denspi demo` shows. Prints nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from denspi.corpus import read_corpus
from denspi.sample import sample_articles_path, sample_questions
from denspi.search.evidence import find_answer
from denspi.search.paragraphs import FoundParagraph, ParagraphSearch
from denspi.types import Document, Question, Span


@dataclass(frozen=True, slots=True)
class Trial:
    """One question, the best paragraph for it, and where in that paragraph its known answer stands."""

    question: Question
    found: FoundParagraph | None
    answer: Span | None  # None: the best paragraph does not hold it
    latency_ms: float


@dataclass(frozen=True, slots=True)
class SampleRun:
    """The sample corpus and a trial for each of its questions."""

    documents: tuple[Document, ...]
    build_ms: float
    trials: tuple[Trial, ...]

    @property
    def answered_count(self) -> int:
        """Questions whose best paragraph holds the answer."""
        return sum(trial.answer is not None for trial in self.trials)

    @property
    def median_latency_ms(self) -> float:
        """The time that half of the questions stay below."""
        return median(trial.latency_ms for trial in self.trials)


def run_sample(folder: Path, clock: Callable[[], float] = time.perf_counter) -> SampleRun:
    """Build the postings of the sample corpus in `folder`, and ask all its questions one by one."""
    documents = tuple(
        item for item in read_corpus(sample_articles_path(), strict=True) if isinstance(item, Document)
    )
    started = clock()
    search = ParagraphSearch(documents, folder)
    build_ms = 1000 * (clock() - started)
    trials = []
    for sample in sample_questions():
        started = clock()
        found = next(iter(search.find(sample.question.text, k=1)), None)
        latency_ms = 1000 * (clock() - started)
        answer = find_answer(found.text, sample.question.answers) if found else None
        trials.append(Trial(sample.question, found, answer, latency_ms))
    return SampleRun(documents, build_ms, tuple(trials))
