"""An index of any size from one of real documents: its documents again and again, their vectors with noise.

Written by the project's own writer, as any other index is. The first copy is the real one. Of later copies
every code of a vector is moved by noise, so that no two rows are equal; texts, and with them the postings,
come again as they are, under other ids.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from denspi import Index
from denspi.index import IndexWriter, Snapshot
from denspi.index.rows import ParagraphRows
from denspi.index.segment import SegmentReader
from denspi.index.writer import WriterSettings
from denspi.types import Document

FLUSH_WORDS = 1 << 21  # some 450 MB of rows in memory
BYTES_PER_START = 420  # of an int8 index with its ends, texts, postings and lists
Built = tuple[Document, list[ParagraphRows]]


@dataclass(frozen=True)
class GrowthSettings:
    """What is built."""

    starts: int  # at least
    noise: float = 3.0  # standard deviation, in steps of the code
    seed: int = 0


def build_grown(
    source: Path, folder: Path, settings: GrowthSettings, show: Callable[[int], None] = lambda starts: None
) -> None:
    """Write an index of so many starts; refused where the disk has no room for it and for its merge."""
    needed, free = 2 * BYTES_PER_START * settings.starts, shutil.disk_usage(folder.parent).free
    if needed > free:
        raise SystemExit(
            f"{folder}: {settings.starts:,} starts need {needed >> 30} GiB with their merge, the disk has"
            f" {free >> 30}; name a --scratch with more"
        )
    snapshot = Snapshot.open(source)
    if snapshot.model.precision != "int8":
        raise SystemExit(f"{source}: {snapshot.model.precision}; noise is added to int8 rows alone")
    random, starts, copy = np.random.default_rng(settings.seed), 0, 0
    with IndexWriter.create(folder, snapshot.model, settings=WriterSettings(FLUSH_WORDS)) as writer:
        while starts < settings.starts:
            for document, rows in documents(snapshot):
                noisy = [with_noise(each, settings.noise, random) for each in rows] if copy else rows
                writer.add(replace(document, document_id=f"{document.document_id} ~{copy}"), noisy)
                starts += sum(len(each.starts) for each in rows)
                if starts >= settings.starts:
                    break
            copy += 1
            show(starts)
        writer.commit()
    Index.open(folder).merge()  # and the vector index of what is merged


def documents(snapshot: Snapshot) -> Iterator[Built]:
    for segment in snapshot.segments:
        for number in np.flatnonzero(segment.live).tolist():
            first, last = segment.document_paragraphs[number : number + 2].tolist()
            yield segment.document(number), [own_rows(segment, each) for each in range(first, last)]


def own_rows(segment: SegmentReader, paragraph: int) -> ParagraphRows:
    """Rows in memory of their own: the source's pages may go."""
    rows = segment.rows_of(paragraph)
    return replace(
        rows,
        starts=rows.starts.copy(),
        start_keys=rows.start_keys.copy(),
        ends=rows.ends.copy(),
        end_keys=rows.end_keys.copy(),
    )


def with_noise(rows: ParagraphRows, noise: float, random: np.random.Generator) -> ParagraphRows:
    def moved(codes: np.ndarray) -> np.ndarray:
        shift = random.standard_normal(codes.shape, np.float32) * np.float32(noise)
        return np.clip(np.rint(codes + shift), -128, 127).astype(np.int8)

    return replace(rows, starts=moved(rows.starts), ends=moved(rows.ends))
