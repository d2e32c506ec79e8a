"""Starting and stopping: sockets, processes, signals. uvicorn does the serving; this says how.

With several workers each has a socket of its own on the same port, over which the kernel spreads connections;
from one socket for all, whoever wakes first would take them all. Stops on SIGTERM or Ctrl-C, after what was
accepted is finished.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from denspi.build.index import Index
from denspi.build.workers import ONE_THREAD
from denspi.errors import InputError
from denspi.serve.app import create_app
from denspi.serve.metrics import make_counters
from denspi.serve.protocol import MAX_CONNECTIONS, GuardedProtocol
from denspi.serve.settings import Listening, ServeSettings

_START_SECONDS = 600
_WORKER_SILENT_SECONDS = 60  # then it is taken for hung, and replaced
_POLL_SECONDS = 0.1
_log = logging.getLogger("uvicorn.error")


def serve(settings: ServeSettings, listening: Listening, on_ready: Callable[[str], None]) -> None:
    """Serve until a signal comes; `on_ready` gets the address."""
    if not listening.host.strip():  # to a socket it is every address of the machine
        raise InputError("--host is empty: name an address, such as 127.0.0.1, or leave it out")
    Index.open(settings.index).model()  # what is wrong with it is said here, once, and not by every worker
    own = _PortSocket.only(listening.host, listening.port)
    settings = replace(settings, allowed_hosts=listening.names_at(own.getsockname()[0]))
    with own, tempfile.TemporaryDirectory(prefix="denspi-serve-") as folder:
        if listening.workers > 1:
            os.environ |= ONE_THREAD  # of the workers: a core each is all that they have
            settings = replace(settings, counters=Path(folder) / "counters", parent=os.getpid())
            make_counters(Path(folder) / "counters", listening.workers)
        config = uvicorn.Config(
            partial(create_app, settings),
            factory=True,
            http=_RoomyProtocol,
            workers=listening.workers,
            lifespan="on",
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=listening.shutdown_seconds,
        )
        signal.signal(signal.SIGTERM, _end)
        try:
            if listening.workers > 1:
                _Workers(config, own, on_ready).run()
            else:
                _Server(config, own, on_ready).run([own])
        except KeyboardInterrupt:  # uvicorn hands it on after it has finished
            return


def check_free(host: str, port: int) -> None:
    """`InputError` where another service listens there."""
    _PortSocket.only(host, port).close()


def _room_for_connections() -> int:
    """Half of the descriptors: the index needs some too, and without any nothing answers any more."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(4, min(MAX_CONNECTIONS, descriptors // 2))


class _RoomyProtocol(GuardedProtocol):
    """As many connections as this process, or the worker that imports this, has room for."""

    max_connections = _room_for_connections()


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, own: _PortSocket, on_ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._say_ready = partial(on_ready, own.address)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._say_ready()


class _Workers(Multiprocess):
    """Says when all of them listen."""

    def __init__(self, config: uvicorn.Config, own: _PortSocket, on_ready: Callable[[str], None]) -> None:
        super().__init__(config, [own])
        self._say_ready = partial(on_ready, own.address)

    def init_processes(self) -> None:
        """Start them."""
        super().init_processes()
        # One that fails is dealt with afterwards, by uvicorn.
        if all(each.wait_until_ready(_START_SECONDS, self.should_exit) for each in self.processes):
            self._say_ready()

    def keep_subprocess_alive(self) -> None:
        """Replace those that have died or hang.

        As uvicorn does it, but for the wait: it would give one that dies while it is asked the whole time of
        one that hangs, and hear no signal meanwhile.
        """
        for number, process in enumerate(self.processes):
            if self._shows_life(process):
                continue
            process.kill()
            process.join()
            if process.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            _log.error(
                "worker %s ended (exit code %s); another takes its place", process.pid, process.exitcode
            )
            replacement = self.processes[number] = Process(self.config, self.sockets)
            replacement.start()

    def _shows_life(self, process: Process) -> bool:
        deadline = time.monotonic() + _WORKER_SILENT_SECONDS
        try:
            process.parent_conn.send(b"ping")
            while process.process.is_alive() and time.monotonic() < deadline:
                if self.signal_queue or self.should_exit.is_set():
                    return True  # whoever ends does not ask how the others are
                if process.parent_conn.poll(_POLL_SECONDS):
                    process.parent_conn.recv()
                    return True
        except (OSError, EOFError):
            return False
        return False


def _end(number: int, frame: Any) -> NoReturn:
    """After uvicorn has finished: an exit that lets everybody clean up."""
    sys.exit(0)


class _PortSocket(socket.socket):
    """A socket that, handed to another process, becomes a second one on the same port."""

    @classmethod
    def only(cls, host: str, port: int) -> _PortSocket:
        """The first one on a port: another service there would share it, and nobody would notice."""
        with cls.bound(host, port, is_shared=False) as probe:
            free_port = probe.getsockname()[1]
        return cls.bound(host, free_port)

    @classmethod
    def bound(cls, host: str, port: int, is_shared: bool = True) -> _PortSocket:
        """Bound, and not listening yet."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        made = cls(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            made.bind((host, port))
        except OSError as error:
            made.close()
            raise InputError(f"{host} port {port}: {error.strerror or error}; choose another") from None
        return made

    @property
    def address(self) -> str:
        """As a browser takes it."""
        host, port = self.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def __reduce__(self) -> tuple[Callable[..., _PortSocket], tuple[str, int]]:
        host, port = self.getsockname()[:2]
        return _PortSocket.bound, (host, port)
