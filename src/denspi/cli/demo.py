"""``denspi demo``: the sample corpus and what sparse search finds in it. Prints what `sample_run` found."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TYPE_CHECKING

import typer

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
    _print_wrapped(
        "These are paragraphs, found by the sparse half alone: the [answers] come with the questions and are"
        " only marked. Phrases as answers come with the encoder."
    )


def _print_corpus(run: SampleRun) -> None:
    paragraphs = sum(len(document.paragraphs) for document in run.documents)
    words = sum(len(document.text.split()) for document in run.documents)
    counts = f"{len(run.documents)} articles, {paragraphs} paragraphs, {words:,} words"
    typer.echo(f"Sample corpus: {counts}. One article:\n")
    article = run.documents[0]
    typer.secho(f"  {article.title}", bold=True)
    _print_wrapped(next(article.paragraph_texts()), indent="  ")
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
    _print_wrapped(f"matched: {', '.join(found.ngrams)}", indent="  ")
    if trial.answer is None:
        _print_wrapped(f"the answer is not there: {trial.question.answers[0]}", indent="  ")
    else:
        sentence = sentence_around(found.text, trial.answer)
        before = found.text[sentence.start_char : trial.answer.start_char]
        after = found.text[trial.answer.end_char : sentence.end_char]
        answer = f"[{trial.answer.of(found.text)}]"
        _print_wrapped(before + answer + after, indent="  ", marked=answer)
    typer.echo()


def _print_wrapped(text: str, indent: str = "", marked: str = "") -> None:
    """Print `text` in lines that fit the terminal, with the first `marked` in it in colour."""
    width = min(100, shutil.get_terminal_size().columns)
    lines = textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    if marked:
        across_lines = r"\s+".join(re.escape(word) for word in marked.split())
        lines = re.sub(
            across_lines, lambda found: typer.style(found[0], fg="green", bold=True), lines, count=1
        )
    typer.echo(lines)
