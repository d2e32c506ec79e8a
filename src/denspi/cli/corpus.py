"""`denspi corpus`: shows what would be indexed, by printing the report that `denspi.corpus` makes.

Heavy imports stay inside the functions, so that ``denspi --help`` starts at once.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from denspi.cli.progress import progress_bar
from denspi.errors import InputError

if TYPE_CHECKING:
    from denspi.corpus.report import CorpusReport

FORMAT_HELP = "text, markdown, html, pdf, jsonl, squad or wikipedia; by default each file's own, as found."


def corpus_command(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files and folders to read.")],
    format: Annotated[str | None, typer.Option("--format", metavar="FORMAT", help=FORMAT_HELP)] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first item that cannot be used, with exit code 2.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Show what would be indexed: documents, paragraphs, words, and every skipped item with its reason."""
    from denspi.corpus import CorpusReport, read_corpus_by_path
    from denspi.corpus.folders import existing_paths, shown

    given = existing_paths(paths)
    report = CorpusReport.of_paths([shown(path) for path in given])
    with watching(given) as watch:
        for place, item in read_corpus_by_path(
            given, format=format, strict=strict, on_bytes_read=watch.on_bytes_read
        ):
            report.add(place, item)
            watch.on_report(report)
    documents = report.total.documents
    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        if documents:
            _print_table(report)
        print_items(report, sys.stdout if documents else sys.stderr)
    if not documents:
        raise InputError(f"no document found in {', '.join(counts.path for counts in report.sources)}")


def _print_table(report: CorpusReport) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    total = report.total
    table = Table(box=box.SIMPLE_HEAD, show_footer=len(report.sources) > 1)
    table.add_column("path", "total", overflow="fold")
    for name in ("documents", "paragraphs", "words", "skipped"):
        table.add_column(name, f"{getattr(total, name):,}", justify="right", no_wrap=True)
    for counts in report.sources:
        numbers = (counts.documents, counts.paragraphs, counts.words, counts.skipped)
        table.add_row(Text(counts.path), *(f"{number:,}" for number in numbers))
    Console(highlight=False).print(table)


def print_items(report: CorpusReport, file: TextIO) -> None:
    """Each note and each skipped item on a line of its own, and the count at the end."""
    for note in report.notes:
        print(f"note: {note}", file=file)
    for skipped in report.skipped:
        print(f"skipped: {skipped}", file=file)
    if report.skipped:
        print(f"{len(report.skipped):,} skipped", file=file)


@dataclass(frozen=True)
class Watch:
    """Who hears how the reading goes on."""

    on_bytes_read: Callable[[int], None]
    on_report: Callable[[CorpusReport], None]


@contextmanager
def watching(paths: tuple[Path, ...]) -> Iterator[Watch]:
    """Show progress on standard error while the block runs."""
    from denspi.corpus.folders import size_bytes

    text = "{task.fields[documents]:,} documents, {task.fields[rate]:,.0f} words/s"
    with progress_bar(text, lambda: size_bytes(paths), in_bytes=True, documents=0, rate=0.0) as show:
        started = time.monotonic()

        def on_report(report: CorpusReport) -> None:
            total = report.total
            show(documents=total.documents, rate=total.words / max(time.monotonic() - started, 0.001))

        yield Watch(show, on_report)
