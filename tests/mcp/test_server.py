"""`denspi mcp` with the SDK's own client: in a process of its own, over standard input and output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.serve.conftest import ODD_ID, QUESTION, RIGHT, SCRIPT

from denspi import Index, cli
from denspi.corpus import join_paragraphs
from denspi.errors import InputError
from denspi.mcp.server import create_server
from denspi.mcp.tools import Tools
from denspi.search.newest import NewestSearcher
from denspi.types import Document

Talk = Callable[[Client], Coroutine[Any, Any, None]]


def talk(index: Path, conversation: Talk) -> None:
    """With the command as an assistant starts it."""
    arguments = ["-m", "denspi", "mcp", str(index)]
    command = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def run() -> None:
        async with Client(command, read_timeout_seconds=60) as client:
            await conversation(client)

    anyio.run(run)


def test_an_assistant_asks_and_reads(own_index: Path) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"answer", "read_document"}
        for tool in tools.values():
            assert tool.description
            assert tool.annotations
            assert tool.annotations.read_only_hint
            assert all("description" in each for each in tool.input_schema["properties"].values())
        found = await client.call_tool("answer", {"question": QUESTION, "k": 1})
        assert not found.is_error
        (best,) = found.structured_content["answers"]  # type: ignore[index]
        assert (best["text"], best["document_id"], best["title"]) == (RIGHT, "danube", "The Danube")
        assert RIGHT in best["sentence"]
        read = await client.call_tool(
            "read_document",
            {
                "document_id": "danube",
                "start_char": best["start_char"],
                "max_chars": best["end_char"] - best["start_char"],
            },
        )
        assert read.structured_content["text"] == RIGHT  # type: ignore[index]
        assert read.structured_content["next_start_char"] == best["end_char"]  # type: ignore[index]
        text, spans = join_paragraphs(["The lighthouse of Skerryvore was painted green by Ola Brun."])
        with Index.open(own_index) as index:
            index.add([Document("light", "Skerryvore", text, spans)])
            index.commit()
        found = await client.call_tool("answer", {"question": "Who painted the lighthouse?", "k": 1})
        assert found.structured_content["answers"][0]["text"] == "Ola Brun"  # type: ignore[index]

    talk(own_index, conversation)


@pytest.mark.parametrize(
    ("tool", "arguments", "finding"),
    [
        ("answer", {"question": "?!"}, "question '?!': has no word; ask with letters or digits"),
        ("answer", {"question": "who?", "where": ["colour"]}, "condition 'colour': write it as field=value"),
        ("answer", {"question": "who?", "k": 0}, "greater than or equal to 1"),
        ("read_document", {"document_id": "../manifest.json"}, "the index has no document with this id"),
        ("read_document", {"document_id": "danube", "max_chars": 10**9}, "less than or equal to 50000"),
        (
            "answer",
            {"question": "who?", "were": ["title=x"]},
            "were: no such argument; there are question, k, ",
        ),
        ("answer", {"question": "who?", "k": "many"}, "k: Input should be a valid integer"),
        ("answer", {}, "question: Field required"),
        ("nothing", {}, "nothing"),
    ],
)
def test_what_is_wrong_is_said_to_the_assistant(
    built: Path, tool: str, arguments: dict[str, object], finding: str
) -> None:
    async def run() -> None:
        server = create_server(Tools(NewestSearcher(built, compiled=False)))
        async with Client(server) as client:
            found = await client.call_tool(tool, arguments)
            assert found.is_error
            said = found.content[0].text  # type: ignore[union-attr]
            assert finding in said
            assert "\n" not in said
            assert "https://" not in said

    anyio.run(run)


def test_a_document_is_read_piece_by_piece(built: Path) -> None:
    tools = Tools(NewestSearcher(built, compiled=False))
    whole = Index.open(built).snapshot().document("danube")
    assert whole is not None
    pieces, start_char = [], 0
    while True:
        read = tools.read_document("danube", start_char, 100)
        pieces.append(read.text)
        assert read.total_chars == len(whole.text)
        if read.next_start_char is None:
            break
        start_char = read.next_start_char
    assert "".join(pieces) == whole.text
    assert tools.read_document("danube", 10**9).text == ""
    for arguments in ((-1, 5), (0, 0)):
        with pytest.raises(InputError):
            tools.read_document("danube", *arguments)
    with pytest.raises(InputError):
        tools.answer(QUESTION, k=1000)


def test_filters_and_odd_documents_reach_the_assistant(built: Path) -> None:
    tools = Tools(NewestSearcher(built, compiled=False))
    (found,) = tools.answer("Who pressed the button?", 1, ["colour=red"]).answers
    assert (found.document_id, found.title) == (ODD_ID, SCRIPT)
    assert tools.answer(QUESTION, min_confidence=1.0).answers == []


def test_it_goes_on_while_the_index_is_away_and_after_it_was_built_anew(own_index: Path) -> None:
    async def conversation(client: Client) -> None:
        async def answers(question: str) -> str:
            found = await client.call_tool("answer", {"question": question, "k": 1})
            assert not found.is_error, found.content
            return str(found.structured_content["answers"][0]["text"])  # type: ignore[index]

        async def beginning() -> str:
            read = await client.call_tool("read_document", {"document_id": "danube", "max_chars": 10})
            return str(read.structured_content["text"])  # type: ignore[index]

        assert (await answers(QUESTION), await beginning()) == (RIGHT, "The Danube")
        shutil.rmtree(own_index)  # files that are open stay readable
        assert (await answers(QUESTION), await beginning()) == (RIGHT, "The Danube")
        text, spans = join_paragraphs(["The lighthouse of Skerryvore was painted green by Ola Brun."])
        with Index.create(own_index, precision="compact") as index:
            index.add([Document("light", "Skerryvore", text, spans)])
            index.commit()
        assert await answers("Who painted the lighthouse?") == "Ola Brun"

    talk(own_index, conversation)


def test_it_ends_with_its_input(built: Path) -> None:
    command = [sys.executable, "-m", "denspi", "mcp", str(built)]
    finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert finished.stdout == ""


def test_no_index_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["mcp", "nowhere"]) == 2
    assert capsys.readouterr().err == "denspi: nowhere: no such index; build one with: denspi index\n"
