"""What an index holds and what it costs, from tables and one number a paragraph: reads no row, no text."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from denspi.index.manifest import Counts
from denspi.index.snapshot import Snapshot

_SEGMENT_COMPONENTS = {
    "starts": "start vectors",
    "ends": "end vectors",
    "start_keys": "coherency keys",
    "end_keys": "coherency keys",
    "start_words": "places of rows",
    "start_chars": "places of rows",
    "end_words": "places of rows",
    "end_chars": "places of rows",
    "texts": "texts",
    "texts_blocks": "texts",
    "texts_blocks_4096": "texts",
}
_PARTS = {
    "norms": "sparse norms",
    "fit": "n-gram frequencies",
    "tombstones": "tombstones",
    "lists": "vector index",
}
_POSTINGS, _DOCUMENTS, _CHECKSUMS = "postings", "documents and paragraphs", "manifest and checksums"


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One generation in numbers. Counts are of live documents; bytes are of everything that is stored."""

    folder: str
    generation: int
    model: str
    fingerprint: str
    precision: str
    documents: int
    paragraphs: int
    words: int  # runs between white space, as the paper's and all our sizes count them
    words_and_signs: int  # what phrases are made of: runs of letters and digits, and single signs
    starts: int  # kept start rows
    ends: int
    segments: int
    deleted_documents: int  # still stored, until a merge
    bytes: int
    bytes_by_component: dict[str, int]  # largest first

    @property
    def deleted_share(self) -> float:
        """Of the stored documents."""
        return self.deleted_documents / max(1, self.documents + self.deleted_documents)

    @property
    def bytes_per_word(self) -> float:
        """Of live words."""
        return self.bytes / max(1, self.words)

    def as_json(self) -> dict[str, object]:
        """What `denspi info --json` prints."""
        shares = {
            "deleted_share": round(self.deleted_share, 4),
            "bytes_per_word": round(self.bytes_per_word, 2),
        }
        return asdict(self) | shares


def describe(folder: str, snapshot: Snapshot) -> IndexInfo:
    """The numbers of a snapshot."""
    live, model = snapshot.live, snapshot.model
    deleted = sum((entry.deleted for entry in snapshot.manifest.segments), Counts())
    by_component = _bytes_by_component(snapshot)
    return IndexInfo(
        folder=folder,
        generation=snapshot.generation,
        model=model.name,
        fingerprint=model.fingerprint,
        precision=model.precision,
        documents=live.documents,
        paragraphs=live.paragraphs,
        words=snapshot.live_runs,
        words_and_signs=live.words,
        starts=live.starts,
        ends=live.ends,
        segments=len(snapshot.segments),
        deleted_documents=deleted.documents,
        bytes=snapshot.size_bytes,
        bytes_by_component=by_component,
    )


def _bytes_by_component(snapshot: Snapshot) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in snapshot.parts:
        kind = part.ref.folder.partition("-")[2]
        for component in part.components:
            name = _PARTS.get(kind) or _segment_component(component.name)
            found[name] = found.get(name, 0) + component.size_bytes
    found[_CHECKSUMS] = snapshot.size_bytes - sum(found.values())
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _segment_component(name: str) -> str:
    if name.endswith(".npy"):
        return _POSTINGS
    return _SEGMENT_COMPONENTS.get(name, _DOCUMENTS)
