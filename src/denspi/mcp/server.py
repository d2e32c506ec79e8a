"""The tools as a Model Context Protocol server on standard input and output. The SDK is used only here."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools.base import Tool
from mcp.types import ToolAnnotations
from pydantic import Field, ValidationError

from denspi import __version__
from denspi.corpus.records import shortened
from denspi.errors import DenspiError
from denspi.mcp.tools import MAX_CHARS, MAX_K, FoundAnswers, ReadDocument, Tools
from denspi.search.newest import NewestSearcher

_INSTRUCTIONS = (
    "Answers questions from an index of documents. Every answer is a phrase of a document, with its sentence "
    "and its place; nothing is generated. Quote the sentence and name the document. Confidence is the "
    "probability that a phrase is right: below about 0.2, read the document or say that you do not know."
)
_log = logging.getLogger(__name__)
_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def run_server(index: Path) -> None:
    """Serve an index until standard input ends."""
    create_server(Tools(NewestSearcher(index, on_trouble=_log.error))).run("stdio")


class _StrictServer(MCPServer[None]):
    """Says in one line what does not fit: the SDK drops arguments that it does not know, a filter's too."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool, if its arguments fit."""
        tool = self._tool_manager.get_tool(name)
        if tool is not None:
            _check(tool, arguments)
        return await super().call_tool(name, arguments, context)


def _check(tool: Tool, arguments: dict[str, Any]) -> None:
    known = tool.parameters["properties"]
    if strangers := [each for each in arguments if each not in known]:
        raise ToolError(f"{shortened(strangers[0])}: no such argument; there are {', '.join(known)}")
    try:
        tool.fn_metadata.validate_arguments(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ToolError(f"{where}: {first['msg']}") from None


def create_server(tools: Tools) -> MCPServer[None]:
    """The server, for any transport."""
    server: _StrictServer = _StrictServer(
        "denspi", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )

    @server.tool(title="Answer a question from the documents", annotations=_READS, structured_output=True)
    def answer(
        question: Annotated[str, Field(description="A question in plain words, about one thing.")],
        k: Annotated[int, Field(ge=1, le=MAX_K, description="Answers, at most.")] = 3,
        where: Annotated[
            list[str] | None,
            Field(
                description="Only documents that fit: `document_id=...`, `title=...`, or a field of theirs."
            ),
        ] = None,
        min_confidence: Annotated[
            float | None, Field(ge=0, le=1, description="No answer where the best is less sure.")
        ] = None,
    ) -> FoundAnswers:
        """Find phrases of the documents that answer a question, each with its sentence and its source."""
        try:
            return tools.answer(question, k, where, min_confidence)
        except DenspiError as error:
            raise ToolError(str(error)) from error

    @server.tool(title="Read a document", annotations=_READS, structured_output=True)
    def read_document(
        document_id: Annotated[str, Field(description="As an answer has given it.")],
        start_char: Annotated[int, Field(ge=0, description="Where to begin, in characters.")] = 0,
        max_chars: Annotated[int, Field(ge=1, le=MAX_CHARS, description="How much to read.")] = 8000,
    ) -> ReadDocument:
        """Read the text of a document, or a stretch of it around the place of an answer."""
        try:
            return tools.read_document(document_id, start_char, max_chars)
        except DenspiError as error:
            raise ToolError(str(error)) from error

    return server
