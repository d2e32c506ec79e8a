"""Makes the frozen index again: `python -m tests.compat.make_tiny_index FILE.zip`.

The archive beside this file was made once and stays as it is, whatever the code becomes: it is what the
indexes of users look like. A new format version gets a new archive beside it; the old one keeps its test.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from denspi.index import IndexWriter, MergePolicy, ModelRecord, ParagraphRows, WriterSettings
from denspi.types import Document, Span

MODEL = ModelRecord("frozen", "0123456789abcdef", 4, 2, "fedcba9876543210", settings={"sparse_weight": 0.5})
TEXTS = {
    "warsaw": "Warsaw stands on the Vistula.\nThe Old Town was rebuilt after the war.",
    "beyonce": "Beyoncé was born in Houston.",
    "gone": "This one is deleted.",
    "who": "The Who are an English band, formed in London.",
}


def tiny_document(document_id: str) -> Document:
    """A document of the frozen index."""
    text, spans, begin = TEXTS[document_id], [], 0
    for line in text.split("\n"):
        spans.append(Span(begin, begin + len(line)))
        begin += len(line) + 1
    return Document(
        document_id, document_id.title(), text, tuple(spans), f"{document_id}.txt", {"n": len(text)}
    )


def tiny_rows(text: str) -> ParagraphRows:
    """Every word starts and ends a phrase; codes follow from the place of the word."""
    words = text.split(" ")
    first = np.array([len(" ".join([*words[:n], ""])) for n in range(len(words))], np.uint32)
    last = first + np.array([len(word) for word in words], np.uint32)
    numbers = np.arange(len(words), dtype=np.uint32)
    codes = (first[:, None].astype(np.int64) * 7 + np.arange(8) * 31) % 256 - 128
    codes = codes.astype(np.int8)
    return ParagraphRows(
        len(words),
        *(numbers, first, codes[:, :4], codes[:, 4:6]),
        *(numbers, last, -codes[:, :4], codes[:, 6:]),
    )


def make_tiny_index(folder: Path) -> None:
    """Two segments, one document deleted."""
    settings = WriterSettings(policy=MergePolicy(fanout=100, most_deleted=1.0))
    with IndexWriter.create(folder, MODEL, settings=settings) as writer:
        for names in (("warsaw", "beyonce", "gone"), ("who",)):
            for name in names:
                document = tiny_document(name)
                writer.add(document, [tiny_rows(text) for text in document.paragraph_texts()])
            writer.commit()
        writer.delete("gone")
        writer.commit()


def pack(folder: Path, archive: Path) -> None:
    """All files of an index in one, for it has many small ones; without times."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "lock":
                info = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                packed.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        make_tiny_index(Path(scratch) / "index")
        pack(Path(scratch) / "index", Path(sys.argv[1]))
