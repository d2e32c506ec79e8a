"""What may lie in an index folder, and which of it belongs to nobody. For the writer, under its lock."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from denspi.errors import IndexLockedError
from denspi.index.components import PART_NAME
from denspi.index.directory import NEW, Directory
from denspi.index.manifest import MANIFEST

BUILDING = "building.jsonl"
LOCK = "lock"
MERGE_LOCK = "merge.lock"
MERGING = "merging"
"""The folder that a merge beside the writer copies into."""

_OURS = {MANIFEST, BUILDING, LOCK, MERGE_LOCK, MERGING, MANIFEST + NEW, BUILDING + NEW}


def strangers(entries: Sequence[str]) -> list[str]:
    """Names that no index has."""
    return [name for name in entries if name not in _OURS and not PART_NAME.fullmatch(name)]


def remove_unnamed(directory: Directory, named: Collection[str]) -> None:
    """Remove the parts that are not `named` and that no reader holds."""
    for name in directory.entries():
        if PART_NAME.fullmatch(name) and name not in named:
            directory.remove_folder(name)


def remove_leftovers(directory: Directory, named: Collection[str]) -> None:
    """Remove whatever a killed writer or merge left behind."""
    entries = directory.entries()
    for name in (MANIFEST + NEW, BUILDING + NEW):
        if name in entries:
            directory.remove_file(name)
    remove_unnamed(directory, named)
    if MERGING in entries:
        try:
            lock = directory.lock(MERGE_LOCK)
        except IndexLockedError:  # somebody is at it
            return
        directory.remove_folder(MERGING)
        lock.release()
