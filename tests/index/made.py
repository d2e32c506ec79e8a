"""Documents with random rows, and the record of a model that never was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from denspi.index import IndexWriter, ModelRecord, ParagraphRows, WriterSettings
from denspi.types import Document, Span

MODEL = ModelRecord("tiny", "f" * 64, vector_dim=6, coherency_dim=2, quantizer="a" * 64)
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

    def codes(count: int, dim: int) -> np.ndarray:
        return generator.integers(-128, 128, (count, dim), np.int8)

    return ParagraphRows(
        len(words),
        *(
            starts,
            first[starts],
            codes(len(starts), model.vector_dim),
            codes(len(starts), model.coherency_dim),
        ),
        *(ends, last[ends], codes(len(ends), model.vector_dim), codes(len(ends), model.coherency_dim)),
    )


def make_document(document_id: str, paragraphs: Sequence[str], **more: object) -> Document:
    """Paragraphs between other text, so that spans and bytes differ."""
    text, spans = "« ", []
    for paragraph in paragraphs:
        spans.append(Span(len(text), len(text) + len(paragraph)))
        text += paragraph + "\n—\n"
    return Document(document_id, f"Title {document_id}", text, tuple(spans), **more)  # type: ignore[arg-type]


Made = tuple[Document, list[ParagraphRows]]


def make(number: int, paragraphs: int = 2, words: int = 12, version: int = 0) -> Made:
    """The same document for the same numbers."""
    generator = np.random.default_rng([number, version])
    texts = [" ".join(generator.choice(WORDS, words)) + f" é{number}v{version}" for _ in range(paragraphs)]
    document = make_document(
        f"d{number}", texts, source=f"file{number}.txt", metadata={"number": number, "version": version}
    )
    return document, [make_rows(text, generator) for text in texts]


def build(folder: Path, made: Iterable[Made], settings: WriterSettings | None = None) -> None:
    """A committed index."""
    with IndexWriter.create(folder, MODEL, settings=settings) as writer:
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
