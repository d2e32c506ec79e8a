"""Every error that denspi raises on purpose. Each message is one line: the thing, the finding, the next step.

    DenspiError
    ├── InputError        what the user handed in cannot be used (a path, a file, a question)
    ├── MissingExtraError a feature needs an optional dependency that is not installed
    ├── SettingsError     a configuration key or value that does not exist or does not fit
    ├── ModelError        a model folder is incomplete, of another layout, or does not fit
    ├── StorageError      a folder cannot be written or read (disk full, read-only, permission)
    │   ├── IndexDamagedError  an index is damaged, incomplete, or of a newer format
    │   └── IndexLockedError   another process is writing the index
    ├── WorkerError       a process that was helping has died
    └── StoppedError      the user stopped it (Ctrl-C), and it can be gone on with

The command line prints any of them as one line and exits with code 2; with 130 where the user stopped it.
"""

from __future__ import annotations

TOO_MANY_FILES = (
    "too many files are open; allow more of them (ulimit -n) and try again; nothing committed is lost"
)
"""What follows the name of a file that could not be opened for no fault of its own."""


class DenspiError(Exception):
    """Base of all deliberate errors."""


class InputError(DenspiError):
    """What the user handed in cannot be used."""


class MissingExtraError(DenspiError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the optional part '{extra}'; install it with: pip install 'denspi[{extra}]'"
        )


class SettingsError(DenspiError):
    """A configuration key or value that does not exist or does not fit."""


class ModelError(DenspiError):
    """A model folder is incomplete, of another layout, or does not fit."""


class StorageError(DenspiError):
    """A folder cannot be written or read; what was committed before is whole."""


class IndexDamagedError(StorageError):
    """An index is damaged, incomplete, or of a newer format."""


class IndexLockedError(StorageError):
    """Another process is writing the index."""


class WorkerError(DenspiError):
    """A process that was helping has died."""


class StoppedError(DenspiError):
    """The user stopped it; the message says how to go on."""
