"""Whatever happens to changes that were not committed, the index can be changed again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.index.made import MODEL, build, make
from tests.index.test_round_trip import assert_holds

from denspi.index import IndexWriter, Snapshot, WriterSettings, verify
from denspi.index.leftovers import BUILDING
from denspi.index.manifest import MANIFEST_LIMIT_BYTES


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def newest(folder: Path) -> Path:
    return sorted(folder.glob("*-segment"))[-1]


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a byte of a record": lambda folder: flip(newest(folder) / "records"),
    "a byte of the rows": lambda folder: flip(newest(folder) / "starts"),
    "a byte of the table": lambda folder: flip(newest(folder) / "table.json"),
    "a missing file": lambda folder: (newest(folder) / "texts").unlink(),
    "a missing segment": lambda folder: shutil.rmtree(newest(folder)),
    "a byte of building.json": lambda folder: flip(folder / BUILDING),
    "building.json too large": lambda folder: (folder / BUILDING).write_bytes(
        b" " * (MANIFEST_LIMIT_BYTES + 1)
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("is_first", [False, True])
def test_damaged_unfinished_changes_are_dropped(tmp_path: Path, damage: str, is_first: bool) -> None:
    folder, small = tmp_path / "index", WriterSettings(flush_words=1)
    committed = [] if is_first else [make(n) for n in range(3)]
    if not is_first:
        build(folder, committed)
    opened = (
        (lambda **more: IndexWriter.create(folder, MODEL, **more))
        if is_first
        else (lambda **more: IndexWriter.open(folder, **more))
    )
    with opened(settings=small) as writer:
        for n in range(10, 13):
            writer.add(*make(n))
    DAMAGE[damage](folder)
    with opened(resume=True) as writer:
        assert writer.resumed_documents == 0
        assert list(writer.resumed_ids()) == []
        writer.add(*make(12))
        writer.commit()
    assert_holds(Snapshot.open(folder), [*committed, make(12)])
    assert verify(folder).problems == ()
    assert len(list(folder.glob("0*"))) == len(Snapshot.open(folder).manifest.parts)
