"""What may lie in an index folder, and which of it belongs to nobody. For the writer, under its lock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from denspi.errors import IndexLockedError, StorageError
from denspi.index.building import Building
from denspi.index.components import PART_NAME, TABLE_LIMIT_BYTES
from denspi.index.directory import LEASED, NEW, Directory
from denspi.index.jsonfields import Fields, parse_json
from denspi.index.locks import names_holder
from denspi.index.manifest import MANIFEST, MANIFEST_LIMIT_BYTES

BUILDING = "building.jsonl"
LOCK = "lock"
MERGE_LOCK = "merge.lock"
MERGING = "merging"
"""The folder that a merge beside the writer copies into."""

_HOLDER_LIMIT_BYTES = 512
_OURS = {MANIFEST, BUILDING, LOCK, MERGE_LOCK, MERGING, MANIFEST + NEW, BUILDING + NEW}


def strangers(entries: Sequence[str]) -> list[str]:
    """Names that no index has."""
    return [name for name in entries if name not in _OURS and not PART_NAME.fullmatch(name)]


def foreign_entry(directory: Directory) -> str | None:
    """An entry of a folder without a manifest that is not ours to remove; None where a build may begin.

    A name alone proves nothing. Ours is what lies beside a log of flushed segments, beside a lock file that
    names who was killed, or beside a part with its table; of anything else we only take what is empty.
    """
    entries = directory.entries()
    if others := strangers(entries):
        return others[0]
    if any(map(partial(_is_our_mark, directory), entries)):
        return None
    return next((name for name in entries if not _is_empty(directory.path / name)), None)


def _is_our_mark(directory: Directory, name: str) -> bool:
    try:
        if name == BUILDING:
            content = directory.read("", name, MANIFEST_LIMIT_BYTES)
            return bool(content and Building.of(content, name))
        if name in (LOCK, MERGE_LOCK):
            return names_holder(directory.read("", name, _HOLDER_LIMIT_BYTES) or b"")
        if PART_NAME.fullmatch(name):
            content = directory.read(name, LEASED, TABLE_LIMIT_BYTES)
            return bool(content and Fields(parse_json(content, name), name).count("block_bytes"))
    except StorageError:
        return False
    return False


def _is_empty(path: Path) -> bool:
    if path.is_symlink():
        return False
    return not any(path.iterdir()) if path.is_dir() else path.is_file() and not path.stat().st_size


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
        try:
            remove_merging(directory)
        finally:
            lock.release()


def remove_merging(directory: Directory) -> None:
    """Remove what a merge has copied, if it is still there; for the holder of the merge lock alone."""
    if MERGING in directory.entries():
        directory.remove_folder(MERGING)
