"""PDF files: the text layer, page by page, put back into paragraphs (`reflow`).

Reads no scanned images and opens nothing that needs a password; such files are skipped with their reason.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from denspi.corpus.files import ByteStream, CorpusFile, UnreadableError
from denspi.corpus.paragraphs import join_paragraphs
from denspi.corpus.records import Item, Note, Skipped
from denspi.corpus.reflow import reflow
from denspi.errors import MissingExtraError
from denspi.types import Document

if TYPE_CHECKING:
    from pypdf import PdfReader

LARGEST_FILE_BYTES = 128 << 20


def read_pdf(file: CorpusFile, stream: ByteStream) -> Iterator[Item]:
    """One document; its title is the one in the PDF's metadata, else the file's name."""
    reader = _open(stream.read_all(LARGEST_FILE_BYTES))
    pages: list[str] = []
    failures: list[Skipped] = []
    for number in range(_page_count(reader)):
        try:
            pages.append(reader.pages[number].extract_text())
        except Exception as error:  # pypdf lets nearly any error through on a damaged page
            failures.append(Skipped(f"{file.source}:page {number + 1}", f"damaged page ({_brief(error)})"))
    with_text = sum(1 for page in pages if page.strip())
    if not with_text and not failures:
        raise UnreadableError("no text (scanned?)")
    if with_text:
        text, spans = join_paragraphs(reflow(pages))
        yield Document(file.document_id, _title(reader) or file.title, text, spans, file.source)
    if 0 < with_text < len(pages):
        yield Note(file.source, f"{len(pages) - with_text} of {len(pages)} pages have no text")
    yield from failures


def _open(data: bytes) -> PdfReader:
    try:
        import pypdf
    except ImportError as error:
        raise MissingExtraError("reading PDF files", "corpus") from error
    # The library warns about every oddity of a file; those that matter arrive here as errors.
    logging.getLogger("pypdf").addHandler(logging.NullHandler())
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        locked = reader.is_encrypted and not reader.decrypt("")
    except pypdf.errors.DependencyError as error:
        raise UnreadableError("encrypted") from error
    except Exception as error:  # pypdf lets nearly any error through on a damaged file
        raise UnreadableError(f"damaged PDF ({_brief(error)})") from error
    if locked:
        raise UnreadableError("encrypted: needs a password")
    return reader


def _page_count(reader: PdfReader) -> int:
    try:
        return len(reader.pages)
    except Exception as error:  # as above
        raise UnreadableError(f"damaged PDF ({_brief(error)})") from error


def _title(reader: PdfReader) -> str:
    try:
        title = reader.metadata.title if reader.metadata else None
        return " ".join(str(title).split()) if title else ""
    except Exception:  # as above; the title is a convenience, and the file's name takes its place
        return ""


def _brief(error: Exception) -> str:
    message = " ".join(str(error).split())
    return message[:120] or type(error).__name__
