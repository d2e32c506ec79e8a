"""The page: the files of the folder `page`, each under its own address and no other.

They are read once, when the service starts, so that no address is ever turned into a path.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "page"
_FIRST = "index.html"
# What the system says about these differs from one to the next, and browsers insist.
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css"}


def page_routes(folder: Path = FOLDER) -> Iterator[Route]:
    """A route for each file; the folder's own address is that of its index.html."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            name = path.relative_to(folder).as_posix()
            endpoint = _endpoint(path)
            yield Route(f"/{name}", endpoint, methods=["GET"])
            if name == _FIRST:
                yield Route("/", endpoint, methods=["GET"])


def _endpoint(path: Path):  # type: ignore[no-untyped-def]
    content = path.read_bytes()
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    # Looked at again each time, so that a new version of denspi brings its own page.
    headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "Cache-Control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return answer
