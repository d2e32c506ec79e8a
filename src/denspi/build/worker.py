"""What runs in a process of its own: paragraphs come in, their rows go out, over one private socket.

Started by `workers` with the model folder, its windows, the precision and the socket's file descriptor; ends
when the socket does, so that nothing is left behind when the parent is killed. Each direction has a thread of
its own: the parent may send ahead and may be busy writing, and the encoder waits for neither.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from denspi.errors import DenspiError
from denspi.index.rows import ParagraphRows


@dataclass(frozen=True, slots=True)
class Task:
    """Paragraphs to encode together; tasks are numbered in the order of the documents."""

    number: int
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The rows of a task's paragraphs."""

    number: int
    rows: tuple[ParagraphRows, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a process gave up; `traceback` is there where it is a fault of denspi itself."""

    message: str
    traceback: str = ""


def main(arguments: Sequence[str]) -> None:
    """Encode what comes until nothing more does."""
    folder, size, overlap, precision, descriptor = arguments
    connection = Connection(int(descriptor))
    inbox: SimpleQueue[Task] = SimpleQueue()
    outbox: SimpleQueue[Finished | Failed] = SimpleQueue()
    Thread(target=_receive, args=(connection, inbox), daemon=True).start()
    Thread(target=_send, args=(connection, outbox), daemon=True).start()
    try:
        from denspi.build.rows import encode_rows
        from denspi.dense.encoder import WindowSettings
        from denspi.dense.onnx_encoder import load_encoder

        encoder = load_encoder(Path(folder), WindowSettings(int(size), int(overlap)))
        while True:
            task = inbox.get()
            outbox.put(Finished(task.number, tuple(encode_rows(encoder, task.paragraphs, precision))))
    except DenspiError as error:
        outbox.put(Failed(str(error)))
    except Exception as error:  # the parent shows it
        outbox.put(Failed(repr(error), traceback.format_exc()))
    while True:  # the parent has the last word: it reads the failure and closes the socket
        inbox.get()


def _receive(connection: Connection, inbox: SimpleQueue[Task]) -> None:
    try:
        while True:
            inbox.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)  # the parent has closed the socket, or is gone


def _send(connection: Connection, outbox: SimpleQueue[Finished | Failed]) -> None:
    try:
        while True:
            connection.send(outbox.get())
    except OSError:
        os._exit(0)
