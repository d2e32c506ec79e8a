"""A random life of an index, step by step the same for the same seed, and what must be in it afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.index.made import make

from denspi.build.lists import make_lists
from denspi.dense.points import Int8Points
from denspi.index import IndexWriter, Snapshot, WriterSettings, merge_beside, verify
from denspi.index.directory import Directory
from denspi.index.locks import Wait
from denspi.index.snapshot import open_snapshot

Held = dict[int, int]  # number of a document -> its version
SMALL = WriterSettings(flush_words=40)
_DOCUMENTS = 12


def live(
    directory: Directory,
    held: Held,
    generator: np.random.Generator,
    commits: int,
    say: Callable[[str, Held], None],
) -> None:
    """Change and merge at random; `say` what a commit is about to make true, and when it has."""
    held = dict(held)
    for _ in range(commits):
        chance = generator.random()
        if chance < 0.1:
            say("intend", held)
            _attach_lists(directory)
            say("done", held)
            continue
        if chance < 0.3:
            say("intend", held)
            merge_beside(directory.path, everything=True, wait=Wait(10), directory=directory)
            say("done", held)
            continue
        with IndexWriter.open(
            directory.path, directory=directory, settings=SMALL, resume=False, wait=Wait(10)
        ) as writer:
            for _ in range(int(generator.integers(1, 5))):
                _change(writer, held, generator)
            if generator.random() < 0.3:
                writer.merge()
            if generator.random() < 0.2:
                writer.refit()
            say("intend", held)
            writer.commit()
            say("done", held)


def _attach_lists(directory: Directory) -> None:
    """As `attach_missing_lists` does it, and for segments of any size."""
    snapshot = open_snapshot(directory)
    with IndexWriter.open(directory.path, directory=directory, wait=Wait(10)) as writer:
        for segment in snapshot.segments:
            writer.attach_lists(segment.name, make_lists(segment, Int8Points(), lists=3))
        writer.commit()


def _change(writer: IndexWriter, held: Held, generator: np.random.Generator) -> None:
    number = int(generator.integers(_DOCUMENTS))
    if number in held and generator.random() < 0.5:
        assert writer.delete(f"d{number}")
        del held[number]
    else:
        held[number] = int(generator.integers(1 << 30))
        writer.update(*make(number, paragraphs=1, words=8, version=held[number]))


def found_in(folder: Path) -> Held:
    """What an index holds, every document compared with what was once written."""
    snapshot, held = Snapshot.open(folder), {}
    for segment in snapshot.segments:
        for place in np.flatnonzero(segment.live).tolist():
            document = segment.document(place)
            number, version = document.metadata["number"], document.metadata["version"]
            assert isinstance(number, int)
            assert isinstance(version, int)
            expected, rows = make(number, paragraphs=1, words=8, version=version)
            assert document == expected
            paragraph = int(segment.document_paragraphs[place])
            np.testing.assert_array_equal(segment.rows_of(paragraph).starts, rows[0].starts)
            assert number not in held
            held[number] = version
    return held


def assert_whole(folder: Path, *allowed: Held) -> Held:
    """The index opens, verifies, and holds one of these states; and it can be written again."""
    held = found_in(folder)
    assert held in allowed, (held, allowed)
    report = verify(folder)
    assert report.problems == ()
    with IndexWriter.open(folder):  # removes what was left behind
        pass
    named = {part.folder for part in Snapshot.open(folder).manifest.parts}
    left = {path.name for path in folder.iterdir()} - named
    assert left <= {"manifest.json", "lock", "merge.lock"}, left
    return held
