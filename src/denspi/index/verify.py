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
from denspi.index.lists import finding as list_finding
from denspi.index.manifest import MANIFEST, Manifest
from denspi.index.part import PartReader
from denspi.index.segment import SegmentReader, SideRows
from denspi.index.segment_writer import SIDES, count_runs, hash_id
from denspi.index.snapshot import Snapshot, open_snapshot, read_manifest_bytes
from denspi.index.verify_sparse import sparse_disagreements

_CHUNK_ROWS = 1 << 20
_PLACES, _TEXTS, _POSTINGS = ("{side}_words", "{side}_chars"), ("texts", "records"), (".npy",)
_READ_AGAIN = (*(name.format(side=side) for side in SIDES for name in _PLACES), *_TEXTS, *_POSTINGS)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was read, and what is wrong: one line each, which names the component."""

    generation: int | None
    components: int
    size_bytes: int
    problems: tuple[str, ...]


def verify(folder: Path, on_bytes: Callable[[int], None] = lambda _: None) -> VerifyReport:
    """Check everything that the current generation consists of. Never raises for damage.

    `on_bytes` hears of all that has been read, in an undamaged index of `bytes_to_verify` together.
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
        problems = list(_disagreements(snapshot, on_bytes))
    components = sum(len(part.components) + 1 for part in snapshot.parts) + 1
    return VerifyReport(snapshot.generation, components, snapshot.size_bytes, tuple(problems))


def bytes_to_verify(folder: Path) -> int:
    """How much `verify` reads where nothing is damaged: all, and some of it again; 0 if it cannot tell."""
    try:
        snapshot = open_snapshot(Directory(folder))
    except DenspiError:  # which `verify` will name
        return 0
    once = sum(component.size_bytes for part in snapshot.parts for component in part.components)
    return once + sum(segment.stored_bytes(*_READ_AGAIN) for segment in snapshot.segments)


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


def _disagreements(snapshot: Snapshot, on_bytes: Callable[[int], None]) -> Iterator[str]:
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
            for side, rows in zip(SIDES, (segment.starts, segment.ends), strict=True):
                yield from _side_disagreements(segment, rows, side)
                on_bytes(segment.stored_bytes(*(name.format(side=side) for name in _PLACES)))
            yield from _document_disagreements(segment, on_bytes)
            yield from sparse_disagreements(segment)
            if segment.start_lists and (problem := list_finding(segment.start_lists)):
                yield f"{segment.start_lists.rows.name}: {problem}"
            on_bytes(segment.stored_bytes(*_POSTINGS))
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


def _document_disagreements(segment: SegmentReader, on_bytes: Callable[[int], None]) -> Iterator[str]:
    hashes, size_bytes, told_bytes = segment.hashes, segment.stored_bytes(*_TEXTS), 0
    for number in range(segment.counts.documents):
        document = segment.document(number)
        if hash_id(document.document_id) != hashes[number]:
            yield f"{segment.name}: document {number} is not found by its id"
        first, last = segment.document_paragraphs[number : number + 2].tolist()
        for paragraph, text in zip(range(first, last), document.paragraph_texts(), strict=True):
            if segment.paragraph_text(paragraph) != text:
                yield f"{segment.paragraph_bytes.name}: paragraph {paragraph} is cut in another place"
            if segment.paragraph_runs[paragraph] != count_runs(text):
                yield f"{segment.name}: paragraph_runs miscounts paragraph {paragraph}"
        read_bytes = size_bytes * (number + 1) // segment.counts.documents  # texts may be packed together
        on_bytes(read_bytes - told_bytes)
        told_bytes = read_bytes
