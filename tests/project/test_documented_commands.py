"""Commands in ```console blocks really run, and print what the document shows.

A line ``$ command`` is run by the shell in the repository's root. The lines below it, if any, are compared
with what it prints; a line ``...`` stands for any lines, durations are not compared, and confidences only
roughly: their last digit depends on the processor.
Commands that only make sense on the reader's machine stand in ```sh blocks, which are not run. ```python
blocks are run as well.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSOLE_BLOCK = re.compile(r"^```console\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
DURATION = re.compile(r"\d[\d.,]* (ms|s|words/s)\b")
CONFIDENCE = re.compile(r"(\d+)% sure")
CONFIDENCE_POINTS = 4
SAMPLE_INDEX = ROOT / "sample.index"  # what the documents' own commands make


@dataclass(frozen=True)
class Shown:
    """A command and the output that a document shows for it."""

    document: str
    command: str
    output: str


def _shown_in(document: Path) -> list[Shown]:
    found = []
    for block in CONSOLE_BLOCK.findall(document.read_text(encoding="utf-8")):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            found.append(Shown(document.relative_to(ROOT).as_posix(), command, output.strip()))
    return found


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = [shown for document in DOCUMENTS for shown in _shown_in(document)]


@pytest.fixture(scope="module", autouse=True)
def _no_index_is_left() -> Iterator[None]:
    shutil.rmtree(SAMPLE_INDEX, ignore_errors=True)
    yield
    shutil.rmtree(SAMPLE_INDEX, ignore_errors=True)


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown.document}: {shown.command}")
def test_command_prints_what_the_document_shows(shown: Shown) -> None:
    path = (
        f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the `denspi` of this environment comes first
    )
    environment = os.environ | {"PATH": path, "COLUMNS": "100"}
    finished = subprocess.run(
        shown.command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    if shown.output:
        assert re.fullmatch(_pattern(shown.output), _timeless(finished.stdout)), finished.stdout
        sure = [int(each) for each in CONFIDENCE.findall(finished.stdout)]
        for each in map(int, CONFIDENCE.findall(shown.output)):
            assert any(abs(each - other) <= CONFIDENCE_POINTS for other in sure), f"{each}%, not of {sure}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_python_in_a_document_runs(document: Path) -> None:
    """The blocks of one document continue each other."""
    names: dict[str, object] = {}
    for block in PYTHON_BLOCK.findall(document.read_text(encoding="utf-8")):
        exec(compile(block, document.name, "exec"), names)


def test_the_readme_shows_a_command() -> None:
    assert any(shown.document == "README.md" and shown.output for shown in SHOWN)


def test_ellipsis_and_durations() -> None:
    printed = _timeless("found 3\nmany\nlines\nin 4.25 ms\n")
    assert re.fullmatch(_pattern("found 3\n...\nin 0.1 ms"), printed)
    assert not re.fullmatch(_pattern("found 4\n...\nin 0.1 ms"), printed)


def _timeless(text: str) -> str:
    text = CONFIDENCE.sub("N% sure", DURATION.sub(r"N \1", text))
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n".join(lines)


def _pattern(output: str) -> str:
    lines = _timeless(output).splitlines()
    return "\n".join(r"(?:.*\n?)*?" if line == "..." else re.escape(line) for line in lines).replace(
        "(?:.*\\n?)*?\n", "(?:.*\\n)*?"
    )
