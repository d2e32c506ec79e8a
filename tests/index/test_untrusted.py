"""An index from a stranger, its checksums right and its content not: a named error or an answer, no more.

No exception but a DenspiError, no file outside the folder, no memory for sizes that are only claimed.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.made import build, make

from denspi.errors import DenspiError, IndexDamagedError
from denspi.index import IndexWriter, Snapshot, verify
from denspi.index.blocks import BlockSums
from denspi.index.jsonfields import canonical
from denspi.index.manifest import MANIFEST, sealed
from denspi.sparse import weigh_question

QUESTION = "When was the old town of Warsaw rebuilt?"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "index"
    build(folder, [make(n) for n in range(4)])
    with IndexWriter.open(folder) as writer:
        writer.delete("d2")
        writer.commit()
    return folder


@pytest.fixture(autouse=True)
def _bounded_memory() -> Iterator[None]:
    """An absurd allocation fails instead of taking the machine along."""
    old = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), old[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, old)


def use(folder: Path) -> None:
    """Search, read and verify, as far as it goes; only a DenspiError may stop it."""
    verify(folder)
    try:
        snapshot = Snapshot.open(folder)
        question = weigh_question(QUESTION, snapshot.frequencies)
        for segment in snapshot.segments:
            segment.postings.top_documents(question, 3)
            segment.postings.top_paragraphs(question, 3)
            segment.postings.top_paragraphs_by_both(question, 3)
            for number in range(min(5, segment.counts.documents)):
                segment.document(number)
            for paragraph in range(min(5, segment.counts.paragraphs)):
                segment.rows_of(paragraph)
                segment.paragraph_text(paragraph)
        snapshot.document("d1")
        with IndexWriter.open(folder) as writer:
            writer.add(*make(9))
            writer.merge()
            writer.commit()
    except DenspiError:
        return


NUMBERS: list[Any] = [None, True, -1, 0, 1, 7, 1 << 33, 1 << 62, 10**30, 1.5]
LISTS: list[Any] = [[], [1], [-1], [1 << 40, 1 << 40], {}, {"folder": ".."}]
TEXTS: list[Any] = [
    "",
    "x",
    "../../../tmp",
    "/etc/passwd",
    "float32",
    "object",
    "compact",
    "000001-fit",
    "000099-segment",
]
JUNK = NUMBERS + LISTS + TEXTS


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def put(value: Any, path: tuple[Any, ...], junk: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = junk


@settings(max_examples=60)
@given(data=st.data())
def test_any_manifest(sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("hostile") / "index"
    shutil.copytree(sound, folder)
    body = json.loads((folder / MANIFEST).read_bytes())["content"]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(sorted(places(body), key=str)))
        put(body, path, data.draw(st.sampled_from(JUNK)))
    (folder / MANIFEST).write_bytes(sealed(body))
    use(folder)
    shutil.rmtree(folder)


@settings(max_examples=60)
@given(data=st.data())
def test_any_table(sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("hostile") / "index"
    shutil.copytree(sound, folder)
    part = data.draw(st.sampled_from(sorted(path.name for path in folder.glob("0*"))))
    table = json.loads((folder / part / "table.json").read_bytes())
    path = data.draw(st.sampled_from(sorted(places(table), key=str)))
    put(table, path, data.draw(st.sampled_from(JUNK)))
    reseal(folder, part, table)
    use(folder)
    shutil.rmtree(folder)


@settings(max_examples=30)
@given(data=st.data())
def test_any_component(sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    change_a_component(sound, tmp_path_factory.mktemp("hostile") / "index", data)


@pytest.mark.slow
@settings(max_examples=250)
@given(data=st.data())
def test_any_component_at_length(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    change_a_component(sound, tmp_path_factory.mktemp("hostile") / "index", data)


def change_a_component(sound: Path, folder: Path, data: st.DataObject) -> None:
    """Other bytes, and the checksums that belong to them."""
    shutil.copytree(sound, folder)
    part = data.draw(st.sampled_from(sorted(path.name for path in folder.glob("0*"))))
    table = json.loads((folder / part / "table.json").read_bytes())
    entry = data.draw(st.sampled_from([each for each in table["components"] if each["bytes"]]))
    path = folder / part / entry["name"]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(content) - 1))
        new = data.draw(st.binary(min_size=1, max_size=8))[: len(content) - begin]
        content[begin : begin + len(new)] = new
    path.write_bytes(content)
    sums = BlockSums()
    sums.add(bytes(content))
    entry["checksums"] = sums.array().astype(">u4").tobytes().hex()
    reseal(folder, part, table)
    use(folder)
    shutil.rmtree(folder)


def reseal(folder: Path, part: str, table: object) -> None:
    """Make the manifest agree with a table."""
    content = canonical(table)
    (folder / part / "table.json").write_bytes(content)
    body = json.loads((folder / MANIFEST).read_bytes())["content"]
    for path in list(places(body)):
        if path[-1] == "folder":
            holder = body
            for key in path[:-1]:
                holder = holder[key]
            if holder["folder"] == part:
                holder["table_bytes"] = len(content)
                holder["table_sha256"] = hashlib.sha256(content).hexdigest()
    (folder / MANIFEST).write_bytes(sealed(body))


@settings(max_examples=40)
@given(content=st.binary(max_size=200) | st.just(b"[" * 100_000) | st.just(b'{"content":' * 50_000))
def test_any_bytes_as_a_manifest(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(DenspiError) as told:
        Snapshot.open(folder)
    assert str(folder / MANIFEST) in str(told.value) or "not an index" in str(told.value)
    assert verify(folder).problems


def test_any_flipped_byte_of_the_manifest_is_noticed(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    content = (folder / MANIFEST).read_bytes()
    for byte in range(0, len(content), 7):
        (folder / MANIFEST).write_bytes(content[:byte] + bytes([content[byte] ^ 1]) + content[byte + 1 :])
        with pytest.raises(IndexDamagedError, match=r"manifest\.json"):
            Snapshot.open(folder)
    (folder / MANIFEST).write_bytes(content[:-1])
    with pytest.raises(IndexDamagedError, match=r"manifest\.json"):
        Snapshot.open(folder)


def test_a_newer_format_is_refused_with_a_clear_line(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    finding = r"is newer than this denspi knows \(1\); install a newer one"
    for content in (
        sealed({"format": 2, "else": "entirely"}),
        b'{"content": {"format": 99}, "seal": "other"}',
    ):
        (folder / MANIFEST).write_bytes(content)
        for opening in (Snapshot.open, IndexWriter.open):
            with pytest.raises(IndexDamagedError, match=finding):
                opening(folder)
        assert len(verify(folder).problems) == 1


@pytest.mark.parametrize("name", ["starts", "table.json", "postings.npy", "texts"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_ordinary_files_are_opened(sound: Path, tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    path = folder / Snapshot.open(folder).segments[0].name / name
    path.rename(tmp_path / "real")
    if kind == "link":
        path.symlink_to(tmp_path / "real")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert verify(folder).problems
    use(folder)


def test_a_link_in_the_place_of_a_part_or_of_the_manifest(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(sound, folder)
    part = folder / Snapshot.open(folder).segments[0].name
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    assert verify(folder).problems
    with pytest.raises(IndexDamagedError, match="not an ordinary file"):
        Snapshot.open(folder)
    (folder / MANIFEST).rename(tmp_path / "m")
    (folder / MANIFEST).symlink_to(tmp_path / "m")
    with pytest.raises(IndexDamagedError, match="a link instead of a file"):
        Snapshot.open(folder)
