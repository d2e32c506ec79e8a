"""The folder of an index: the only module that fsyncs, renames, locks and deletes.

What a commit needs to survive a power failure is said here and nowhere else; everything else writes plain
files and then names them to `sync`. Names are single path components; the folder itself may be a link, links
inside it are never followed.
Tests replace the six methods under "what reaches the disk" to lose, reorder and interrupt them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from denspi.errors import TOO_MANY_FILES, IndexDamagedError, StorageError
from denspi.index.locks import NO_WAIT, Lease, Lock, Wait, lease_file, lock_file, nobody_leases

LEASED = "table.json"
"""The file of a part that its readers hold a shared lock on."""
NEW = ".new"
"""Ends the name of a file that is about to replace another."""


class Directory:
    """One index folder. Holds no state but its path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # What reaches the disk

    def fsync_file(self, path: Path) -> None:
        """The content of a file is on the disk when this returns."""
        _fsync(path, os.O_RDONLY | os.O_NOFOLLOW)

    def fsync_folder(self, path: Path) -> None:
        """The entries of a folder are on the disk when this returns."""
        _fsync(path, os.O_RDONLY | os.O_DIRECTORY)

    def rename(self, old: Path, new: Path) -> None:
        """`old` takes the place of `new`, at once."""
        os.rename(old, new)

    def unlink(self, path: Path) -> None:
        """Remove one file."""
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Make one folder."""
        os.mkdir(path)

    def rmdir(self, path: Path) -> None:
        """Remove one empty folder."""
        os.rmdir(path)

    # Writing

    def create(self) -> None:
        """Make the folder itself, durably, where it is absent."""
        with self.reporting():
            missing = [each for each in (self.path, *self.path.parents) if not each.exists()]
            for path in reversed(missing):
                self.mkdir(path)
                self.fsync_folder(path.parent)

    def make_folder(self, name: str) -> Path:
        """A new folder for the files of one part; durable only once `sync` has named it."""
        with self.reporting():
            self.mkdir(self.path / name)
        return self.path / name

    def create_file(self, folder: str, name: str) -> BinaryIO:
        """A new file; durable only once `sync` has named it."""
        with self.reporting():
            return (self.path / folder / name).open("xb")

    def sync(self, folder: str, names: Iterable[str]) -> None:
        """The folder and these files in it, whoever wrote them, are on the disk when this returns."""
        with self.reporting():
            for name in names:
                self.fsync_file(self.path / folder / name)
            self.fsync_folder(self.path / folder)
            self.fsync_folder(self.path)

    def publish(self, name: str, content: bytes) -> None:
        """Replace the file `name` by `content` at once: after a crash it is the old one or the new one."""
        new = self.path / f"{name}{NEW}"
        with self.reporting():
            new.write_bytes(content)
            self.fsync_file(new)
            self.rename(new, self.path / name)
            self.fsync_folder(self.path)

    def append(self, name: str, content: bytes) -> None:
        """Add to the file `name`: after a crash all that was there is, and any beginning of `content`."""
        path = self.path / name
        with self.reporting():
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "ab") as file:
                file.write(content)
            self.fsync_file(path)

    def rename_folder(self, old: str, new: str) -> None:
        """Give a finished folder its name, durably."""
        with self.reporting():
            self.rename(self.path / old, self.path / new)
            self.fsync_folder(self.path)

    # Deleting

    def remove_file(self, name: str) -> None:
        """Remove a file of the index folder, if it is there."""
        with self.reporting():
            try:
                self.unlink(self.path / name)
            except FileNotFoundError:
                return

    def remove_folder(self, name: str) -> bool:
        """Remove a part that no manifest names; False, and nothing happens, while a reader holds it."""
        folder = self.path / name
        with self.reporting(), nobody_leases(folder / LEASED) as free:
            if not free:
                return False
            if folder.is_symlink():
                self.unlink(folder)
                return True
            self._remove_tree(folder)
        return True

    def _remove_tree(self, folder: Path) -> None:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):  # scratch files of a killed writer
                self._remove_tree(folder / entry.name)
            else:
                self.unlink(folder / entry.name)
        self.rmdir(folder)

    # Reading

    def entries(self) -> list[str]:
        """Names of everything in the folder, sorted."""
        with self.reporting():
            return sorted(os.listdir(self.path))

    def read(self, folder: str, name: str, limit_bytes: int) -> bytes | None:
        """A whole file of at most so many bytes; None where there is none."""
        try:
            with self.open_file(folder, name) as file:
                content = file.read(limit_bytes + 1)
        except FileNotFoundError:
            return None
        if len(content) > limit_bytes:
            raise IndexDamagedError(f"{self.path / folder / name}: larger than {limit_bytes} bytes; damaged")
        return content

    def open_file(self, folder: str, name: str) -> BinaryIO:
        """An ordinary file opened for reading; FileNotFoundError where it is absent."""
        path = self.path / folder / name
        try:  # NONBLOCK: a pipe in the place of a file must not hang us.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except OSError as error:
            raise _explained(error, self.path) from error
        is_linked = bool(folder) and path.parent.is_symlink()  # the index folder itself may be a link
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or is_linked:
            os.close(descriptor)
            raise IndexDamagedError(f"{path}: not an ordinary file; the index is damaged or not one of ours")
        return os.fdopen(descriptor, "rb")

    # Locks

    def lock(self, name: str, wait: Wait = NO_WAIT, doing: str = "writing") -> Lock:
        """The exclusive lock `name`, or IndexLockedError that says who has it, `doing` what."""
        with self.reporting():
            return lock_file(self.path / name, wait, doing)

    def holds(self, lock: Lock, name: str) -> bool:
        """Whether a lock that was taken as `name` still keeps others out."""
        with self.reporting():
            return lock.is_of(self.path / name)

    def lease(self, folder: str) -> Lease | None:
        """Keep a part from being deleted until the lease is closed; None if it is gone or going."""
        with self.reporting():
            return lease_file(self.path / folder / LEASED)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """What the system refuses becomes one line."""
        try:
            yield
        except OSError as error:
            raise _explained(error, self.path) from error


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explained(error: OSError, folder: Path) -> StorageError:
    path = error.filename if isinstance(error.filename, str | os.PathLike) else folder
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            f"{path}: the disk is full; free some space and try again; nothing committed is lost"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return StorageError(f"{path}: permission denied; give yourself access to the index folder")
    if error.errno == errno.EROFS:
        return StorageError(f"{path}: read-only file system; use a folder that can be written")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StorageError(f"{path}: {TOO_MANY_FILES}")
    if error.errno == errno.ELOOP:
        return IndexDamagedError(f"{path}: a link instead of a file; the index is damaged or not one of ours")
    reason = error.strerror or type(error).__name__
    return StorageError(f"{path}: {reason}; check the folder and try again; nothing committed is lost")
