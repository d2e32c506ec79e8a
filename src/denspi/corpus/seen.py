"""Which ids a run has met, in 12 bytes an id: 64-bit hashes in a sorted array, with where each was first met.

Two different ids share a hash once in about 10^4 runs over all of Wikipedia; the second is then reported as a
duplicate rather than silently lost.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

BUFFERED_IDS = 1 << 17


class SeenIds:
    """Ids and the number of the place that had each first; `place` is any small number of the caller's."""

    def __init__(self, buffered_ids: int = BUFFERED_IDS) -> None:
        self._buffered_ids = buffered_ids
        self._recent: dict[int, int] = {}
        self._hashes = np.empty(0, dtype=np.uint64)  # [id], sorted
        self._places = np.empty(0, dtype=np.uint32)  # [id]

    def __len__(self) -> int:
        return len(self._recent) + len(self._hashes)

    def __contains__(self, document_id: str) -> bool:
        return self._place(_key(document_id)) is not None

    def add(self, document_id: str, place: int) -> int | None:
        """Remember the id; the place that had it before, or None if it is new."""
        key = _key(document_id)
        if (first := self._place(key)) is not None:
            return first
        self._recent[key] = place
        if len(self._recent) >= self._buffered_ids:
            self._merge()
        return None

    def _place(self, key: int) -> int | None:
        if key in self._recent:
            return self._recent[key]
        position = int(np.searchsorted(self._hashes, np.uint64(key)))
        if position < len(self._hashes) and int(self._hashes[position]) == key:
            return int(self._places[position])
        return None

    def _merge(self) -> None:
        keys = np.fromiter(self._recent.keys(), dtype=np.uint64, count=len(self._recent))
        places = np.fromiter(self._recent.values(), dtype=np.uint32, count=len(self._recent))
        order = np.argsort(keys)
        at = np.searchsorted(self._hashes, keys[order])
        self._hashes = np.insert(self._hashes, at, keys[order])
        self._places = np.insert(self._places, at, places[order])
        self._recent.clear()


def _key(document_id: str) -> int:
    digest = blake2b(document_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
