"""One generation of an index, as a reader holds it: immutable, and undisturbed by whatever a writer does.

Opening reads the manifest and the parts' tables, nothing else. A reader takes a shared lock on each part and
then looks at the manifest again: if it is still the same, every part was live when the lock was already held,
and a writer deletes no part that somebody holds. Nothing is written, so a read-only folder will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from denspi.errors import IndexDamagedError, InputError
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.leftovers import BUILDING
from denspi.index.manifest import MANIFEST, MANIFEST_LIMIT_BYTES, Counts, Manifest, ModelRecord, SegmentEntry
from denspi.index.part import PartReader
from denspi.index.segment import SegmentReader
from denspi.index.sparse_part import open_frequencies
from denspi.sparse.tfidf import UnitFrequencies
from denspi.types import Document

_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A live document: the number of its segment in the snapshot, and its own in the segment."""

    segment: int
    document: int


class Snapshot:
    """Keep it as long as you like; `refresh` gives the newest one."""

    def __init__(
        self, directory: Directory, manifest: Manifest, content: bytes, parts: Mapping[PartRef, PartReader]
    ) -> None:
        self._directory = directory
        self._content = content
        self._parts = dict(parts)
        self.manifest = manifest
        self.segments = tuple(self._reader(entry) for entry in manifest.segments)

    @classmethod
    def open(cls, folder: Path) -> Snapshot:
        """The newest committed generation."""
        return open_snapshot(Directory(folder))

    def refresh(self) -> Snapshot:
        """This one if nothing was committed since; otherwise the newest, sharing all that is unchanged."""
        content = read_manifest_bytes(self._directory)
        return self if content == self._content else open_snapshot(self._directory, self._parts)

    @property
    def generation(self) -> int:
        """Grows by one with each commit."""
        return self.manifest.generation

    @property
    def model(self) -> ModelRecord:
        """The model that the rows are from."""
        return self.manifest.model

    @property
    def live(self) -> Counts:
        """What can be found: documents, paragraphs, words, starts, ends."""
        return self.manifest.live

    @cached_property
    def live_runs(self) -> int:
        """Words of the live documents as people count them: runs between white space."""
        return sum(int(each.paragraph_runs[each.live_paragraphs].sum()) for each in self.segments)

    @property
    def size_bytes(self) -> int:
        """Bytes of everything that this generation consists of."""
        return len(self._content) + sum(part.size_bytes for part in self._parts.values())

    @cached_property
    def frequencies(self) -> UnitFrequencies:
        """The frequencies that questions are weighted with, pinned until the next fit."""
        return open_frequencies(self._parts[self.manifest.fit.part])

    @property
    def parts(self) -> tuple[PartReader, ...]:
        """Every part of this generation."""
        return tuple(self._parts.values())

    def find(self, document_id: str) -> DocumentPlace | None:
        """Where a document is; None if there is none with this id."""
        for number, segment in enumerate(self.segments):
            document = segment.find(document_id)
            if document is not None:
                return DocumentPlace(number, document)
        return None

    def document(self, document_id: str) -> Document | None:
        """A document by its id."""
        place = self.find(document_id)
        return None if place is None else self.segments[place.segment].document(place.document)

    def close(self) -> None:
        """Let the parts be deleted at once; for one who shares this snapshot with nobody.

        Otherwise they are let go when the last snapshot that has them is collected.
        """
        for part in self._parts.values():
            part.release()

    def _reader(self, entry: SegmentEntry) -> SegmentReader:
        return SegmentReader(
            entry.counts,
            self.manifest.model,
            self._parts[entry.rows],
            self._parts[entry.norms],
            self._parts[entry.tombstones] if entry.tombstones else None,
            self._parts[entry.lists] if entry.lists else None,
            self.manifest.fit.fingerprint,
        )


def open_snapshot(directory: Directory, known: Mapping[PartRef, PartReader] | None = None) -> Snapshot:
    """The newest generation; parts in `known` are used again."""
    for _ in range(_ATTEMPTS):
        content = read_manifest_bytes(directory)
        manifest = Manifest.of(content, str(directory.path / MANIFEST))
        try:
            parts = {ref: (known or {}).get(ref) or PartReader(directory, ref) for ref in manifest.parts}
        except IndexDamagedError:
            # A writer may have replaced the manifest and deleted the part just now.
            if read_manifest_bytes(directory) == content:
                raise
            continue
        if read_manifest_bytes(directory) == content:
            return Snapshot(directory, manifest, content, parts)
    raise IndexDamagedError(f"{directory.path}: changes faster than it can be opened; try again")


def read_manifest_bytes(directory: Directory) -> bytes:
    """The content of manifest.json, or what there is instead of an index."""
    content = directory.read("", MANIFEST, MANIFEST_LIMIT_BYTES)
    if content is not None:
        return content
    if not directory.path.is_dir():
        raise InputError(f"{directory.path}: no such index; build one with: denspi index")
    if (directory.path / BUILDING).exists():
        raise InputError(f"{directory.path}: an unfinished build; go on with the command that began it")
    raise InputError(f"{directory.path}: not an index (no {MANIFEST}); build one with: denspi index")
