"""The one way into a corpus: paths to documents, with every item that is not one of them accounted for.

Picks the reader and checks what all formats share: empty texts, broken Unicode, duplicate ids. Holds no
more than the document at hand and 12 bytes for each id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from denspi.corpus.detection import Format, detect_format, parse_format
from denspi.corpus.files import ByteStream, CorpusFile, UnreadableError, stream_bytes
from denspi.corpus.folders import PathLike, existing_paths, shown, walk
from denspi.corpus.html import read_html
from denspi.corpus.jsonl import read_jsonl
from denspi.corpus.markdown import read_markdown
from denspi.corpus.pdf import read_pdf
from denspi.corpus.records import Item, Skipped, one_line, shortened
from denspi.corpus.seen import SeenIds
from denspi.corpus.squad import read_squad_documents
from denspi.corpus.text import read_text
from denspi.corpus.wikipedia import read_wikipedia
from denspi.errors import InputError
from denspi.types import Document

Reader = Callable[[CorpusFile, ByteStream], Iterator[Item]]

READERS: dict[Format, Reader] = {
    "text": read_text,
    "markdown": read_markdown,
    "html": read_html,
    "pdf": read_pdf,
    "jsonl": read_jsonl,
    "squad": read_squad_documents,
    "wikipedia": read_wikipedia,
}


def read_corpus(
    paths: PathLike | Iterable[PathLike], *, format: str | None = None, strict: bool = False
) -> Iterator[Item]:
    """Every document at or below the paths, in a fixed order, with a `Skipped` for each item that is none.

    The paths are checked at once: one that does not exist raises `InputError` before anything is read.
    `format` overrules detection for all files; with `strict` the first skipped item raises `InputError`.
    A `Note` tells of ordinary omissions (redirects, hidden files) and never stops anything.
    """
    items = read_corpus_by_path(paths, format=format, strict=strict)
    return (item for _, item in items)


def read_corpus_by_path(
    paths: PathLike | Iterable[PathLike],
    *,
    format: str | None = None,
    strict: bool = False,
    on_bytes_read: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[int, Item]]:
    """Like `read_corpus`, each item with the position of the given path that it came from.

    `on_bytes_read` hears of the bytes as they are read from the disk, compressed or not.
    """
    return _read(existing_paths(paths), parse_format(format), strict, on_bytes_read)


def _read(
    paths: tuple[Path, ...], format: Format | None, strict: bool, on_bytes_read: Callable[[int], None]
) -> Iterator[tuple[int, Item]]:
    seen = SeenIds()
    for place, path in enumerate(paths):
        for found in walk(path):
            items = _read_file(found, format, on_bytes_read) if isinstance(found, CorpusFile) else (found,)
            for read in items:
                item = _checked(read, seen, place, paths) if isinstance(read, Document) else read
                if strict and isinstance(item, Skipped):
                    raise InputError(str(item))
                yield place, item


def _read_file(
    file: CorpusFile, format: Format | None, on_bytes_read: Callable[[int], None]
) -> Iterator[Item]:
    try:
        opened = file.path.open("rb")
    except OSError as error:
        yield Skipped(file.source, f"cannot be opened: {error.strerror}")
        return
    with opened:
        try:
            yield from _read_open_file(file, opened, format, on_bytes_read)
        except UnreadableError as error:
            yield Skipped(file.source, str(error))


def _read_open_file(
    file: CorpusFile, opened: BinaryIO, format: Format | None, on_bytes_read: Callable[[int], None]
) -> Iterator[Item]:
    stream = stream_bytes(opened, on_bytes_read)
    if stream.is_empty:
        yield Skipped(file.source, "empty")
        return
    yield from READERS[format or detect_format(file.suffix, stream.head)](file, stream)


def _checked(document: Document, seen: SeenIds, place: int, paths: tuple[Path, ...]) -> Document | Skipped:
    """The document, or why it cannot be one of the corpus."""
    if not document.paragraphs:
        return Skipped(document.source, "empty")
    if not _is_unicode(document):
        return Skipped(document.source, "broken Unicode: half of a surrogate pair")
    first_place = seen.add(document.document_id, place)
    if first_place is None:
        return document
    first_source = shown(paths[first_place])
    return Skipped(
        document.source,
        f"duplicate id {one_line(shortened(document.document_id))!r}, first met in {first_source}",
    )


def _is_unicode(document: Document) -> bool:
    """Whether everything can be written as UTF-8, which half surrogates (JSON's "\\ud800") cannot."""
    try:
        for text in (document.document_id, document.title, document.text):
            text.encode()
        if document.metadata:
            json.dumps(document.metadata, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
