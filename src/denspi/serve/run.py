"""Starting and stopping: sockets, processes, signals. uvicorn does the serving; this says how.

With several workers each has a socket of its own on the same port, over which the kernel spreads connections;
from one socket for all, whoever wakes first would take them all. Stops on SIGTERM or Ctrl-C, after what was
accepted is finished.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import uvicorn
from uvicorn.supervisors import Multiprocess

from denspi.build.index import Index
from denspi.build.workers import ONE_THREAD
from denspi.errors import InputError
from denspi.serve.app import create_app
from denspi.serve.metrics import make_counters
from denspi.serve.protocol import GuardedProtocol
from denspi.serve.settings import Listening, ServeSettings

_START_SECONDS = 600
_WORKER_SILENT_SECONDS = 60  # then it is taken for hung, and replaced


def serve(settings: ServeSettings, listening: Listening, on_ready: Callable[[str], None]) -> None:
    """Serve until a signal comes; `on_ready` gets the address."""
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
            http=GuardedProtocol,
            workers=listening.workers,
            lifespan="on",
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=listening.shutdown_seconds,
            timeout_worker_healthcheck=_WORKER_SILENT_SECONDS,
        )
        signal.signal(signal.SIGTERM, _end)
        try:
            if listening.workers > 1:
                _Workers(config, own, on_ready).run()
            else:
                _Server(config, own, on_ready).run([own])
        except KeyboardInterrupt:  # uvicorn hands it on after it has finished
            return


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
