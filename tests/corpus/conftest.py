"""Small files for the readers to read, made in the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from denspi.corpus import Note, Skipped, read_corpus
from denspi.types import Document


@dataclass(frozen=True)
class Read:
    """What a run over some paths yielded, sorted by kind."""

    documents: list[Document]
    skipped: list[Skipped]
    notes: list[Note]

    @property
    def only(self) -> Document:
        assert not self.skipped, self.skipped
        (document,) = self.documents
        return document

    @property
    def reason(self) -> str:
        (skipped,) = self.skipped
        return skipped.reason

    @property
    def ids(self) -> list[str]:
        return [document.document_id for document in self.documents]


def read_all(paths: Path | Sequence[Path], format: str | None = None) -> Read:
    items = list(read_corpus(paths, format=format))
    return Read(
        [item for item in items if isinstance(item, Document)],
        [item for item in items if isinstance(item, Skipped)],
        [item for item in items if isinstance(item, Note)],
    )


@pytest.fixture(scope="session")
def read() -> Callable[..., Read]:
    """Read paths to the end: ``read(path)`` or ``read(path, format="text")``."""
    return read_all


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file below the test's folder: ``write("folder/a.txt", "text")``."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def make_pdf() -> Callable[..., bytes]:
    """A PDF by hand, from the lines of each page: ``make_pdf([["line", "line"], ["page 2"]])``."""

    def pdf_bytes(pages: Sequence[Sequence[str]], title: str = "") -> bytes:
        page_ids = [5 + 2 * number for number in range(len(pages))]
        kids = " ".join(f"{page_id} 0 R" for page_id in page_ids)
        objects = {
            1: "<< /Type /Catalog /Pages 2 0 R >>",
            2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
            3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            4: f"<< /Title ({title}) >>" if title else "<< >>",
        }
        for page_id, lines in zip(page_ids, pages, strict=True):
            shown = "".join(f"({line}) Tj 0 -14 Td\n" for line in lines)
            content = f"BT /F1 11 Tf 60 760 Td\n{shown}ET" if lines else ""
            objects[page_id] = (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
                f"/Resources << /Font << /F1 3 0 R >> >> /Contents {page_id + 1} 0 R >>"
            )
            objects[page_id + 1] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
        written = "%PDF-1.4\n"
        offsets = {}
        for number, content in objects.items():
            offsets[number] = len(written)
            written += f"{number} 0 obj\n{content}\nendobj\n"
        table = "".join(f"{offsets[number]:010d} 00000 n \n" for number in sorted(offsets))
        size = len(objects) + 1
        return (
            f"{written}xref\n0 {size}\n0000000000 65535 f \n{table}"
            f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{len(written)}\n%%EOF\n"
        ).encode("latin-1")

    return pdf_bytes
