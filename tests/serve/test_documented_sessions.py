"""Every command of the tutorial and of the HTTP page works as shown, from an empty folder on.

They stand in ```shell-session blocks, run in order in one folder. `denspi serve` runs beside the others, on
any free port, until the next one; `pip install` is not run, but its extras must exist.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.project.test_documented_commands import _pattern, _timeless

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```shell-session\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
SHOWN_ADDRESS = "127.0.0.1:8000"
NOTES = {
    "lease.txt": "The lease of the mill was signed by Mira Okafor on 3 May 1843.\n\n"
    "The rent was forty crowns a year.\n",
    "mill.md": "# The mill at Harrow Ford\n\nThe mill has two wheels, which Tomas Lind built in 1801.\n",
}


class Session:
    """A folder with the notes, and at most one server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: subprocess.Popen[str] | None = None
        self.address = SHOWN_ADDRESS
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = os.environ | {"PATH": path, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
        (folder / "notes").mkdir()
        for name, text in NOTES.items():
            (folder / "notes" / name).write_text(text, encoding="utf-8")

    def printed(self, command: str) -> str:
        """What a command prints, with the address that the page shows."""
        if command.startswith("pip install"):
            return check_extras(command)
        if "denspi serve" in command:
            return self.serve(command)
        finished = subprocess.run(
            command.replace(SHOWN_ADDRESS, self.address),
            shell=True,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    def serve(self, command: str) -> str:
        self.end()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        port = self.address.partition(":")[2]
        self.server = subprocess.Popen(
            f"exec env {command} --port {port}",
            shell=True,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        return line.replace(self.address, SHOWN_ADDRESS)

    def end(self) -> None:
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            assert self.server.wait(60) == 0
            self.server.communicate()
            self.server = None


def check_extras(command: str) -> str:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (named,) = re.findall(r"\.\[([a-z,]+)\]", command)
    assert set(named.split(",")) <= declared.keys()
    return ""


def shown_in(page: str) -> list[tuple[str, str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    pieces = [piece for block in BLOCK.findall(text) for piece in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(piece.partition("\n")[0], piece.partition("\n")[2].strip()) for piece in pieces]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize(
    ("page", "before"), [("tutorial.md", []), ("http-api.md", ["denspi index notes --output notes.index"])]
)
def test_the_commands_of_a_page(page: str, before: list[str], tmp_path: Path) -> None:
    session = Session(tmp_path)
    try:
        for command in before:
            session.printed(command)
        shown = shown_in(page)
        assert any("denspi serve" in command for command, _ in shown)
        for command, output in shown:
            printed = session.printed(command)
            if output:
                assert re.fullmatch(_pattern(output), _timeless(printed)), f"$ {command}\n{printed}"
    finally:
        session.end()


def test_the_tutorial_needs_three_commands() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    block = BLOCK.findall(text)[1]
    commands = re.findall(r"^\$ (\w+(?: [a-z]+)?)", block, flags=re.MULTILINE)
    assert commands == ["pip install", "denspi index", "denspi serve"]
