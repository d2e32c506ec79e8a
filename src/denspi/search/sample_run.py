"""The sample corpus indexed, and some questions put to it: what `denspi demo` shows. Prints nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from denspi.build.index import Changes, Index
from denspi.corpus import read_corpus
from denspi.sample import sample_articles_path, sample_questions
from denspi.search.searcher import Reply, Searcher
from denspi.text.answers import exact_match
from denspi.types import Document, Question

ASKED = 50
"""Of all questions, evenly spread."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One question and the best answer to it."""

    question: Question
    reply: Reply

    @property
    def is_right(self) -> bool:
        """Whether the best answer is one of those that count as right."""
        answers = self.reply.answers
        return bool(answers) and exact_match(answers[0].text, self.question.answers)

    @property
    def latency_ms(self) -> float:
        """From the question's text to the answer."""
        return sum(self.reply.stages_ms.values())


@dataclass(frozen=True, slots=True)
class SampleRun:
    """An index of the sample corpus, and a trial for each of the questions."""

    changes: Changes
    build_seconds: float
    trials: tuple[Trial, ...]

    @property
    def right_count(self) -> int:
        """Questions that were answered right."""
        return sum(trial.is_right for trial in self.trials)

    @property
    def median_latency_ms(self) -> float:
        """The time that half of the questions stay below."""
        return median(trial.latency_ms for trial in self.trials)


def run_sample(folder: Path, clock: Callable[[], float] = time.perf_counter) -> SampleRun:
    """Index the sample corpus in `folder`, and ask some of its questions one by one."""
    started = clock()
    with Index.create(folder) as index:
        articles = read_corpus(sample_articles_path(), strict=True)
        changes = index.add(each for each in articles if isinstance(each, Document))
        index.commit()
    build_seconds = clock() - started
    # A few questions do not earn back what loading the compiled loops takes.
    searcher = Searcher(Index.open(folder), compiled=False)
    questions = [each.question for each in sample_questions()]
    every = max(1, len(questions) // ASKED)
    trials = tuple(
        Trial(each, searcher.ask(each.text, k=1)) for each in questions[every - 1 :: every][:ASKED]
    )
    return SampleRun(changes, build_seconds, trials)
