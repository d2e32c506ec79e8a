"""The demo's run: the whole corpus is indexed, and most of the questions are answered right."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from denspi import Index
from denspi.sample import sample_questions
from denspi.search.sample_run import ASKED, run_sample


def test_most_questions_are_answered_right(tmp_path: Path) -> None:
    ticks = count()
    run = run_sample(tmp_path / "index", clock=lambda: float(next(ticks)))
    assert run.build_seconds == 1.0
    assert run.changes.encoded.documents == Index.open(tmp_path / "index").info().documents == 100
    assert len(run.trials) == ASKED
    assert len({trial.question.question_id for trial in run.trials}) == ASKED
    known = {each.question.question_id: each.question for each in sample_questions()}
    for trial in run.trials:
        assert trial.question == known[trial.question.question_id]
        best = trial.reply.answers[0].text
        assert trial.is_right or best not in trial.question.answers
        assert trial.latency_ms > 0
    assert ASKED // 2 < run.right_count <= ASKED
