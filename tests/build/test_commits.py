"""What a commit leaves behind: no replaced part, no wait for others, and a change that outlives Ctrl-C."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest
from tests.build.conftest import make_documents
from tests.build.test_index import HERE, build, by_id, changed, parts, stored

from denspi import cli
from denspi.build.index import Index
from denspi.build.model import IndexModel
from denspi.build.resuming import is_same
from denspi.errors import IndexLockedError, InputError, StorageError
from denspi.index.merge_beside import merge_beside
from denspi.index.writer import IndexWriter

DOCUMENTS = make_documents(12)
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def index(model_folder: Path, tmp_path: Path) -> Path:
    return build(tmp_path / "index", model_folder, DOCUMENTS[:8])


def part_folders(index: Path) -> set[str]:
    return {path.name for path in index.iterdir() if path.is_dir()}


def live_parts(index: Path) -> set[str]:
    return {part.ref.folder for part in Index.open(index).snapshot().parts}


@pytest.mark.parametrize("command", ["add", "update", "delete", "merge", "refit"])
def test_a_command_leaves_only_live_parts(command: str, index: Path, tmp_path: Path) -> None:
    for document in DOCUMENTS[8:10]:
        with Index.open(index, workers=HERE) as opened:
            opened.add([document])
            opened.delete(f"d{int(document.document_id[1:]) - 8}")
            opened.commit()
    (tmp_path / "new.txt").write_text("joon lives in graz .")
    arguments = {"add": [str(tmp_path / "new.txt")], "update": [str(tmp_path / "new.txt")], "delete": ["d4"]}
    before = live_parts(index)
    assert cli.run([command, str(index), *arguments.get(command, [])]) == 0
    assert live_parts(index) != before
    assert part_folders(index) == live_parts(index)


def test_a_snapshot_that_was_handed_out_keeps_its_parts(index: Path) -> None:
    with Index.open(index, workers=HERE) as opened:
        held = opened.snapshot()
        opened.update(map(changed, DOCUMENTS[:8]))
        opened.commit()
        opened.merge()
        found = held.document("d3")
        assert found is not None
        assert found.text == DOCUMENTS[3].text
        assert {part.ref.folder for part in held.parts} <= part_folders(index)


def test_a_commit_waits_for_no_other_writer(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(  # so that there is something to merge
        "denspi.build.index.merge_beside",
        lambda folder, **rest: merge_beside(folder, everything=True, **rest),
    )
    real_close, others = Index.close, []

    def close_and_be_overtaken(self: Index) -> None:
        is_commit = self._writer is not None and not others
        real_close(self)
        if is_commit:
            others.append(IndexWriter.open(index))

    monkeypatch.setattr(Index, "close", close_and_be_overtaken)
    # A wait would be an endless one: nobody lets go of the lock.
    monkeypatch.setattr("denspi.index.locks.time.sleep", fail)
    with Index.open(index, workers=HERE) as opened:
        opened.delete("d0")
        assert opened.commit() == 2
    (other,) = others
    with pytest.raises(IndexLockedError):
        IndexWriter.open(index)
    other.close()
    assert stored(index) == by_id(DOCUMENTS[1:8])
    assert "merging" not in part_folders(index)


def fail(*_: object, **__: object) -> NoReturn:
    raise AssertionError("waits")


def pressed(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["denspi.build.index.merge_beside", "denspi.index.writer.remove_unnamed"])
def test_ctrl_c_after_the_commit_is_no_reason_to_run_it_again(
    where: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "new.txt").write_text("joon lives in graz .")
    real = IndexWriter._commit

    def commit(self: IndexWriter) -> int:
        monkeypatch.setattr(where, pressed)  # not before: opening removes what is unnamed, too
        return real(self)

    monkeypatch.setattr(IndexWriter, "_commit", commit)
    assert cli.run(["add", str(index), str(tmp_path / "new.txt")]) == 0
    printed = capsys.readouterr()
    assert printed.err == ("denspi: stopped while merging; the change is committed, a later one will merge\n")
    assert printed.out.endswith(", generation 2\n")
    assert "new.txt" in stored(index)
    monkeypatch.undo()
    with Index.open(index) as opened:  # the lock is free
        assert opened.delete("new.txt") == 1


def full_disk(*_: object, **__: object) -> NoReturn:
    raise StorageError("index: the disk is full")


def test_a_disk_that_is_full_after_the_commit_is_no_reason_either(
    index: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("denspi.build.index.merge_beside", full_disk)
    assert cli.run(["delete", str(index), "d0"]) == 0
    printed = capsys.readouterr()
    assert printed.err == (
        "denspi: stopped while merging (index: the disk is full); "
        "the change is committed, a later one will merge\n"
    )
    assert printed.out == "1 document deleted; generation 2\n"
    monkeypatch.setattr(IndexWriter, "_commit", full_disk)
    assert cli.run(["delete", str(index), "d1"]) == 2
    assert stored(index) == by_id(DOCUMENTS[1:8])


def test_ctrl_c_before_the_commit_is(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexWriter, "_commit", pressed)
    with Index.open(index) as opened:
        opened.delete("d0")
        with pytest.raises(KeyboardInterrupt):
            opened.commit()
    assert stored(index) == by_id(DOCUMENTS[:8])


class Interrupted(ModuleType):
    """onnxruntime as it is while its extension is being loaded and Ctrl-C is pressed."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ImportError("initialization failed") from KeyboardInterrupt()


def test_ctrl_c_while_the_model_runtime_is_imported(
    index: Path, model: IndexModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "new.txt").write_text("joon lives in graz .")
    monkeypatch.setitem(sys.modules, "denspi.dense.onnx_encoder", Interrupted("denspi.dense.onnx_encoder"))
    assert cli.run(["add", str(index), str(tmp_path / "new.txt")]) == 130
    assert capsys.readouterr().err == "denspi: interrupted; run the same command again to go on\n"
    monkeypatch.setitem(sys.modules, "denspi.dense.onnx_encoder", None)  # an import that fails by itself
    with pytest.raises(ImportError):
        model.encoder()


def test_metadata_with_keys_that_are_no_texts_is_compared_as_it_is_stored(index: Path) -> None:
    odd = replace(DOCUMENTS[0], metadata={1: "a", "b": [2]})  # type: ignore[dict-item]
    assert is_same(replace(odd, metadata={"b": [2], "1": "a"}), odd)
    assert not is_same(replace(odd, metadata={"b": [2], "1": "b"}), odd)
    for metadata in (odd.metadata, {"a": {1, 2}}):
        with pytest.raises(InputError, match="JSON"), Index.open(index, workers=HERE) as opened:
            opened.update([replace(odd, metadata=metadata)])


def test_long_ids_are_shortened_in_messages(index: Path, capsys: Captured) -> None:
    long = "x" * 1_000_000
    assert cli.run(["delete", str(index), long[:100_000]]) == 2
    assert len(capsys.readouterr().err) < 600
    with Index.open(index, workers=HERE) as opened:
        opened.add([replace(DOCUMENTS[9], document_id=long)])
        opened.commit()
    with (
        pytest.raises(Exception, match="already has a document 'xxx") as error,
        Index.open(index, workers=HERE) as opened,
    ):
        opened.add([replace(DOCUMENTS[9], document_id=long)])
    assert len(str(error.value)) < 600


def test_what_only_an_interrupted_run_had_cannot_be_deleted(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denspi.build.index.SEGMENT_WORDS", 1)
    many = [*DOCUMENTS[8:], *parts("big.txt", 3)]
    with Index.open(index, workers=HERE) as opened:
        opened.add(many)  # each a segment of its own, and no commit
    with Index.open(index, workers=HERE) as opened:
        assert opened._writing()[0].resumed_documents == len(many)
        opened.update(DOCUMENTS[:1])
        assert [opened.delete(name) for name in ("d8", "big.txt", "d3")] == [0, 0, 1]
        assert opened.update(DOCUMENTS[9:10]).unchanged.documents == 1  # taken over, so it is there
        assert opened.delete("d9") == 1
        opened.commit()
    assert stored(index) == by_id([*DOCUMENTS[:3], *DOCUMENTS[4:8]])


def test_what_was_taken_over_is_there_and_refuses_a_second_of_its_id(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denspi.build.index.SEGMENT_WORDS", 1)
    with Index.open(index, workers=HERE) as opened:
        opened.add(DOCUMENTS[8:])
    with Index.open(index, workers=HERE) as opened:
        assert opened.add(DOCUMENTS[8:10]).unchanged.documents == 2
        for second in (DOCUMENTS[8], changed(DOCUMENTS[8])):
            with pytest.raises(InputError, match="already has a document 'd8'"):
                opened.add([second])
        opened.commit()
    assert stored(index) == by_id(DOCUMENTS[:10])
