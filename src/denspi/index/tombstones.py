"""Which documents of a segment are deleted: a part with their numbers, and masks made from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.index.components import PartRef
from denspi.index.part import PartReader, PartWriter


def write_tombstones(part: PartWriter, is_deleted: NDArray[np.bool_]) -> PartRef:
    """Store the numbers of the deleted documents, ascending."""
    part.whole("deleted", np.flatnonzero(is_deleted).astype(np.uint32))
    return part.finish()


def read_tombstones(part: PartReader | None, document_count: int) -> NDArray[np.bool_]:
    """For each document of a segment whether it is deleted."""
    is_deleted = np.zeros(document_count, np.bool_)
    if part is not None:
        numbers = part.get("deleted", "uint32").whole()
        if len(numbers) and (int(numbers[-1]) >= document_count or not np.all(numbers[1:] > numbers[:-1])):
            raise IndexDamagedError(f"{part.path / 'deleted'}: names no documents of its segment; damaged")
        is_deleted[numbers] = True
    return is_deleted
