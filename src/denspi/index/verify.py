"""Reads every byte of an index and says what is wrong with it. Changes nothing.

First the checksums of all components, so that damage is named where it is; then, in segments without any,
whether what they say makes sense together: what a reader would otherwise find out only on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from denspi.errors import DenspiError
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.manifest import MANIFEST, Manifest
from denspi.index.part import PartReader
from denspi.index.segment import SegmentReader, SideRows
from denspi.index.segment_writer import hash_id
from denspi.index.snapshot import Snapshot, open_snapshot, read_manifest_bytes
from denspi.index.verify_sparse import sparse_disagreements

_CHUNK_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was read, and what is wrong: one line each, which names the component."""

    generation: int | None
    components: int
    size_bytes: int
    problems: tuple[str, ...]


def verify(folder: Path, on_bytes: Callable[[int], None] = lambda _: None) -> VerifyReport:
    """Check everything that the current generation consists of. Never raises for damage.

    `on_bytes` hears of the bytes of each component that has been read.
    """
    directory = Directory(folder)
    try:
        content = read_manifest_bytes(directory)
        manifest = Manifest.of(content, str(folder / MANIFEST))
    except DenspiError as error:
        return VerifyReport(None, 0, 0, (str(error),))
    try:
        snapshot = open_snapshot(directory)
    except DenspiError as error:  # some table; go on part by part and name them all
        return _damaged_report(directory, manifest, len(content), str(error), on_bytes)
    problems = [problem for part in snapshot.parts for problem in _damage(part, on_bytes)]
    if not problems:
        problems = list(_disagreements(snapshot))
    components = sum(len(part.components) + 1 for part in snapshot.parts) + 1
    return VerifyReport(snapshot.generation, components, snapshot.size_bytes, tuple(problems))


def _damaged_report(
    directory: Directory,
    manifest: Manifest,
    manifest_bytes: int,
    finding: str,
    on_bytes: Callable[[int], None],
) -> VerifyReport:
    problems: list[str] = []
    components, size_bytes = 1, manifest_bytes
    for ref in manifest.parts:
        part = _opened(directory, ref, problems)
        if part is not None:
            problems += _damage(part, on_bytes)
            components += len(part.components) + 1
            size_bytes += part.size_bytes
    return VerifyReport(manifest.generation, components, size_bytes, tuple(problems or [finding]))


def _opened(directory: Directory, ref: PartRef, problems: list[str]) -> PartReader | None:
    try:
        return PartReader(directory, ref)
    except DenspiError as error:
        problems.append(str(error))
        return None


def _damage(part: PartReader, on_bytes: Callable[[int], None]) -> Iterator[str]:
    """One line for each component whose file is missing, cut or changed."""
    for component in part.components:
        try:
            part.get(component.name, component.dtype, columns=component.columns).check_all()
        except DenspiError as error:
            yield str(error)
        on_bytes(component.size_bytes)


def _disagreements(snapshot: Snapshot) -> Iterator[str]:
    """What undamaged components say that cannot be."""
    live_hashes: list[int] = []
    try:
        if snapshot.frequencies.fingerprint() != snapshot.manifest.fit.fingerprint:
            yield f"{snapshot.manifest.fit.part.folder}: frequencies are not those that the manifest names"
        if finding := snapshot.frequencies.table.finding():
            yield f"{snapshot.manifest.fit.part.folder}: in the frequencies, {finding}"
        for segment, entry in zip(snapshot.segments, snapshot.manifest.segments, strict=True):
            if segment.counts_of(~segment.live) != entry.deleted:
                yield f"{segment.name}: the manifest miscounts its deleted documents"
            if segment.counts_of(np.ones(len(segment.live), np.bool_)) != entry.counts:
                yield f"{segment.name}: the manifest miscounts what it holds"
            yield from _side_disagreements(segment, segment.starts, "start")
            yield from _side_disagreements(segment, segment.ends, "end")
            yield from _document_disagreements(segment)
            yield from sparse_disagreements(segment)
            live_hashes += segment.hashes[segment.live].tolist()
    except DenspiError as error:
        yield str(error)
    if len(set(live_hashes)) != len(live_hashes):
        yield f"{snapshot.manifest.segments[0].rows.folder}: two live documents have the same id hash"


def _side_disagreements(segment: SegmentReader, rows: SideRows, side: str) -> Iterator[str]:
    words = segment.paragraph_words.whole().astype(np.int64)
    characters = np.diff(segment.paragraph_chars.whole().astype(np.int64), axis=1).ravel()
    for begin in range(0, len(rows.words), _CHUNK_ROWS):
        end = min(begin + _CHUNK_ROWS, len(rows.words))
        paragraphs = rows.paragraphs_of(np.arange(begin, end))
        own = rows.words.rows(begin, end).astype(np.int64)
        ascends = (own[1:] > own[:-1]) | (paragraphs[1:] != paragraphs[:-1])
        if (own >= words[paragraphs]).any() or not ascends.all():
            yield f"{rows.words.name}: {side} words do not ascend within their paragraphs"
        if (rows.chars.rows(begin, end) > characters[paragraphs]).any():
            yield f"{rows.chars.name}: {side} characters leave their paragraphs"


def _document_disagreements(segment: SegmentReader) -> Iterator[str]:
    hashes = segment.hashes
    for number in range(segment.counts.documents):
        document = segment.document(number)
        if hash_id(document.document_id) != hashes[number]:
            yield f"{segment.name}: document {number} is not found by its id"
        first, last = segment.document_paragraphs[number : number + 2].tolist()
        for paragraph, text in zip(range(first, last), document.paragraph_texts(), strict=True):
            if segment.paragraph_text(paragraph) != text:
                yield f"{segment.paragraph_bytes.name}: paragraph {paragraph} is cut in another place"
