"""Writing takes memory for what is not flushed yet, opening reads tables, whatever the size of the index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.index.made import MODEL, build, make

from denspi.index import IndexWriter, Snapshot, WriterSettings
from denspi.index.directory import Directory
from denspi.index.snapshot import open_snapshot

SETTINGS = WriterSettings(flush_words=20_000)


def anonymous_bytes() -> int:
    """Memory of this process that is no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


@pytest.mark.slow
def test_adding_and_merging_do_not_hold_what_was_flushed(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc to see the memory of a process")
    # In a process of its own: this one may hold, and touch, whatever other tests left behind.
    root = Path(__file__).parents[2]
    code = f"from tests.index.test_memory import write; write({str(tmp_path / 'index')!r})"
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    seen = [int(each) for each in finished.stdout.split()]
    stored = Snapshot.open(tmp_path / "index").size_bytes
    assert stored > 40_000_000
    assert max(seen[4:]) - seen[3] < stored / 2  # a commit has some 10 MB of its own


def write(folder: str) -> None:
    """Print the memory now and then, and at the end."""
    with IndexWriter.create(Path(folder), MODEL, settings=SETTINGS) as writer:
        for number in range(2700):
            writer.add(*make(number, paragraphs=4, words=250))
            if number % 50 == 0:
                print(anonymous_bytes())
        writer.commit()
        print(anonymous_bytes())


class WatchedDirectory(Directory):
    """Remembers which files were opened to be read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.opened: set[str] = set()

    def open_file(self, folder: str, name: str) -> BinaryIO:
        self.opened.add(name)
        return super().open_file(folder, name)


def test_opening_reads_the_manifest_and_the_tables_only(tmp_path: Path) -> None:
    build(tmp_path / "index", [make(n) for n in range(4)])
    directory = WatchedDirectory(tmp_path / "index")
    snapshot = open_snapshot(directory)
    assert snapshot.live.documents == 4
    assert directory.opened == {"manifest.json", "table.json"}
    assert snapshot.document("d2") == make(2)[0]
    assert "texts" in directory.opened
    assert not directory.opened & {"starts", "ends", "postings.npy"}
