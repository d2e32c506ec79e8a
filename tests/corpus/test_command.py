"""`denspi corpus` as a person runs it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

DENSPI = [sys.executable, "-m", "denspi"]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "100"}
    command = [*DENSPI, "corpus", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def folder(write: Callable) -> Path:
    write("notes/a.txt", "One two.\n\nThree.")
    write("notes/b.jsonl", '{"id": 1, "text": "Four five six."}\noops\n')
    write("notes/.hidden", "x")
    return write("notes/image.png", b"\x89PNG\0").parent


def test_the_table_the_skipped_items_and_their_count(folder: Path, write: Callable) -> None:
    finished = run(folder, write("c.txt", "Seven."))
    assert finished.returncode == 0
    assert finished.stderr == ""
    rows = [line.split() for line in finished.stdout.splitlines()]
    assert ["path", "documents", "paragraphs", "words", "skipped"] in rows
    assert ["total", "3", "4", "7", "2"] in rows
    assert finished.stdout.splitlines()[-4:] == [
        f"note: {folder}: left out 1 hidden entry",
        f"skipped: {folder}/b.jsonl:2: not JSON (Expecting value at column 1)",
        f"skipped: {folder}/image.png: a PNG image, which denspi does not read",
        "2 skipped",
    ]


def test_json(folder: Path) -> None:
    finished = run(folder, "--json")
    assert (finished.returncode, finished.stderr) == (0, "")
    report = json.loads(finished.stdout)
    assert (report["documents"], report["paragraphs"], report["words"]) == (2, 3, 6)
    assert [skipped["source"] for skipped in report["skipped"]] == [
        f"{folder}/b.jsonl:2",
        f"{folder}/image.png",
    ]
    assert report["sources"] == [
        {"path": str(folder), "documents": 2, "paragraphs": 3, "words": 6, "skipped": 2}
    ]


def test_strict_stops_with_one_line(folder: Path) -> None:
    finished = run(folder, "--strict")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == f"denspi: {folder}/b.jsonl:2: not JSON (Expecting value at column 1)\n"


def test_a_missing_path_and_an_unknown_format(folder: Path) -> None:
    missing = run(folder, folder / "gone")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == f"denspi: {folder}/gone: no such file or folder\n"
    unknown = run(folder, "--format", "word")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("denspi: unknown format 'word'; choose one of text, ")


def test_no_document_at_all(write: Callable) -> None:
    path = write("empty.txt", "")
    finished = run(path)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.splitlines() == [
        f"skipped: {path}: empty",
        "1 skipped",
        f"denspi: no document found in {path}",
    ]
    assert json.loads(run(path, "--json").stdout)["documents"] == 0


def _targets(links: Path) -> set[str]:
    targets = set()
    for link in links.iterdir():
        with suppress(OSError):  # closed meanwhile
            targets.add(os.readlink(link))
    return targets


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="cannot see when the command reads")
def test_an_interrupt_is_one_line_and_exit_130(tmp_path: Path) -> None:
    endless = tmp_path / "endless.txt.gz"
    endless.write_bytes(gzip.compress(b"some words\n" * 1_000_000) * 300)
    command = [*DENSPI, "corpus", str(endless)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        open_files = Path(f"/proc/{process.pid}/fd")
        while process.poll() is None and str(endless) not in _targets(open_files):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, "", "denspi: interrupted\n")


def test_the_wikipedia_and_json_formats_can_be_told(write: Callable) -> None:
    path = write("lines.txt", '{"id": "a", "text": "A b c."}\n')
    assert json.loads(run(path, "--format", "jsonl", "--json").stdout)["words"] == 3


@pytest.mark.data
def test_squad_dev(data_dir: Path) -> None:
    report = json.loads(run(data_dir / "squad" / "dev-v1.1.json.gz", "--json").stdout)
    assert (report["documents"], report["paragraphs"], report["skipped"]) == (48, 2067, [])
