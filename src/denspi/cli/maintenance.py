"""``denspi delete``, ``merge``, ``refit``, ``info`` and ``verify``: an index that is there, kept in order.

Heavy imports stay inside the functions. None of these needs a model.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from denspi.cli.indexing import IndexFolder
from denspi.cli.progress import progress_bar
from denspi.cli.wording import counted, say_given_up, say_merge_stopped, size_shown, without_controls
from denspi.errors import IndexDamagedError, InputError

if TYPE_CHECKING:
    from denspi.build.index import Index
    from denspi.build.info import IndexInfo


def delete_command(
    index: IndexFolder,
    document_ids: Annotated[
        list[str], typer.Argument(metavar="ID", help="Documents, or long text files by their path.")
    ],
) -> None:
    """Delete documents by their ids: all of them, or none where one is not there."""
    from denspi.build.index import Index
    from denspi.corpus.records import shortened

    with Index.open(index) as opened:
        deleted = 0
        for document_id in dict.fromkeys(document_ids):
            found = opened.delete(document_id)
            if not found:
                name = shortened(document_id)
                raise InputError(f"{index}: has no document {name!r}{_example(opened)}; deleted none")
            deleted += found
        generation = opened.commit(say_merge_stopped)
        say_given_up(opened.given_up_documents)
    typer.echo(f"{counted(deleted, 'document')} deleted; generation {generation}")


def merge_command(
    index: IndexFolder,
    wait_seconds: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="For a process that writes or merges the index."
        ),
    ] = 60,
) -> None:
    """Write all segments as few, without the deleted documents; no score changes."""
    from denspi.build.index import Index

    def say_waiting(holder: str) -> None:
        typer.echo(
            f"denspi: {index}: waiting up to {wait_seconds:g} s for {holder}",
            err=True,
        )

    with Index.open(index) as opened:
        before = opened.info()
        generation = opened.merge(wait_seconds, say_waiting)
        after = opened.info()
    typer.echo(
        f"{counted(before.segments, 'segment')}, {size_shown(before.bytes)}: now "
        f"{counted(after.segments, 'segment')}, {size_shown(after.bytes)}; generation {generation}"
    )


def refit_command(index: IndexFolder) -> None:
    """Weigh words by how rare they are now, as a fresh build would."""
    from denspi.build.index import Index

    with Index.open(index) as opened:
        generation = opened.refit(say_merge_stopped)
        say_given_up(opened.given_up_documents)
        documents = opened.info().documents
    typer.echo(f"fitted to {counted(documents, 'document')}; generation {generation}")


def info_command(
    index: IndexFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Show what an index holds, what it was built with, and where its bytes go."""
    from denspi.build.index import Index

    info = Index.open(index).info()
    if as_json:
        print(json.dumps(info.as_json(), ensure_ascii=False, indent=2))
    else:
        _print_info(info)


def verify_command(index: IndexFolder) -> None:
    """Read every byte of an index; exit code 2 names each component that is damaged."""
    from denspi.build.index import verify_index
    from denspi.index.verify import bytes_to_verify

    with progress_bar("checking", lambda: bytes_to_verify(index), in_bytes=True) as show:
        report = verify_index(index, show)
    if report.generation is None:
        raise IndexDamagedError(report.problems[0])
    for problem in report.problems[:-1]:
        typer.echo(f"denspi: {problem}", err=True)
    if report.problems:
        raise IndexDamagedError(report.problems[-1])
    typer.echo(
        f"{index}: {counted(report.components, 'component')}, {size_shown(report.size_bytes)}, generation "
        f"{report.generation}: all as written"
    )


def _example(index: Index) -> str:
    """What ids look like, for someone who guesses."""
    from denspi.corpus.records import shortened

    for segment in index.snapshot().segments:
        for number in range(segment.counts.documents):
            if segment.live[number]:
                return f" (its ids look like {shortened(segment.record(number).document_id)!r})"
    return ""


def _print_info(info: IndexInfo) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    share = f"{100 * info.deleted_share:.1f}% of what is stored"
    for name, value in (
        ("index", f"{info.folder}, generation {info.generation}"),
        ("model", f"{info.model} ({info.fingerprint[:12]}), {info.precision}"),
        ("documents", f"{info.documents:,}"),
        ("paragraphs", f"{info.paragraphs:,}"),
        ("words", f"{info.words:,} ({info.words_and_signs:,} with signs)"),
        ("starts kept", _kept(info.starts, info.words_and_signs)),
        ("ends kept", _kept(info.ends, info.words_and_signs)),
        ("segments", f"{info.segments:,}"),
        ("deleted", f"{counted(info.deleted_documents, 'document')}, {share}"),
    ):
        table.add_row(name, Text(without_controls(value)))  # the model is as a stranger may have named it
    console.print(table)
    sizes = Table(box=box.SIMPLE_HEAD, show_footer=True)
    sizes.add_column("component", "total")
    sizes.add_column("bytes", f"{info.bytes:,}", justify="right")
    sizes.add_column("bytes a word", f"{info.bytes_per_word:,.2f}", justify="right")
    for name, size_bytes in info.bytes_by_component.items():
        sizes.add_row(name, f"{size_bytes:,}", f"{size_bytes / max(1, info.words):,.2f}")
    console.print(sizes)


def _kept(rows: int, words_and_signs: int) -> str:
    return f"{rows:,} ({100 * rows / max(1, words_and_signs):.0f}% of the words and signs)"
