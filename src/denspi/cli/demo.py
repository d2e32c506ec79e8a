"""``denspi demo``: the sample corpus, answers to a few of its questions, and the page that asks more."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from denspi.cli.answers_shown import print_reply
from denspi.cli.serving import check_port, serve_index
from denspi.cli.wording import print_wrapped
from denspi.errors import InputError

if TYPE_CHECKING:
    from denspi.search.sample_run import SampleRun

DEFAULT_PORT = 8000
SHOWN_QUESTIONS = 5
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def demo_command(
    serve: Annotated[bool, typer.Option("--serve", help="Then serve the page, until Ctrl-C.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help=f"Of the page ({DEFAULT_PORT}); 0: any free one."
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="With --serve: do not open the page in a browser.")
    ] = False,
) -> None:
    """Index the sample corpus and answer a few of its questions."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from denspi.search.sample_run import run_sample

    if not serve and (port is not None or no_browser):
        raise InputError(f"{'--no-browser' if port is None else '--port'}: is of the page; add --serve")
    port = DEFAULT_PORT if port is None else port
    if serve:
        check_port(port)  # before anybody waits for the rest
    with TemporaryDirectory(prefix="denspi-demo-") as temporary:
        folder = Path(temporary) / "sample.index"
        run = run_sample(folder)
        _print_run(run)
        if serve:
            serve_index(folder, port, on_ready=_nothing if no_browser else _open_page_meanwhile)


def _nothing(address: str) -> None:
    """For those who have a browser open already."""


def _open_page_meanwhile(address: str) -> None:
    """Browsers may take seconds to start, in which they are to be served."""
    threading.Thread(target=_open_page, args=(address,), daemon=True).start()


def _open_page(address: str) -> None:
    """In a browser, where somebody sits before one: at a terminal, on a machine with a display."""
    has_display = sys.platform in ("darwin", "win32") or any(map(os.environ.get, _DISPLAYS))
    if has_display and sys.stdout.isatty():
        webbrowser.open(address)


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
