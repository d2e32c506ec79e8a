"""Encoding on several cores: one process with one computing thread each, results in the order of the texts.

Processes rather than threads inside the model: a second thread gains little on a core that is shared, and a
paragraph's vectors never depend on who computed them. They are plain child processes rather than those of
`multiprocessing`, which would run the caller's main module again in each of them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType

import denspi
from denspi.build.model import IndexModel
from denspi.build.worker import Failed, Finished, Task
from denspi.errors import ModelError, WorkerError
from denspi.index.rows import ParagraphRows

# The package's own place comes last: it is needed only where the parent has denspi from elsewhere than usual.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); import denspi.build.worker as w; w.main(sys.argv[2:])"
_PACKAGE = str(Path(denspi.__file__).resolve().parents[1])
# numpy's matrix products would start a thread for each core in each process; compact codes, which many small
# products make, would take longer than the encoder where these threads wait for each other.
ONE_THREAD = {
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How many processes encode, and how they are kept busy. None of it changes a row."""

    processes: int | None = None  # as many as there are cores by default; 0: none, encode right here
    task_chars: int = 16_000  # text that travels at once: about half a second of work for the small model
    tasks_ahead: int = (
        8  # waiting at each process, so that it does not idle while the parent writes a segment
    )


def tasks(paragraphs: Iterable[str], task_chars: int) -> Iterator[tuple[str, ...]]:
    """Consecutive paragraphs, as many as together reach `task_chars`."""
    group: list[str] = []
    chars = 0
    for text in paragraphs:
        group.append(text)
        chars += len(text)
        if chars >= task_chars:
            yield tuple(group)
            group, chars = [], 0
    if group:
        yield tuple(group)


class Workers:
    """Processes that encode; a context manager, after which none of them is left."""

    def __init__(self, model: IndexModel, count: int, settings: WorkerSettings | None = None) -> None:
        self._settings = settings or WorkerSettings()
        self._workers: list[_Worker] = []
        try:
            for _ in range(count):
                self._workers.append(_Worker(model))
        except BaseException:
            self.close()
            raise

    def encode(self, paragraphs: Iterable[str]) -> Iterator[ParagraphRows]:
        """The rows of each paragraph, in order; reads ahead by a bounded amount. One call at a time."""
        waiting = enumerate(tasks(paragraphs, self._settings.task_chars))
        most_open = self._settings.tasks_ahead * len(self._workers)
        finished: dict[int, Finished] = {}
        sent = given = 0
        is_exhausted = False
        while True:
            while not is_exhausted and sent - given < most_open:
                number, texts = next(waiting, (-1, ()))
                if is_exhausted := number < 0:
                    break
                min(self._workers, key=lambda worker: worker.open_tasks).send(Task(number, texts))
                sent += 1
            if given == sent:
                return
            while given not in finished:
                self._receive(finished)
            yield from finished.pop(given).rows
            given += 1

    def _receive(self, finished: dict[int, Finished]) -> None:
        by_connection = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(by_connection)):
            result = by_connection[connection].receive()  # type: ignore[index]
            finished[result.number] = result

    def close(self) -> None:
        """End all processes, whatever they are at."""
        for worker in self._workers:
            worker.end()
        for worker in self._workers:
            worker.process.wait()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Worker:
    """One process and the socket to it."""

    def __init__(self, model: IndexModel) -> None:
        self.open_tasks = 0
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: a file of the current folder must not pass for a module. A process group of its own: Ctrl-C
            # reaches the parent alone, which ends the others.
            windows, precision = model.windows, model.record.precision
            given = (_PACKAGE, model.folder, windows.size, windows.overlap, precision, theirs.fileno())
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, *map(str, given)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env=os.environ | ONE_THREAD,
            )
        self.connection = Connection(ours.detach())

    def send(self, task: Task) -> None:
        try:
            self.connection.send(task)
        except OSError:
            self.receive()  # a failure that it has sent before says more
            raise self._died() from None
        self.open_tasks += 1

    def receive(self) -> Finished:
        try:
            result = self.connection.recv()
        except (EOFError, OSError):
            raise self._died() from None
        if isinstance(result, Failed):
            if result.traceback:
                raise RuntimeError(f"in an encoding process:\n{result.traceback}")
            raise ModelError(result.message)
        self.open_tasks -= 1
        assert isinstance(result, Finished)
        return result

    def _died(self) -> WorkerError:
        exit_code = self.process.wait()
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        reason = "; memory may be short" if exit_code == -9 else ""
        return WorkerError(f"encoding process {self.process.pid} {how}{reason}")

    def end(self) -> None:
        self.connection.close()
        self.process.kill()  # it owns nothing but memory
