"""``denspi demo``: the sample corpus and what sparse search finds in it. Prints what `sample_run` found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from denspi.cli.wording import print_wrapped

if TYPE_CHECKING:
    from denspi.search.sample_run import SampleRun, Trial

SHOWN_QUESTIONS = 5


def demo_command() -> None:
    """Show the sample corpus and the paragraphs that sparse search finds in it."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from denspi.search.sample_run import run_sample

    with TemporaryDirectory(prefix="denspi-demo-") as folder:
        run = run_sample(Path(folder))
        _print_corpus(run)
        every = max(1, len(run.trials) // SHOWN_QUESTIONS)
        typer.echo(
            f"Sparse index built in {run.build_ms:.0f} ms. One question in {every}, and its best paragraph:\n"
        )
        for trial in run.trials[every - 1 :: every]:
            _print_trial(trial)
    typer.echo(
        f"The best paragraph holds the answer to {run.answered_count} of all {len(run.trials)} questions, "
        f"found in {run.median_latency_ms:.2f} ms (median).\n"
    )
    print_wrapped(
        "These are paragraphs, found by the sparse half alone: the [answers] come with the questions and are"
        " only marked. For phrases as answers, use denspi index and denspi ask."
    )


def _print_corpus(run: SampleRun) -> None:
    paragraphs = sum(len(document.paragraphs) for document in run.documents)
    words = sum(len(document.text.split()) for document in run.documents)
    counts = f"{len(run.documents)} articles, {paragraphs} paragraphs, {words:,} words"
    typer.echo(f"Sample corpus: {counts}. One article:\n")
    article = run.documents[0]
    typer.secho(f"  {article.title}", bold=True)
    print_wrapped(next(article.paragraph_texts()), indent="  ")
    typer.echo()


def _print_trial(trial: Trial) -> None:
    typer.secho(trial.question.text, bold=True)
    if trial.found is None:
        typer.echo(f"  no paragraph shares a word with it ({trial.latency_ms:.2f} ms)\n")
        return
    from denspi.search.evidence import sentence_around

    found = trial.found
    place = f"{found.document.title}, paragraph {found.paragraph_number + 1}"
    typer.echo(f"  {place} · score {found.score:.3f} · {trial.latency_ms:.2f} ms")
    print_wrapped(f"matched: {', '.join(found.ngrams)}", indent="  ")
    if trial.answer is None:
        print_wrapped(f"the answer is not there: {trial.question.answers[0]}", indent="  ")
    else:
        sentence = sentence_around(found.text, trial.answer)
        before = found.text[sentence.start_char : trial.answer.start_char]
        after = found.text[trial.answer.end_char : sentence.end_char]
        answer = f"[{trial.answer.of(found.text)}]"
        print_wrapped(before + answer + after, indent="  ", marked=answer)
    typer.echo()
