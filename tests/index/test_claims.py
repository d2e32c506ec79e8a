"""Right checksums under wrong claims: what verify must say, and what must not be believed or opened."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.index.made import build, make, make_document, make_rows
from tests.index.test_untrusted import QUESTION, _bounded_memory, reseal  # noqa: F401

from denspi.errors import DenspiError, IndexDamagedError, InputError
from denspi.index import IndexWriter, Snapshot, verify
from denspi.index.blocks import BlockSums
from denspi.index.leftovers import BUILDING
from denspi.index.manifest import MANIFEST, sealed
from denspi.index.texts import STRETCH_LIMIT_BYTES
from denspi.index.verify import bytes_to_verify
from denspi.sparse import weigh_question


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "index"
    build(folder, [make(n) for n in range(4)])
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def part_of(folder: Path, kind: str) -> str:
    return next(path.name for path in folder.glob(f"*-{kind}"))


def rewrite(folder: Path, part: str, name: str, content: bytes, width: int = 1) -> None:
    """Other content, with the checksums that belong to it."""
    (folder / part / name).write_bytes(content)
    table = json.loads((folder / part / "table.json").read_bytes())
    sums = BlockSums()
    sums.add(content)
    for entry in table["components"]:
        if entry["name"] == name:
            entry["checksums"] = sums.array().astype(">u4").tobytes().hex()
            if entry["bytes"] != len(content):
                entry |= {"bytes": len(content), "shape": [len(content) // width]}
    reseal(folder, part, table)


def change_array(folder: Path, kind: str, name: str, change: Callable[[np.ndarray], None]) -> None:
    path = folder / part_of(folder, kind) / name
    values = np.load(path)
    header = path.read_bytes()[: path.stat().st_size - values.nbytes]
    change(values)
    rewrite(folder, part_of(folder, kind), name, header + values.tobytes())


def set_last(value: float) -> Callable[[np.ndarray], None]:
    def change(values: np.ndarray) -> None:
        values[-1] = value

    return change


def set_all(value: float) -> Callable[[np.ndarray], None]:
    def change(values: np.ndarray) -> None:
        values[:] = value

    return change


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("segment", "postings.npy", set_last(5000 << 6 | 1)),
        ("segment", "postings.npy", set_all(1)),
        ("segment", "postings.npy", set_last(63)),
        ("segment", "unit_documents.npy", set_all(0)),
        ("segment", "lengths-small.npy", set_all(255)),
        ("segment", "lengths-small.npy", set_all(0)),
        ("segment", "lengths-group_sums.npy", lambda values: values.__setitem__(slice(1, -1), 0)),
        ("fit", "frequencies-small.npy", set_all(255)),
        ("fit", "frequencies-low.npy", set_all(0)),
        ("norms", "norms-documents.npy", set_all(np.nan)),
        ("norms", "norms-units.npy", set_last(-1)),
        ("norms", "norms-units.npy", set_last(np.inf)),
    ],
)
def test_verify_sees_sparse_files_that_cannot_be(
    folder: Path, kind: str, name: str, change: Callable[[np.ndarray], None]
) -> None:
    change_array(folder, kind, name, change)
    problems = verify(folder).problems
    assert problems
    assert all("\n" not in each and "sparse index" not in each for each in problems)
    try:
        snapshot = Snapshot.open(folder)
        question = weigh_question(QUESTION, snapshot.frequencies)
        snapshot.segments[0].postings.top_paragraphs_by_both(question, 3)
    except DenspiError as error:
        assert "index is damaged" in str(error) or "; damaged" in str(error)  # noqa: PT017


@pytest.mark.parametrize("claim", ["documents", "paragraphs", "starts", "ends"])
@pytest.mark.parametrize("count", [5, 1 << 33, 1 << 40])
def test_claimed_counts_are_compared_before_they_are_used(folder: Path, claim: str, count: int) -> None:
    body = json.loads((folder / MANIFEST).read_bytes())["content"]
    body["segments"][0]["counts"][claim] = count
    (folder / MANIFEST).write_bytes(sealed(body))
    for use in (Snapshot.open, IndexWriter.open):
        with pytest.raises(IndexDamagedError, match="another number of rows"):
            use(folder)
    assert len(verify(folder).problems) == 1


def test_claimed_counts_of_unfinished_changes_are_not_believed(folder: Path) -> None:
    with IndexWriter.open(folder) as writer:
        writer.add(*make(9))
        writer.flush()
    header, line, _ = (folder / BUILDING).read_bytes().split(b"\n")
    body = json.loads(line)["content"]
    body["segments"][0]["counts"]["documents"] = 1 << 40
    (folder / BUILDING).write_bytes(header + b"\n" + sealed(body) + b"\n")
    with IndexWriter.open(folder, resume=True) as writer:
        assert writer.resumed_documents == 0


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "file"])
@pytest.mark.parametrize("name", ["overflow.npy", "postings.npy", "lengths-small.npy"])
def test_a_file_that_is_not_listed_is_never_opened(
    folder: Path, tmp_path: Path, name: str, kind: str
) -> None:
    part = part_of(folder, "segment")
    table = json.loads((folder / part / "table.json").read_bytes())
    table["components"] = [each for each in table["components"] if each["name"] != name]
    reseal(folder, part, table)
    path = folder / part / name
    if kind != "file":
        path.rename(tmp_path / "outside.npy")
    if kind == "link":
        path.symlink_to(tmp_path / "outside.npy")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    assert any(f"{name}: missing from the table" in each for each in verify(folder).problems)
    with pytest.raises(IndexDamagedError, match="missing from the table"):
        assert Snapshot.open(folder).segments[0].postings is None


def test_a_text_longer_than_is_ever_written(folder: Path) -> None:
    part, size = part_of(folder, "segment"), 1 << 31
    rewrite(folder, part, "document_bytes", np.array([0, size, size, size, size], "<u8").tobytes(), 8)
    assert any("more than is ever written" in each for each in verify(folder).problems)
    with pytest.raises(IndexDamagedError, match="more than is ever written"):
        Snapshot.open(folder).document("d0")


def test_a_document_that_would_not_be_given_back_is_not_taken(folder: Path) -> None:
    rows = [make_rows("old", np.random.default_rng(0))]
    with IndexWriter.open(folder) as writer:
        for document in (
            make_document("long", ["old"], metadata={"k": "x" * STRETCH_LIMIT_BYTES}),
            make_document("long", ["old" + "é" * (STRETCH_LIMIT_BYTES // 2)]),
        ):
            with pytest.raises(InputError, match="split it"):
                writer.add(document, rows)
        assert writer.commit() == 1


def test_miscounted_runs_are_named(folder: Path) -> None:
    part = part_of(folder, "segment")
    counts = np.fromfile(folder / part / "paragraph_runs", np.uint32)
    rewrite(folder, part, "paragraph_runs", (counts + 1).tobytes())
    assert any("paragraph_runs miscounts paragraph 0" in line for line in verify(folder).problems)


def test_verify_tells_of_all_that_it_reads(folder: Path) -> None:
    told: list[int] = []
    assert verify(folder, told.append).problems == ()
    assert sum(told) == bytes_to_verify(folder)
    assert min(told) >= 0
    assert sum(told) > sum(path.stat().st_size for path in folder.rglob("texts"))
    assert bytes_to_verify(folder / "nowhere") == 0


def test_long_ids_do_not_fill_the_screen(folder: Path) -> None:
    document, rows = make(0)
    long_id = replace(document, document_id="x" * 5000)
    refused: list[Callable[[IndexWriter], None]] = [
        lambda writer: writer.add(long_id, rows[:1]),
        lambda writer: writer.add(replace(long_id, metadata={"k": {1}}), rows),
        lambda writer: writer.add(replace(long_id, metadata={1: "k"}), rows),  # type: ignore[dict-item]
        lambda writer: [writer.add(long_id, rows) for _ in range(2)],
    ]
    for add in refused:
        with IndexWriter.open(folder) as writer, pytest.raises(InputError) as raised:
            add(writer)
        assert "xxx..." in str(raised.value)
        assert len(str(raised.value)) < 500


@pytest.mark.parametrize(("name", "claim"), [("id_hashes", "documents"), ("paragraph_words", "paragraphs")])
def test_rows_of_no_bytes_vouch_for_no_count(folder: Path, name: str, claim: str) -> None:
    part, count = part_of(folder, "segment"), 1 << 40
    table = json.loads((folder / part / "table.json").read_bytes())
    for entry in table["components"]:
        if entry["name"] == name:
            entry |= {"bytes": 0, "shape": [count, 0], "checksums": ""}
            (folder / part / name).write_bytes(b"")
    reseal(folder, part, table)
    body = json.loads((folder / MANIFEST).read_bytes())["content"]
    body["segments"][0]["counts"][claim] = count
    (folder / MANIFEST).write_bytes(sealed(body))
    for use in (Snapshot.open, IndexWriter.open):
        with pytest.raises(IndexDamagedError, match="another number of rows"):
            use(folder)
    assert len(verify(folder).problems) == 1


@pytest.mark.parametrize(
    ("claim", "number"), [("generation", 1 << 40), ("next_part", 10**12 - 1), ("next_part", 1 << 40)]
)
def test_what_could_not_be_opened_again_is_not_committed(folder: Path, claim: str, number: int) -> None:
    body = json.loads((folder / MANIFEST).read_bytes())["content"]
    body[claim] = number
    (folder / MANIFEST).write_bytes(sealed(body))
    with IndexWriter.open(folder) as writer:
        writer.delete("d1")
        writer.add(*make(9))
        with pytest.raises(IndexDamagedError, match=r"manifest\.json"):
            writer.commit()
    assert Snapshot.open(folder).live.documents == 4
    assert verify(folder).problems == ()


def test_an_empty_manifest_is_damage_to_a_writer_too(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(b"")
    for opening in (Snapshot.open, IndexWriter.open):
        with pytest.raises(IndexDamagedError, match=r"manifest\.json: not readable"):
            opening(folder)
    assert part_of(folder, "segment")
