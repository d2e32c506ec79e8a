"""The demo's run: the whole corpus is indexed, and most of the questions are answered right."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from denspi import Index, Searcher
from denspi.sample import sample_questions, sample_unanswerable_questions
from denspi.search.sample_run import ASKED, SampleRun, run_sample

SURE = 0.55
"""The threshold that docs/search.md speaks of."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sample") / "index"


@pytest.fixture(scope="module")
def run(folder: Path) -> SampleRun:
    ticks = count()
    return run_sample(folder, clock=lambda: float(next(ticks)))


def test_most_questions_are_answered_right(run: SampleRun, folder: Path) -> None:
    assert run.build_seconds == 1.0
    assert run.changes.encoded.documents == Index.open(folder).info().documents == 100
    assert len(run.trials) == ASKED
    assert len({trial.question.question_id for trial in run.trials}) == ASKED
    known = {each.question.question_id: each.question for each in sample_questions()}
    for trial in run.trials:
        assert trial.question == known[trial.question.question_id]
        best = trial.reply.answers[0].text
        assert trial.is_right or best not in trial.question.answers
        assert trial.latency_ms > 0
    assert ASKED // 2 < run.right_count <= ASKED


def test_a_threshold_tells_what_the_texts_answer_from_what_they_do_not(run: SampleRun, folder: Path) -> None:
    kept = [each for each in run.trials if (each.reply.answers[0].confidence or 0) >= SURE]
    assert len(kept) > 0.6 * ASKED
    assert sum(each.is_right for each in kept) / len(kept) > run.right_count / ASKED
    strange = [each.text for each in sample_unanswerable_questions()]
    searcher = Searcher(Index.open(folder), compiled=False)
    answered = searcher.answer_batch(strange, k=1, min_confidence=SURE)
    assert sum(map(bool, answered)) <= len(strange) // 4
    without = searcher.answer_batch(strange, k=1)
    assert all(without)
