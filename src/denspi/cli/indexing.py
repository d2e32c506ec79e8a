"""``denspi index``, ``add`` and ``update``: files into an index, by way of `denspi.build`, with progress.

Heavy imports stay inside the functions.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from denspi.cli.corpus import print_items, watching
from denspi.cli.progress import progress_bar
from denspi.cli.wording import counted, say_given_up, say_merge_stopped, size_shown
from denspi.errors import InputError, StoppedError, WorkerError

if TYPE_CHECKING:
    from denspi.build.index import Changes, Index, OnProgress
    from denspi.corpus.records import Item
    from denspi.types import Document

Paths = Annotated[list[str], typer.Argument(metavar="PATH", help="Files and folders to read.")]
IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of the index.")]
ModelOfIndex = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="DIR", help="Where the index's model is, if not where it was.", show_default=False
    ),
]


def index_command(
    paths: Paths,
    output: Annotated[
        Path,
        typer.Option("--output", metavar="INDEX", help="The folder of the new index.", show_default=False),
    ],
    model: Annotated[
        str, typer.Option("--model", metavar="small|DIR", help="A packaged model, or a model folder.")
    ] = "small",
    precision: Annotated[
        str, typer.Option("--precision", metavar="int8|compact", help="How vectors are stored.")
    ] = "int8",
) -> None:
    """Build an index from files and folders; run it again to go on after an interruption."""
    from denspi.build.index import Index

    source = _Source(paths, output)
    Index.check_new(output)
    source.require_a_document()
    with _stoppable(), Index.create(output, model, precision=precision) as index:
        _run(index, source, lambda on_progress: index.add(source.documents(), on_progress))


def add_command(index: IndexFolder, paths: Paths, model: ModelOfIndex = None) -> None:
    """Add the documents of files and folders to an index."""
    from denspi.build.index import Index

    source = _Source(paths, index)
    with _stoppable(), Index.open(index, model=model) as opened:
        source.require_a_document()
        _run(opened, source, lambda on_progress: opened.add(source.documents(), on_progress))


def update_command(index: IndexFolder, paths: Paths, model: ModelOfIndex = None) -> None:
    """Add documents, or replace those whose content has changed; unchanged ones are skipped."""
    from denspi.build.index import Index

    source = _Source(paths, index)
    with _stoppable(), Index.open(index, model=model) as opened:
        source.require_a_document()
        _run(opened, source, lambda on_progress: opened.update(source.read(), on_progress))


LARGE_BYTES = 10_000_000


class _Source:
    """The documents of the given paths, and a report on everything that was none.

    The index may lie below one of the paths; its own files are left out.
    """

    def __init__(self, paths: list[str], index: Path) -> None:
        from denspi.corpus.folders import existing_paths, shown
        from denspi.corpus.report import CorpusReport

        self.paths = existing_paths(paths)
        self.names = [shown(path) for path in self.paths]
        self.report = CorpusReport.of_paths(self.names)
        real = Path(os.path.realpath(index))  # which, unlike `resolve`, takes links that lead to themselves
        self._index_below = {
            place: shown(path / real.relative_to(path.resolve())) + "/"
            for place, path in enumerate(self.paths)
            if real.is_relative_to(path.resolve())
        }

    def documents(self) -> Iterator[Document]:
        """One reading of them all."""
        from denspi.types import Document

        return (item for item in self.read() if isinstance(item, Document))

    def read(self) -> Iterator[Item]:
        """One reading, with what did not become documents."""
        from denspi.build.pipeline import why_not
        from denspi.corpus import Skipped
        from denspi.types import Document

        for place, item in self._items():
            if isinstance(item, Document) and (reason := why_not(item)):
                item = Skipped(item.source, reason)
            self.report.add(place, item)
            yield item

    def _items(self, on_bytes_read: Callable[[int], None] = lambda _: None) -> Iterator[tuple[int, Item]]:
        from denspi.corpus import read_corpus_by_path

        for place, item in read_corpus_by_path(self.paths, on_bytes_read=on_bytes_read):
            own = self._index_below.get(place)
            if own is None or not f"{item.source}/".startswith(own):
                yield place, item

    def require_a_document(self) -> None:
        """Say so before anything is written or a model loaded; read only as far as the first."""
        from denspi.corpus.report import CorpusReport

        found = next(self.documents(), None)
        if found is None:
            print_items(self.report, sys.stderr)
            raise InputError(f"no document found in {', '.join(self.names)}")
        self.report = CorpusReport.of_paths(self.names)

    @property
    def is_large(self) -> bool:
        """Whether it takes minutes, so that even a log wants to know how many."""
        from denspi.corpus.folders import size_bytes

        return size_bytes(self.paths) >= LARGE_BYTES

    def count_words(self) -> int:
        """A reading for the sake of the progress bar: it takes a hundredth of the time of encoding."""
        from denspi.corpus import CorpusReport

        report = CorpusReport.of_paths(self.names)
        with watching(self.paths) as watch:
            for place, item in self._items(watch.on_bytes_read):
                report.add(place, item)
                watch.on_report(report)
        return report.total.words


def _run(index: Index, source: _Source, change: Callable[[OnProgress], Changes]) -> None:
    """Encode with a bar, commit, and say what was done."""
    started = time.monotonic()
    total_words = source.count_words() if sys.stderr.isatty() or source.is_large else 0
    text = "{task.fields[documents]:,} documents, {task.fields[rate]:,.0f} words/s"
    with progress_bar(text, lambda: total_words, documents=0, rate=0.0) as show:
        shown_words = 0
        encoding_since = time.monotonic()

        def on_progress(changes: Changes) -> None:
            nonlocal shown_words
            words = changes.encoded.words + changes.unchanged.words
            rate = changes.encoded.words / max(time.monotonic() - encoding_since, 0.001)
            show(
                words - shown_words,
                documents=changes.encoded.documents + changes.unchanged.documents,
                rate=rate,
            )
            shown_words = words

        changes = change(on_progress)
    generation = index.commit(say_merge_stopped)
    say_given_up(index.given_up_documents)
    print_items(source.report, sys.stderr)
    typer.echo(_summary(changes, time.monotonic() - started))
    info = index.info()
    held = f"{counted(info.documents, 'document')}, {size_shown(info.bytes)}"
    typer.echo(f"{info.folder}: {held}, generation {generation}")


def _summary(changes: Changes, seconds: float) -> str:
    """How much was encoded and how fast, and what else happened to documents."""
    encoded, unchanged = changes.encoded, changes.unchanged
    parts = []
    if encoded.documents:
        counts = (
            counted(encoded.documents, "document"),
            counted(encoded.paragraphs, "paragraph"),
            counted(encoded.words, "word"),
        )
        rate = encoded.words / max(seconds, 0.001)
        parts.append(f"encoded {', '.join(counts)} in {seconds:,.1f} s ({rate:,.0f} words/s)")
    if unchanged.documents:
        parts.append(f"{counted(unchanged.documents, 'document')} already there")
    if changes.deleted:
        parts.append(f"{counted(changes.deleted, 'document')} no longer there, deleted")
    return "; ".join(parts)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Whatever ends a build early, what is written stays: say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError("interrupted; run the same command again to go on") from None
    except WorkerError as error:
        raise WorkerError(f"{error}; run the same command again to go on") from None
