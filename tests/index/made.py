"""Documents with random rows, and the record of a model that never was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from denspi.index import IndexWriter, ModelRecord, ParagraphRows, WriterSettings
from denspi.types import Document, Span

MODEL = ModelRecord("tiny", "f" * 64, vector_dim=6, coherency_dim=2, quantizer="a" * 64)
COMPACT = replace(MODEL, quantizer="b" * 64, precision="compact", vector_bytes=4, key_bytes=1)
WORDS = [
    "warsaw",
    "vistula",
    "river",
    "old",
    "town",
    "rebuilt",
    "war",
    "capital",
    "album",
    "band",
    "the",
    "of",
]


def make_rows(text: str, generator: np.random.Generator, model: ModelRecord = MODEL) -> ParagraphRows:
    """Rows of some of the words of `text`."""
    begins = [n for n, sign in enumerate(text) if sign != " " and (n == 0 or text[n - 1] == " ")]
    lengths = [len(word) for word in text.split(" ") if word]
    words = np.arange(len(begins), dtype=np.uint32)
    first, last = np.array(begins, np.uint32), np.array(begins, np.uint32) + np.array(lengths, np.uint32)
    starts, ends = words[generator.random(len(words)) < 0.6], words[generator.random(len(words)) < 0.5]

    layout = model.layout

    def codes(count: int, width: int) -> np.ndarray:
        limits = np.iinfo(layout.dtype)
        return generator.integers(limits.min, limits.max + 1, (count, width), layout.dtype)

    def pair(count: int) -> tuple[np.ndarray, np.ndarray]:
        return codes(count, layout.vector_bytes), codes(count, layout.key_bytes)

    return ParagraphRows(
        len(words), starts, first[starts], *pair(len(starts)), ends, last[ends], *pair(len(ends))
    )


def make_document(document_id: str, paragraphs: Sequence[str], **more: object) -> Document:
    """Paragraphs between other text, so that spans and bytes differ."""
    text, spans = "« ", []
    for paragraph in paragraphs:
        spans.append(Span(len(text), len(text) + len(paragraph)))
        text += paragraph + "\n—\n"
    return Document(document_id, f"Title {document_id}", text, tuple(spans), **more)  # type: ignore[arg-type]


Made = tuple[Document, list[ParagraphRows]]


def make(
    number: int, paragraphs: int = 2, words: int = 12, version: int = 0, model: ModelRecord = MODEL
) -> Made:
    """The same document for the same numbers."""
    generator = np.random.default_rng([number, version])
    texts = [" ".join(generator.choice(WORDS, words)) + f" é{number}v{version}" for _ in range(paragraphs)]
    document = make_document(
        f"d{number}", texts, source=f"file{number}.txt", metadata={"number": number, "version": version}
    )
    return document, [make_rows(text, generator, model) for text in texts]


def build(
    folder: Path, made: Iterable[Made], settings: WriterSettings | None = None, model: ModelRecord = MODEL
) -> None:
    """A committed index."""
    with IndexWriter.create(folder, model, settings=settings) as writer:
        for document, rows in made:
            writer.add(document, rows)
        writer.commit()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
