"""``denspi serve`` and ``denspi mcp``: an index for browsers and programs, and for assistants.

Owns where the token comes from and what is said at the start. The web framework is loaded by the functions
that need it, and where it is not installed the user is told what to install.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from denspi.cli.indexing import IndexFolder
from denspi.errors import InputError, MissingExtraError

TOKEN_VARIABLE = "DENSPI_TOKEN"
_SHORTEST_TOKEN = 16
_HERE = "127.0.0.1"


def serve_command(
    index: IndexFolder,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; 0.0.0.0 for the whole network.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: any free one.")
    ] = 8000,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, max=256, help="Processes; one a core.")
    ] = 1,
    queue: Annotated[
        int, typer.Option("--queue", metavar="N", min=0, help="Requests that may wait at each worker.")
    ] = 32,
    writable: Annotated[
        bool, typer.Option("--writable", help="Let those who have the token add and delete documents.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="The token for --writable; otherwise DENSPI_TOKEN, or a new one that is printed.",
            show_default=False,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Let pages of this site ask, such as https://example.org.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name that it is reached by, beside this machine's own, if it listens there alone.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve the page and the HTTP API of an index."""
    chosen = _token(token_file, os.environ.get(TOKEN_VARIABLE)) if writable else None
    if token_file is not None and not writable:
        raise InputError("--token-file without --writable: nobody may write; add --writable")
    _serve(index, host, port, workers, queue, chosen, allow_origin, allow_host)


def mcp_command(index: IndexFolder) -> None:
    """Serve an index to an assistant, as a Model Context Protocol server on standard input and output."""
    try:
        from denspi.mcp.server import run_server
    except ModuleNotFoundError as error:
        raise _missing(error, "the server for assistants", "mcp") from None
    run_server(index)


def serve_index(index: Path, port: int, on_ready: Callable[[str], None]) -> None:
    """The page and the API for this machine alone, read-only; `on_ready` gets the address."""
    _serve(index, _HERE, port, 1, 32, None, None, None, on_ready)


def check_port(port: int) -> None:
    """`InputError` where `serve_index` could not listen, or nothing is installed to do so."""
    try:
        from denspi.serve.run import check_free
    except ModuleNotFoundError as error:
        raise _missing(error, "the service", "serve") from None
    check_free(_HERE, port)


def _serve(
    index: Path,
    host: str,
    port: int,
    workers: int,
    queue: int,
    token: str | None,
    origins: list[str] | None,
    hosts: list[str] | None,
    on_ready: Callable[[str], None] = lambda address: None,
) -> None:
    try:
        from denspi.serve.run import serve
        from denspi.serve.settings import Listening, ServeSettings, host_of, origin_of
    except ModuleNotFoundError as error:
        raise _missing(error, "the service", "serve") from None

    settings = ServeSettings(index, token, tuple(map(origin_of, origins or ())), queue=queue)
    listening = Listening(host, port, workers, allowed_hosts=tuple(map(host_of, hosts or ())))

    def say(address: str) -> None:
        typer.echo(f"{index} at {address}")
        on_ready(address)

    serve(settings, listening, say)


def _token(file: Path | None, token: str | None) -> str:
    try:
        found = file.read_text(encoding="utf-8").strip() if file is not None else (token or "").strip()
    except UnicodeDecodeError:
        raise InputError(f"{file}: not UTF-8 text; put the token there on one line") from None
    if not found and file is None:
        found = secrets.token_urlsafe(24)
        typer.echo(f"token for writing: {found}", err=True)
    place = str(file) if file is not None else TOKEN_VARIABLE
    if len(found) < _SHORTEST_TOKEN:
        raise InputError(f"{place}: a token of {len(found)} characters; use {_SHORTEST_TOKEN} or more")
    if not (found.isascii() and found.isprintable()):  # no header could carry it
        raise InputError(f"{place}: the token is not plain ASCII; use letters, digits and signs on one line")
    return found


def _missing(error: ModuleNotFoundError, what: str, extra: str) -> Exception:
    """What to install; a module of our own that is missing is a bug."""
    return error if (error.name or "").startswith("denspi") else MissingExtraError(what, extra)
