"""What a service is started with. Owns names and defaults; reads no environment and no file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from denspi.errors import InputError

_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#@\s]+)/?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s/:@\[\]]+)(:\d+)?|[0-9a-f:]+:[0-9a-f:.]*")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def origin_of(text: str) -> str:
    """As browsers write it: ``https://Example.org:443/`` -> ``https://example.org``; ``*`` is any."""
    found = _ORIGIN.fullmatch(text.strip().lower())
    if text.strip() == "*":
        return "*"
    if found is None:
        raise InputError(f"--allow-origin {text}: not an origin; write it as https://example.org")
    scheme, host = found.groups()
    return f"{scheme}://{host.removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"


def host_of(text: str) -> str:
    """The name alone, whatever the port: ``A.example:8000`` -> ``a.example``, ``[::1]:80`` -> ``::1``."""
    found = _HOST.fullmatch(text.strip().lower())
    if found is None:
        raise InputError(f"--allow-host {text}: not a name; write it as a.example, without https://")
    return (found[1] or found[0]).strip("[]")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """One worker's settings; all workers have the same."""

    index: Path
    token: str | None = field(default=None, repr=False)  # who has it may write; None: nobody may
    allowed_origins: tuple[str, ...] = ()  # other sites whose pages may ask
    allowed_hosts: tuple[str, ...] | None = None  # names that it answers to; None: any
    queue: int = 32  # requests that wait at a worker; the next one is refused
    max_wait_seconds: float = 2.0  # of a request in the queue
    answers_body_bytes: int = 1 << 20
    documents_body_bytes: int = 16 << 20
    body_seconds: float = 20.0  # in which a request must have come in
    lock_seconds: float = 5.0  # to wait for somebody else who writes the index
    counters: Path | None = None  # the file that the workers count in; None: a single worker
    parent: int | None = None  # the process that a worker ends with


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the service listens, and with how many processes."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any that is free
    workers: int = 1
    shutdown_seconds: int = 30  # for requests that were accepted
    allowed_hosts: tuple[str, ...] = ()  # names that it is reached by, beside its own

    def names_at(self, address: str) -> tuple[str, ...] | None:
        """What a service that is bound to this address answers to; None: any name.

        A page of another site could reach a service on this machine under a name of its own that leads here.
        """
        bound = ip_address(address)
        if not bound.is_loopback and not self.allowed_hosts:
            return None
        own = () if bound.is_unspecified else (address, self.host)
        return tuple({name.lower() for name in (*LOOPBACK, *own, *self.allowed_hosts)})
