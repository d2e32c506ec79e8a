"""From the paths that a person gives to the files below them, in an order that never changes.

Names are sorted by code point, folder by folder. Hidden entries (a leading dot) and indexes of denspi, whose
texts would be read a second time, are left out and noted; links to files are followed, links to folders are
not (so there are no loops), which is reported.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from denspi.corpus.files import CorpusFile
from denspi.corpus.records import Note, Skipped
from denspi.errors import InputError

PathLike = str | os.PathLike[str]
_INDEX_FILES = ("manifest.json", "building.jsonl")  # of an index that is there, of one that is being built
_SEAL = b'{"content":{'  # how both begin: docs/index-format.md


def existing_paths(paths: PathLike | Iterable[PathLike]) -> tuple[Path, ...]:
    """The given path or paths; `InputError` if there is none, or one is neither a file nor a folder."""
    given = (paths,) if isinstance(paths, str | os.PathLike) else tuple(paths)
    found = tuple(Path(path) for path in given)
    if not found:
        raise InputError("no path given; name at least one file or folder")
    if any(os.fspath(path) == "" for path in given):  # `Path` takes it for "."; a variable nobody set, rather
        raise InputError("an empty path; name a file or folder ('.' is the current one)")
    for path in found:
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise InputError(f"{shown(path)}: no such file or folder") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{shown(path)}: cannot be read ({error})") from error
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe would be waited for
            raise InputError(f"{shown(path)}: not a regular file or folder")
    return found


def walk(path: Path) -> Iterator[CorpusFile | Skipped | Note]:
    """The files at or below `path`. A file's id is its path relative to the given folder, or its own name."""
    if path.is_dir():
        yield from _walk_folder(path, "")
    else:
        yield CorpusFile(path, shown(Path(path.name)), shown(path))


def size_bytes(paths: Iterable[Path]) -> int:
    """How many bytes the files at or below the paths hold, for progress."""
    files = (item.path for path in paths for item in walk(path) if isinstance(item, CorpusFile))
    return sum(_file_size(file) for file in files)


def shown(path: Path) -> str:
    """The path as text with forward slashes; bytes of a name that are not UTF-8 become visible escapes."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def _walk_folder(folder: Path, prefix: str) -> Iterator[CorpusFile | Skipped | Note]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield Skipped(shown(folder), f"cannot be listed: {error.strerror}")
        return
    if any(entry.name in _INDEX_FILES and _is_sealed(entry) for entry in entries):
        yield Note(shown(folder), "left out: an index of denspi, no documents")
        return
    hidden = 0
    for entry in entries:
        path = folder / entry.name
        document_id = prefix + shown(Path(entry.name))
        if entry.name.startswith("."):
            hidden += 1
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk_folder(path, f"{document_id}/")
        else:
            reason = _why_not_read(entry)
            yield Skipped(shown(path), reason) if reason else CorpusFile(path, document_id, shown(path))
    if hidden:
        yield Note(shown(folder), f"left out {hidden} hidden {'entry' if hidden == 1 else 'entries'}")


def _is_sealed(entry: os.DirEntry[str]) -> bool:
    """Whether a file begins as those that only an index has."""
    try:
        if not entry.is_file():  # a pipe would be waited for
            return False
        with open(entry.path, "rb") as file:
            return file.read(len(_SEAL)) == _SEAL
    except OSError:  # which is told where it is read
        return False


def _why_not_read(entry: os.DirEntry[str]) -> str | None:
    """Why an entry that is no folder is not read, or None for a file."""
    try:
        if entry.is_file():
            return None
        if entry.is_dir():
            return "a link to a folder, not followed; give that folder as a path of its own"
    except OSError as error:  # a link to itself, for one
        return f"cannot be opened: {error.strerror}"
    return "a broken link" if entry.is_symlink() else "not a regular file"


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
