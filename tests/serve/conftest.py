"""Real servers on loopback: `denspi serve` in a process of its own, on any free port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from denspi import Index
from denspi.corpus import join_paragraphs, read_corpus
from denspi.index import directory
from denspi.sample import sample_articles_path
from denspi.types import Document

IDS = ["danube", "forth-bridge", "great-fire-of-london"]
QUESTION = "Who built Trajan's bridge over the Danube?"
RIGHT = "Apollodorus of Damascus"
TOKEN = "a token that nobody guesses"
ODD_ID = "a b/../c?d#e%2F&é\N{BAGEL}<script>"
SCRIPT = "<script>document.title = 'run'</script>"
END_SECONDS = 60


@dataclass(frozen=True)
class Running:
    """A server, and a client that is connected with it."""

    process: subprocess.Popen[str]
    url: str
    client: httpx.Client
    index: Path

    def ask(self, question: str = QUESTION, **options: object) -> httpx.Response:
        return self.client.get("/api/answers", params={"question": question, **options})

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(END_SECONDS)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few articles of the sample corpus, and a document that is nothing but odd."""
    folder = tmp_path_factory.mktemp("serve") / "index"
    chosen = [
        each
        for each in read_corpus(sample_articles_path())
        if isinstance(each, Document) and each.document_id in IDS
    ]
    text, spans = join_paragraphs([f"The red {SCRIPT} button \N{BAGEL} was pressed by Nils Holm in 1977."])
    chosen.append(Document(ODD_ID, SCRIPT, text, spans, "x/y.txt", {"colour": "red"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        with Index.create(folder) as made:
            made.add(chosen)
            made.commit()
    return folder


@contextmanager
def started(command: list[str], index: Path, **variables: str) -> Iterator[Running]:
    """The server that `command` starts; its first line of output ends in the address."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | variables
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert " at http://" in line, f"it did not start: {line!r}"
            url = line.split()[-1]
            with httpx.Client(base_url=url, timeout=END_SECONDS) as client:
                yield Running(process, url, client, index)
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def serve(index: Path, *options: str, **variables: str) -> AbstractContextManager[Running]:
    """`denspi serve` with options."""
    command = [sys.executable, "-m", "denspi", "serve", str(index), "--port", "0", *options]
    return started(command, index, **variables)


@pytest.fixture(scope="session")
def server(built: Path) -> Iterator[Running]:
    """As most people start it."""
    with serve(built) as running:
        yield running


@pytest.fixture(scope="session")
def writable(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Two workers that may change an index of their own."""
    index = tmp_path_factory.mktemp("writable") / "index"
    shutil.copytree(built, index)
    with serve(index, "--writable", "--workers", "2", DENSPI_TOKEN=TOKEN) as running:
        yield running


@pytest.fixture
def own_index(built: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(built, tmp_path / "index"))
