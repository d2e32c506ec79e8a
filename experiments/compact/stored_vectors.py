"""The vectors of every word of a corpus in float32 on the disk: encoded once, in order, by all cores.

A folder holds one flat file a field and a log with a line for each document that is in all of them. Whatever
is interrupted goes on after the last whole line. Nothing is filtered and nothing is rounded, so every index
that is made from it equals the one that the product would have made.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from denspi.build.long_paragraphs import with_short_paragraphs
from denspi.build.model import IndexModel
from denspi.corpus import read_corpus
from denspi.types import Document
from denspi.vectors import ParagraphVectors

FIELDS = tuple(ParagraphVectors.__dataclass_fields__)
_LOG = "documents.jsonl"
_encoder = None


@dataclass(frozen=True)
class StoredVectors:
    """All words of all documents, one below the other; fields are mapped."""

    documents: list[Document]
    words: dict[str, np.ndarray]  # the fields of ParagraphVectors, [word, ...]
    lengths: np.ndarray  # [paragraph] words of each, all documents one after another

    def of_documents(self) -> Iterator[tuple[Document, list[ParagraphVectors]]]:
        """Each document with the vectors of its paragraphs."""
        ends, paragraph = np.concatenate([[0], np.cumsum(self.lengths)]), 0
        for document in self.documents:
            cut = [
                ParagraphVectors(**{name: self.words[name][ends[p] : ends[p + 1]] for name in FIELDS})
                for p in range(paragraph, paragraph + len(document.paragraphs))
            ]
            paragraph += len(cut)
            yield document, cut


def read_documents(paths: list[Path], limit: int | None) -> list[Document]:
    """As `denspi index` reads them; with a limit, the last so many, which are those that dev asks about."""
    found = [with_short_paragraphs(item) for item in read_corpus(paths) if isinstance(item, Document)]
    return found if limit is None else found[-limit:]


def encode_once(model: IndexModel, documents: list[Document], folder: Path) -> StoredVectors:
    """Encode what is not in the folder yet, and say how far it is."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / _LOG
    header = {"model": model.record.fingerprint, "documents": len(documents)}
    done = _done(log, header, [each.document_id for each in documents])
    if not done:
        log.write_text(json.dumps(header) + "\n")
    shapes = {} if not done else done[0]["fields"]
    _cut(folder, shapes, sum(sum(each["lengths"]) for each in done))
    began, words_before = time.monotonic(), sum(sum(each["lengths"]) for each in done)
    words = words_before
    texts = [tuple(each.paragraph_texts()) for each in documents]
    total = sum(len(text) for each in texts for text in each)
    with (
        multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0)), _load, (model,)) as pool,
        log.open("a") as log_file,
    ):
        chars = sum(len(text) for each in texts[: len(done)] for text in each)
        for number, vectors in enumerate(pool.imap(_encode, texts[len(done) :]), len(done)):
            joined = {name: np.concatenate([getattr(each, name) for each in vectors]) for name in FIELDS}
            for name, values in joined.items():
                with (folder / name).open("ab") as file:
                    file.write(np.ascontiguousarray(values).tobytes())
            line = {
                "id": documents[number].document_id,
                "lengths": [len(each) for each in vectors],
                "fields": {name: [v.dtype.name, *v.shape[1:]] for name, v in joined.items()},
            }
            log_file.write(json.dumps(line) + "\n")
            log_file.flush()
            done.append(line)
            words, chars = words + sum(line["lengths"]), chars + sum(map(len, texts[number]))
            rate = (words - words_before) / (time.monotonic() - began)
            left = (total - chars) * (words / chars) / rate / 60
            print(
                f"\rencoded {number + 1}/{len(documents)} documents, {words:,} words and signs, "
                f"{rate:,.0f}/s, {left:.0f} min left ",
                end="",
                flush=True,
            )
    print()
    fields = {
        name: np.memmap(folder / name, dtype, "r", shape=(words, *shape))
        for name, (dtype, *shape) in done[0]["fields"].items()
    }
    return StoredVectors(documents, fields, np.array([n for each in done for n in each["lengths"]]))


def _done(log: Path, header: dict, ids: list[str]) -> list[dict]:
    if not log.exists():
        return []
    first, *lines = [
        json.loads(line) for line in log.read_text().splitlines(keepends=True) if line[-1] == "\n"
    ]
    if first != header or [each["id"] for each in lines] != ids[: len(lines)]:
        raise SystemExit(f"{log.parent}: holds the vectors of another model or other documents; remove it")
    log.write_text("".join(json.dumps(each) + "\n" for each in (first, *lines)))
    return lines


def _cut(folder: Path, fields: dict, words: int) -> None:
    """Drop what was written of a document that is not in the log."""
    for name in FIELDS:
        with (folder / name).open("ab") as file:
            dtype, *shape = fields.get(name, ("bool",))
            file.truncate(words * int(np.prod(shape, initial=1)) * np.dtype(dtype).itemsize)


def _load(model: IndexModel) -> None:
    global _encoder
    _encoder = model.encoder()


def _encode(texts: tuple[str, ...]) -> list[ParagraphVectors]:
    assert _encoder is not None
    return list(_encoder.encode_paragraphs(texts))
