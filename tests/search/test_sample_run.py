from itertools import count
from pathlib import Path

from denspi.sample import sample_questions
from denspi.search.sample_run import run_sample


def test_every_sample_question_is_tried(tmp_path: Path) -> None:
    ticks = count()
    run = run_sample(tmp_path / "postings", clock=lambda: float(next(ticks)))
    assert [trial.question for trial in run.trials] == [sample.question for sample in sample_questions()]
    assert len(run.documents) >= 60
    assert run.build_ms == run.median_latency_ms == 1000.0


def test_marked_answers_stand_in_the_found_paragraph(tmp_path: Path) -> None:
    run = run_sample(tmp_path / "postings")
    answered = [trial for trial in run.trials if trial.answer is not None]
    assert len(answered) == run.answered_count
    for trial in answered:
        assert trial.found is not None
        assert trial.answer is not None
        marked = trial.answer.of(trial.found.text).casefold()
        assert marked in [answer.casefold() for answer in trial.question.answers]
    assert (
        run.answered_count > len(run.trials) / 2
    )  # far below what it reaches: a broken search falls under it
