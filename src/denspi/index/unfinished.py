"""The changes of a writer that are flushed and not committed: found again, recorded as they grow, dropped.

Owns the file of `building`. A flush appends one line to it, so that what a build records grows with the build
and not with its square; only the first record of a writer, and one after a merge, is a file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError, InputError, StorageError
from denspi.index.building import Building, Step
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.leftovers import BUILDING
from denspi.index.manifest import MANIFEST_LIMIT_BYTES, ModelRecord, NewerFormatError
from denspi.index.working import WorkingSegment


class UnfinishedError(StorageError):
    """Somebody's changes were flushed and not committed; they could still be gone on with."""

    @classmethod
    def at(cls, directory: Directory) -> UnfinishedError:
        """Its one line."""
        return cls(
            f"{directory.path}: holds unfinished changes; first go on with the command that began them"
        )


def find_unfinished(directory: Directory, generation: int, model: ModelRecord) -> Building | None:
    """What an interrupted writer had flushed on top of `generation`; InputError if with another model.

    NewerFormatError if it was a newer denspi: its work would be removed.
    """
    try:
        content = directory.read("", BUILDING, MANIFEST_LIMIT_BYTES)
        building = Building.of(content, str(directory.path / BUILDING)) if content else None
    except NewerFormatError:
        raise
    except IndexDamagedError:
        return None  # nothing that was committed is in it
    if building is None or building.base != generation:
        return None
    if not building.model.gives_the_rows_of(model):
        theirs, ours = (
            f"{each.name!r} ({each.fingerprint[:12]}, {each.precision})" for each in (building.model, model)
        )
        raise InputError(
            f"{directory.path}: the unfinished build is with model {theirs}, not {ours}; "
            "go on with that model, or choose another folder"
        )
    return building


class UnfinishedLog:
    """Belongs to one writer; what it has recorded is what the file says."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._can_append = False
        self._written: list[PartRef] = []
        self._deleted: dict[str, NDArray[np.bool_]] = {}  # [document] by folder of the segment

    def record(
        self, base: int, next_part: int, model: ModelRecord, segments: Sequence[WorkingSegment]
    ) -> None:
        """Durably: the segments that are not committed yet, and what is deleted in any of them."""
        written = [each for each in segments if not each.is_committed]
        changed = {each.reader.name: each.is_deleted for each in segments if each.is_changed}
        if not (self._can_append and self._has_grown(written, changed)):
            self._written, self._deleted = [], {}
        step = Step(
            next_part,
            tuple((each.rows, each.reader.counts) for each in written[len(self._written) :]),
            {name: numbers for name, mask in changed.items() if (numbers := self._new_in(name, mask))},
        )
        is_first, self._can_append = not self._written, False  # until all of it is there
        if is_first:
            self._directory.publish(BUILDING, Building(base, model, (step,)).encoded())
        else:
            self._directory.append(BUILDING, step.encoded())
        self._written = [each.rows for each in written]
        self._deleted = {name: mask.copy() for name, mask in changed.items()}
        self._can_append = True

    def drop(self) -> None:
        """There is nothing to go on with any more."""
        self._can_append = False
        self._directory.remove_file(BUILDING)

    def _has_grown(self, written: Sequence[WorkingSegment], changed: dict[str, NDArray[np.bool_]]) -> bool:
        """Whether all that is recorded still holds: merges replace segments, a restored document returns."""
        if [each.rows for each in written[: len(self._written)]] != self._written:
            return False
        return all(
            name in changed and not (mask & ~changed[name]).any() for name, mask in self._deleted.items()
        )

    def _new_in(self, name: str, mask: NDArray[np.bool_]) -> tuple[int, ...]:
        known = self._deleted.get(name)
        return tuple(np.flatnonzero(mask if known is None else mask & ~known).tolist())
