"""Locks of an index: exclusive ones for writing and merging, shared leases for reading. Part of `directory`.

All are flock locks: the kernel drops them with their holder, however it dies, so nothing can be left locked.
The text in a lock file only tells people who the holder is; it decides nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from denspi.errors import IndexLockedError

_POLL_SECONDS = 0.02
_held: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """An exclusive lock, until `release`, until it is collected, or until the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._finalizer = weakref.finalize(self, os.close, descriptor)
        _held.add(self)

    def is_of(self, path: Path) -> bool:
        """Whether `path` is still the file that is locked: one that took its place locks nobody out."""
        try:
            return self._finalizer.alive and os.path.samestat(os.fstat(self._descriptor), os.lstat(path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._finalizer.alive:
            os.ftruncate(self._descriptor, 0)
            self._finalizer()

    def forget(self) -> None:
        """Close our copy only: in a forked child, the parent still holds the lock."""
        self._finalizer()


class Lease:
    """A shared lock on a part, until it is closed or collected."""

    def __init__(self, descriptor: int) -> None:
        self._finalizer = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Let go; a second call does nothing."""
        self._finalizer()


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to wait for a lock that somebody holds; `on_wait` hears who does what, once, at the start."""

    seconds: float = 0.0
    on_wait: Callable[[str], None] = lambda _: None


NO_WAIT = Wait()


def lock_file(path: Path, wait: Wait, doing: str) -> Lock:
    """Take the lock, or raise IndexLockedError with the holder's process and host, and what it is `doing`."""
    deadline = time.monotonic() + wait.seconds
    lock = _lock_once(path, wait, deadline, doing)
    while not lock.is_of(path):  # somebody removed the file between our opening and locking it
        lock.forget()
        lock = _lock_once(path, wait, deadline, doing)
    return lock


def _lock_once(path: Path, wait: Wait, deadline: float, doing: str) -> Lock:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        is_told = False
        while not _flock(descriptor, fcntl.LOCK_EX):
            if not time.monotonic() < deadline:  # a wait that is no number is none
                so_far = (
                    f"is still {doing} it, after {wait.seconds:g} s" if wait.seconds else f"is {doing} it"
                )
                raise IndexLockedError(
                    f"{path.parent}: {_holder(descriptor)} {so_far}; wait for it to finish, or stop it"
                )
            if not is_told:
                wait.on_wait(f"{_holder(descriptor)}, which is {doing} it")
                is_told = True
            time.sleep(_POLL_SECONDS)
    except BaseException:
        os.close(descriptor)
        raise
    lock = Lock(descriptor)
    with contextlib.suppress(OSError):  # a full disk: the lock holds without the name of its holder
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)
    return lock


def names_holder(content: bytes) -> bool:
    """Whether the content of a lock file is what `lock_file` writes there."""
    try:
        return bool(json.loads(content).keys() == {"pid", "host"})
    except (ValueError, AttributeError):
        return False


def lease_file(path: Path) -> Lease | None:
    """A shared lock; None if the file is gone, or about to be deleted."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):  # or a file lies in the place of its folder
        return None
    try:
        is_held = _flock(descriptor, fcntl.LOCK_SH)
    except BaseException:
        os.close(descriptor)
        raise
    if is_held:
        return Lease(descriptor)
    os.close(descriptor)
    return None


@contextmanager
def nobody_leases(path: Path) -> Iterator[bool]:
    """Whether no reader holds `path`; inside, none can begin to."""
    try:
        descriptor = _open_writable(path)
    except OSError:  # absent or a link: a leftover that no reader could have opened
        yield True
        return
    try:
        try:
            is_free = _flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # cannot be known: a part too many is better than a reader without its part
            is_free = False
        yield is_free
    finally:
        os.close(descriptor)


def _open_writable(path: Path) -> int:
    """For an exclusive lock: over NFS it needs a descriptor that may write, which nobody does here."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDWR | flags)
    except (PermissionError, IsADirectoryError):
        return os.open(path, os.O_RDONLY | flags)


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 512, 0))
        return f"process {int(holder['pid'])} on {str(holder['host'])[:100]!r}"
    except (ValueError, KeyError, TypeError):  # it has only just taken the lock
        return "another process"


def _forget_in_child() -> None:
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.forget()


# A lock belongs to the process that took it: forked workers must not keep it alive when that process dies.
os.register_at_fork(after_in_child=_forget_in_child)
