"""The service as one ASGI application: routes, errors, the page, and what is around them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from denspi.serve.answering import answer_routes
from denspi.serve.documents import document_routes
from denspi.serve.door import Door
from denspi.serve.edge import Edge
from denspi.serve.openapi import openapi_of
from denspi.serve.page_files import page_routes
from denspi.serve.problems import add_handlers, problem_response
from denspi.serve.settings import ServeSettings
from denspi.serve.watching import watch_routes
from denspi.serve.worker import Worker

_PARENT_SECONDS = 1.0


class _Sites(CORSMiddleware):
    """Which other sites may ask; a refusal is a problem like any other."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """What a browser asks before it lets a page of another site ask."""
        response = super().preflight_response(request_headers)
        if response.status_code != HTTPStatus.BAD_REQUEST:
            return response
        refused = bytes(response.body).decode().removeprefix("Disallowed CORS ")
        detail = f"not for pages of other sites: {refused}; name sites with --allow-origin"
        kept = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
        return problem_response(HTTPStatus.BAD_REQUEST, detail, kept)


def create_app(settings: ServeSettings) -> ASGIApp:
    """One worker's application; `DenspiError` where the index cannot be served."""
    worker = Worker.of(settings)
    app: ASGIApp = Door(create_api(worker), settings, worker.searching)
    if settings.allowed_origins:
        # Around the door too: a page that may ask must be able to read why it was refused.
        app = _Sites(
            app,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    return Edge(app, worker.metrics)


async def _end_with(parent: int | None) -> None:
    """End in good order when the parent has died: uvicorn's workers would go on, and keep the port."""
    while parent is not None:
        await asyncio.sleep(_PARENT_SECONDS)
        if os.getppid() != parent:
            signal.raise_signal(signal.SIGTERM)
            return


def create_api(worker: Worker) -> FastAPI:
    """The routes alone."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        worker.service.warm_up()
        watch = asyncio.create_task(_end_with(worker.settings.parent))
        yield
        watch.cancel()
        worker.close()

    # No pages of FastAPI's own: they load scripts from elsewhere.
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.openapi = openapi_of(app)  # type: ignore[method-assign]
    add_handlers(app)
    for router in (answer_routes(worker), document_routes(worker), watch_routes(worker)):
        app.include_router(router)
    app.router.routes.extend(page_routes())
    return app
