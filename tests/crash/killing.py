"""Processes that die: before a chosen call that reaches the disk, or after so many seconds."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.crash.life import Held

from denspi.index.directory import Directory


class KillingDirectory(Directory):
    """Kills its own process before one of the calls that reach the disk."""

    def __init__(self, path: Path, kill_at: int | None) -> None:
        super().__init__(path)
        self.steps, self._kill_at = 0, kill_at

    def _step(self) -> None:
        if self.steps == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps += 1

    def fsync_file(self, path: Path) -> None:
        self._step()

    def fsync_folder(self, path: Path) -> None:
        self._step()

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        super().rename(old, new)
        self._step()

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)

    def mkdir(self, path: Path) -> None:
        self._step()
        super().mkdir(path)

    def rmdir(self, path: Path) -> None:
        self._step()
        super().rmdir(path)


def in_child(
    work: Callable[[Callable[[str, Held], None]], None], kill_after: float | None
) -> tuple[int, bytes]:
    """Run `work` in a forked process, kill it after so many seconds; how it ended, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:

            def say(what: str, held: Held) -> None:
                os.write(writing, json.dumps([what, held]).encode() + b"\n")

            work(say)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    said = b""
    while piece := os.read(reading, 1 << 16):
        said += piece
    os.close(reading)
    return os.waitpid(child, 0)[1], said
