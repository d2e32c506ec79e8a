"""A Directory on which the power can fail: what was not synced is lost, torn or reordered, as a disk may do.

Files and folders are known by inode. A file is safe as it was at its last `fsync_file`, an entry of a folder
as it was at the last `fsync_folder`. Everything else may be there or not, each entry by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from denspi.index.directory import Directory


class PowerLossError(BaseException):
    """The machine has stopped."""


Choose = Callable[[int], int]  # of so many possibilities, the number of one


class PoweredDirectory(Directory):
    """Stops for good before step `fails_at`; steps are the calls that reach the disk."""

    def __init__(self, path: Path, graveyard: Path, fails_at: int | None) -> None:
        super().__init__(path)
        self._graveyard, self._fails_at = graveyard, fails_at
        graveyard.mkdir()
        self.steps = 0
        self._entries: dict[int, dict[str, int]] = {}  # [folder] synced names and what they name
        self._contents: dict[int, bytes] = {}  # [file] synced content
        for folder, _, names in os.walk(path):  # what is there at the beginning is safe
            self._entries[Path(folder).stat().st_ino] = _listed(Path(folder))
            for name in names:
                file = Path(folder, name)
                self._contents[file.stat().st_ino] = file.read_bytes()

    def _step(self) -> None:
        if self.steps == self._fails_at:
            raise PowerLossError
        self.steps += 1

    def fsync_file(self, path: Path) -> None:
        self._step()
        self._contents[path.stat().st_ino] = path.read_bytes()

    def fsync_folder(self, path: Path) -> None:
        self._step()
        self._entries[path.stat().st_ino] = _listed(path)

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        if new.exists():
            os.link(new, self._grave())
        os.rename(old, new)

    # The dead are kept, or their inodes would be given to others.

    def unlink(self, path: Path) -> None:
        self._step()
        os.rename(path, self._grave())

    def rmdir(self, path: Path) -> None:
        self._step()
        os.rename(path, self._grave())

    def mkdir(self, path: Path) -> None:
        self._step()
        os.mkdir(path)

    def survives(self, into: Path, choose: Choose) -> None:
        """Write what a disk may hold after the failure; `choose` decides wherever it is free to."""
        now_entries: dict[int, dict[str, int]] = {}
        now_contents: dict[int, bytes] = {}
        for root in (self.path, self._graveyard):
            for folder, _, names in os.walk(root):
                now_entries[Path(folder).stat().st_ino] = _listed(Path(folder))
                for name in names:
                    now_contents[Path(folder, name).stat().st_ino] = Path(folder, name).read_bytes()

        def rebuild(folder_ino: int, to: Path) -> None:
            to.mkdir()
            safe, now = self._entries.get(folder_ino, {}), now_entries[folder_ino]
            for name in sorted({*safe, *now}):
                possible = list(dict.fromkeys([safe.get(name), now.get(name)]))
                ino = possible[choose(2)] if len(possible) == 2 else possible[0]
                if ino in now_entries:
                    rebuild(ino, to / name)
                elif ino is not None:
                    content, synced = now_contents[ino], self._contents.get(ino)
                    # What was appended to a synced file may be lost or torn; what was synced is not.
                    safe_bytes = len(synced) if synced and content.startswith(synced) else 0
                    kept, new = content[:safe_bytes], content[safe_bytes:]
                    torn = [synced or b"", content, kept + bytes(len(new)), kept + new[: len(new) // 2]]
                    (to / name).write_bytes(content if synced == content else torn[choose(len(torn))])

        rebuild(self.path.stat().st_ino, into)

    def _grave(self) -> Path:
        return self._graveyard / str(len(os.listdir(self._graveyard)))


def losing(options: int) -> int:
    """Nothing that was not synced is there."""
    return 0


def reordering(options: int) -> int:
    """All names are there, but not what they should hold: what a rename without fsync may lead to."""
    return 1 if options == 2 else 2


def at_random(seed: int) -> Choose:
    """Some of it is there."""
    generator = np.random.default_rng(seed)
    return lambda options: int(generator.integers(options))


def _listed(folder: Path) -> dict[str, int]:
    return {name: os.lstat(folder / name).st_ino for name in os.listdir(folder)}
