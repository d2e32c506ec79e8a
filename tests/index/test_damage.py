"""Flip a byte, cut or lose a file: `verify` names it; reading gives a named error or a right answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.index.made import build, make
from tests.index.test_round_trip import assert_same_rows, scores

from denspi.errors import DenspiError, IndexDamagedError
from denspi.index import IndexWriter, MergePolicy, Snapshot, WriterSettings, verify

NEVER = WriterSettings(policy=MergePolicy(fanout=1000, most_deleted=1.0))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments, tombstones, lists; a text and rows of more than one block."""
    folder = tmp_path_factory.mktemp("sound") / "index"
    build(folder, [make(n, words=300) for n in range(30)])
    with IndexWriter.open(folder, settings=NEVER) as writer:
        writer.add(*make(50))
        writer.delete("d2")
        writer.commit()
        name = Snapshot.open(folder).segments[0].name
        writer.attach_lists(name, {"list_rows": np.arange(40, dtype=np.uint32)})
        writer.commit()
    assert verify(folder).problems == ()
    return folder


def components(folder: Path) -> list[str]:
    snapshot = Snapshot.open(folder)
    return [
        f"{part.ref.folder}/{component.name}" for part in snapshot.parts for component in part.components
    ] + [f"{part.ref.folder}/table.json" for part in snapshot.parts]


def flip(place: float) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        byte = min(len(content) - 1, int(place * len(content)))
        return content[:byte] + bytes([content[byte] ^ 0x10]) + content[byte + 1 :]

    return change


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "first byte": flip(0),
    "a byte inside": flip(0.6),
    "last byte": flip(1),
    "cut": lambda content: content[:-1],
    "emptied": lambda content: b"",
    "longer": lambda content: content + b"\0",
    "zeros": lambda content: bytes(len(content)),
}


QUICK = {"a byte inside", "cut"}


def read_everything(folder: Path) -> tuple[object, ...]:
    """All that a search could come across."""
    snapshot = Snapshot.open(folder)
    rows, documents = [], []
    for segment in snapshot.segments:
        for number in np.flatnonzero(segment.live).tolist():
            documents.append(segment.document(number))
            first, last = segment.document_paragraphs[number : number + 2].tolist()
            rows += [segment.rows_of(paragraph) for paragraph in range(first, last)]
    found = [snapshot.document(f"d{n}") for n in range(60)]
    return scores(snapshot), documents, found, rows


@pytest.mark.parametrize(
    "change",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CHANGES],
)
def test_damage_is_named_and_never_gives_a_wrong_answer(sound: Path, tmp_path: Path, change: str) -> None:
    expected = read_everything(sound)
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    for name in components(sound):
        path = folder / name
        before = path.read_bytes()
        after = CHANGES[change](before) if before or change == "longer" else before
        if after == before:
            continue
        path.write_bytes(after)
        report = verify(folder)
        assert any(str(path) in problem for problem in report.problems), (name, report.problems)
        assert all("\n" not in problem for problem in report.problems)
        try:
            found = read_everything(folder)
        except DenspiError:
            pass
        else:
            assert found[:3] == expected[:3], name
            for got, own in zip(found[3], expected[3], strict=True):  # type: ignore[call-overload]
                assert_same_rows(got, own)
        path.write_bytes(before)
    assert verify(folder).problems == ()


def open_everything(folder: Path) -> None:
    for part in Snapshot.open(folder).parts:
        for component in part.components:
            columns = component.shape[1] if len(component.shape) > 1 else None
            part.get(component.name, component.dtype, columns=columns)


def test_a_missing_component_is_named(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    for name in components(sound):
        path = folder / name
        path.rename(tmp_path / "away")
        problems = verify(folder).problems
        assert any(str(path.parent) in problem for problem in problems), (name, problems)
        with pytest.raises(DenspiError):
            open_everything(folder)
        (tmp_path / "away").rename(path)


def test_only_what_is_read_is_checked(sound: Path, tmp_path: Path) -> None:
    """Opening reads nothing; a damaged block hurts those who read it, and only them."""
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    path = folder / Snapshot.open(folder).segments[0].name / "starts"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    starts = Snapshot.open(folder).segments[0].starts.codes
    assert starts.rows(0, 10).shape == (10, 6)
    assert len(starts.at(np.array([3, 1, 2]))) == 3
    for read in (
        lambda: starts.rows(len(starts) - 1, len(starts)),
        lambda: starts.at(np.array([0, len(starts) - 1])),
        starts.whole,
        lambda: starts.check(len(starts) - 2, len(starts)),
    ):
        for _ in range(2):  # the second time too
            with pytest.raises(IndexDamagedError, match="starts: damaged at byte"):
                read()
    assert starts.rows(0, 10).shape == (10, 6)


def test_a_part_in_the_place_of_another_is_refused(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    first, second = (segment.name for segment in Snapshot.open(folder).segments)
    (folder / first).rename(folder / "x")
    (folder / second).rename(folder / first)
    (folder / "x").rename(folder / second)
    with pytest.raises(IndexDamagedError, match=r"not the one that the manifest names|larger than"):
        Snapshot.open(folder)


def test_a_part_that_is_gone_or_a_file_is_damage_with_a_next_step(sound: Path, tmp_path: Path) -> None:
    for kind in ("gone", "a file"):
        folder = shutil.copytree(sound, tmp_path / kind)
        part = next(folder.glob("*-segment"))
        shutil.rmtree(part)
        if kind == "a file":
            part.write_bytes(b"")
        (problem,) = verify(folder).problems
        assert problem.startswith(f"{part}: missing or no folder; the index is damaged, restore it")
        with pytest.raises(IndexDamagedError, match="restore it from a copy or build it again"):
            Snapshot.open(folder)
