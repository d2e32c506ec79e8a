"""``denspi demo``: the sample corpus, answers to a few of its questions, and the page that asks more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from denspi.cli.answers_shown import print_reply
from denspi.cli.serving import serve_index
from denspi.cli.wording import print_wrapped

if TYPE_CHECKING:
    from denspi.search.sample_run import SampleRun

SHOWN_QUESTIONS = 5


def demo_command(
    serve: Annotated[bool, typer.Option("--serve", help="Then serve the page, until Ctrl-C.")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Of the page; 0: any free one.")
    ] = 8000,
) -> None:
    """Index the sample corpus and answer a few of its questions."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from denspi.search.sample_run import run_sample

    with TemporaryDirectory(prefix="denspi-demo-") as temporary:
        folder = Path(temporary) / "sample.index"
        run = run_sample(folder)
        _print_run(run)
        if serve:
            serve_index(folder, port)


def _print_run(run: SampleRun) -> None:
    read = run.changes.encoded
    counts = f"{read.documents} articles, {read.paragraphs} paragraphs, {read.words:,} words"
    typer.echo(f"Sample corpus: {counts}, indexed in {run.build_seconds:.1f} s.\n")
    every = max(1, len(run.trials) // SHOWN_QUESTIONS)
    for trial in run.trials[::every][:SHOWN_QUESTIONS]:
        typer.secho(trial.question.text, bold=True)
        print_reply(trial.reply)
    typer.echo(
        f"{run.right_count} of {len(run.trials)} questions answered exactly right, "
        f"in {run.median_latency_ms:.1f} ms (median).\n"
    )
    print_wrapped(
        "For your own documents: denspi index FOLDER --output INDEX, then denspi ask INDEX or denspi serve"
        " INDEX."
    )
