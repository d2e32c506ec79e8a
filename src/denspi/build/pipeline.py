"""Documents -> paragraphs -> rows -> writer, as a stream: what is held at once does not grow with the corpus.

The writer cuts segments by the documents alone, and rows come in their order, so the index has the same bytes
however many processes encoded it. Knows no command line; tells a listener how far it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from itertools import chain, islice

from denspi.corpus.records import shortened
from denspi.errors import InputError
from denspi.index.rows import ParagraphRows
from denspi.types import Document

LONGEST_DOCUMENT_CHARS = 16_000_000
"""About eight thousand pages. The readers cut long text files into parts far below."""
LARGEST_DOCUMENT_BYTES = 1 << 30
"""What one document's rows may take: they are held together until its segment is written."""
_PARAGRAPH_BYTES = 1500  # of Python objects around the arrays of one paragraph

Encode = Callable[[Iterator[str]], Iterator[ParagraphRows]]
Store = Callable[[Document, list[ParagraphRows]], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """What has gone through so far. Words are runs between white space, as `denspi corpus` counts them."""

    documents: int = 0
    paragraphs: int = 0
    words: int = 0

    def __add__(self, other: Progress) -> Progress:
        return Progress(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def size_of(document: Document) -> Progress:
    """One document's share of the whole."""
    words = sum(len(text.split()) for text in document.paragraph_texts())
    return Progress(1, len(document.paragraphs), words)


def encode_into(
    documents: Iterable[Document],
    encode: Encode,
    store: Store,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Store each document with the rows of its paragraphs, in order; `InputError` names one that cannot."""
    waiting: deque[Document] = deque()  # handed to the encoder, which reads ahead, and not yet stored

    def paragraphs() -> Iterator[str]:
        for document in documents:
            waiting.append(document)
            yield from document.paragraph_texts()

    progress = Progress()

    def counted(rows: Iterator[ParagraphRows]) -> Iterator[ParagraphRows]:
        nonlocal progress
        for each, text in zip(rows, waiting[0].paragraph_texts(), strict=False):
            progress += Progress(0, 1, len(text.split()))
            on_progress(progress)
            yield each

    # Closed whatever happens, so that no process is left encoding.
    with closing(_generator(encode(paragraphs()))) as rows:
        for first in rows:
            document = waiting[0]
            rest = islice(rows, len(document.paragraphs) - 1)
            store(document, _held(document, counted(chain([first], rest))))
            waiting.popleft()
            progress += Progress(1, 0, 0)
            on_progress(progress)
    return progress


def why_not(document: Document) -> str | None:
    """Why a document cannot be indexed, or None where it can."""
    if not document.document_id:
        return "has no id; give it one"
    if not document.paragraphs:
        return "has no paragraph; leave it out"
    if len(document.text) > LONGEST_DOCUMENT_CHARS:
        return (
            f"{len(document.text):,} characters, above the limit of {LONGEST_DOCUMENT_CHARS:,}; "
            "cut it into several documents"
        )
    return None


def _held(document: Document, paragraphs: Iterable[ParagraphRows]) -> list[ParagraphRows]:
    held: list[ParagraphRows] = []
    held_bytes = 0
    for rows in paragraphs:
        held.append(rows)
        held_bytes += _bytes_of(rows)
        if held_bytes > LARGEST_DOCUMENT_BYTES:
            raise InputError(
                f"{shortened(document.document_id)}: its vectors take more than "
                f"{LARGEST_DOCUMENT_BYTES >> 20} MiB; cut it into several documents"
            )
    return held


def _bytes_of(rows: ParagraphRows) -> int:
    arrays = (rows.starts, rows.start_keys, rows.ends, rows.end_keys)
    return _PARAGRAPH_BYTES + sum(each.nbytes for each in arrays)


def _generator(rows: Iterator[ParagraphRows]) -> Generator[ParagraphRows, None, None]:
    """So that any iterator can be closed, and whatever lies beneath it with it."""
    try:
        yield from rows
    finally:
        if close := getattr(rows, "close", None):
            close()
