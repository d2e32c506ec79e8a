"""The commands that make and keep an index: what they print, and one clear line for each thing gone wrong."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.build.conftest import make_documents

from denspi import Index, cli
from denspi.build.workers import WorkerSettings
from denspi.errors import InputError
from denspi.index.directory import Directory
from denspi.index.leftovers import MERGE_LOCK
from denspi.index.manifest import sealed
from denspi.index.part import PartWriter

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents, and an index of them."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "docs").mkdir()
    for document in make_documents(5):
        (folder / "docs" / f"{document.document_id}.txt").write_text(document.text)
    (folder / "docs" / "empty.txt").write_text("")
    arguments = ["--output", str(folder / "index"), "--model", str(model_folder)]
    assert cli.run(["index", str(folder / "docs"), *arguments]) == 0
    return folder


@pytest.fixture
def docs(made: Path, here: Path) -> Path:
    return Path(shutil.copytree(made / "docs", here / "docs"))


@pytest.fixture
def index(made: Path, docs: Path, here: Path, capsys: Captured) -> Path:
    capsys.readouterr()
    return Path(shutil.copytree(made / "index", here / "index"))


def test_a_log_of_a_long_build_says_how_far_it_is(
    docs: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("denspi.cli.progress.LINE_SECONDS", 0.0)
    monkeypatch.setattr("denspi.cli.indexing.LARGE_BYTES", 1)
    assert cli.run(["index", str(docs), "--output", "log", "--model", str(model_folder)]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if " words/s; " in line]
    words = Index.open("log").info().words
    assert lines[-1].startswith("5 documents, ")
    assert f"; {words:,} of {words:,}" in lines[-1]


def info(capsys: Captured) -> dict[str, object]:
    assert cli.run(["info", "index", "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_index_says_what_it_did_and_what_it_skipped(docs: Path, model_folder: Path, capsys: Captured) -> None:
    assert cli.run(["index", "docs", "--output", "index", "--model", str(model_folder)]) == 0
    printed = capsys.readouterr()
    first, second = printed.out.splitlines()
    assert first.startswith("encoded 5 documents, ")
    assert second.startswith("index: 5 documents, ")
    assert second.endswith(", generation 1")
    assert printed.err == "skipped: docs/empty.txt: empty\n1 skipped\n"


def test_the_life_of_an_index(index: Path, docs: Path, capsys: Captured) -> None:
    (docs / "d9.txt").write_text("joon lives in graz .")
    assert cli.run(["add", "index", "docs/d9.txt"]) == 0
    assert "index: 6 documents" in capsys.readouterr().out
    (docs / "d0.txt").write_text("finn lives in nice .")
    assert cli.run(["update", "index", "docs"]) == 0
    assert "encoded 1 document, 1 paragraph, 5 words" in capsys.readouterr().out
    assert cli.run(["update", "index", "docs"]) == 0
    assert capsys.readouterr().out.startswith("6 documents already there\n")
    assert cli.run(["delete", "index", "d1.txt", "d2.txt"]) == 0
    assert capsys.readouterr().out == "2 documents deleted; generation 4\n"
    found = info(capsys)
    assert found["documents"] == 4
    assert cli.run(["merge", "index"]) == 0
    assert "now 1 segment" in capsys.readouterr().out
    assert cli.run(["refit", "index"]) == 0
    assert capsys.readouterr().out.startswith("fitted to 4 documents; generation ")
    assert cli.run(["verify", "index"]) == 0
    assert capsys.readouterr().out.endswith(": all as written\n")
    stored = Index.open(index).snapshot().document("d0.txt")
    assert stored is not None
    assert stored.text == "finn lives in nice ."


def test_info_counts_what_is_there(index: Path, capsys: Captured) -> None:
    found = info(capsys)
    snapshot = Index.open(index).snapshot()
    rows = [
        segment.rows_of(paragraph)
        for segment in snapshot.segments
        for paragraph in range(segment.counts.paragraphs)
    ]
    assert found["paragraphs"] == len(rows)
    assert found["words_and_signs"] == sum(each.word_count for each in rows)
    assert found["words"] == sum(
        len(segment.paragraph_text(paragraph).split())
        for segment in snapshot.segments
        for paragraph in range(segment.counts.paragraphs)
    )
    assert found["starts"] == sum(len(each.start_words) for each in rows)
    assert found["ends"] == sum(len(each.end_words) for each in rows)
    by_component = found["bytes_by_component"]
    assert isinstance(by_component, dict)
    named = {"manifest.json"} | {part.ref.folder for part in snapshot.parts}
    on_disk = sum(
        path.stat().st_size
        for path in index.rglob("*")
        if path.is_file() and path.relative_to(index).parts[0] in named
    )
    assert sum(by_component.values()) == found["bytes"] == on_disk
    assert by_component["start vectors"] == sum(each.starts.nbytes for each in rows)
    assert by_component["coherency keys"] == sum(
        each.start_keys.nbytes + each.end_keys.nbytes for each in rows
    )
    assert cli.run(["info", "index"]) == 0
    table = capsys.readouterr().out
    assert all(name in table for name in by_component)
    assert f"{found['words']:,} ({found['words_and_signs']:,} with signs)" in table


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["index", "dosc", "--output", "x"], "dosc: no such file or folder"),
        (["index", "", "--output", "x"], "an empty path; name a file or folder"),
        (
            ["index", "docs", "--output", "loop"],
            "loop: a link that leads nowhere; remove it, or name another",
        ),
        (["info", "loop"], "loop: a link that leads nowhere"),
        (["index", "docs"], "Missing option '--output'. See 'denspi index --help'."),
        (["index", "docs/empty.txt", "--output", "x"], "no document found in docs/empty.txt"),
        (["index", "docs", "--output", "docs/d0.txt"], "docs/d0.txt: is a file; name a folder for the index"),
        (["index", "docs", "--output", "docs"], "docs: not empty (it holds 'd0.txt'); choose another folder"),
        (["index", "docs", "--output", "index"], "index: already holds an index; add to it or update it"),
        (["index", "docs", "--output", "x", "--model", "nix"], "nix: there is no such model"),
        (["index", "docs", "--output", "x", "--precision", "compact2"], "precision 'compact2': "),
        (["add", "index", "docs"], "index: already has a document 'd0.txt'; to replace it, update"),
        (["add", "index", "dosc"], "dosc: no such file or folder"),
        (["add", "nowhere", "docs"], "nowhere: no such index; build one with: denspi index"),
        (["add", "docs/d0.txt", "docs"], "docs/d0.txt: is a file; name the folder of an index"),
        (["update", "docs", "docs"], "docs: not an index (no manifest.json); build one with: denspi index"),
        (["delete", "index", "d0.txt", "d7"], "index: has no document 'd7' (its ids look like 'd0.txt')"),
        (["info", "docs/d0.txt"], "docs/d0.txt: is a file; name the folder of an index"),
        (["verify", "docs"], "docs: not an index (no manifest.json)"),
        (["verify", "nowhere"], "nowhere: no such index"),
        (["merge", "nowhere"], "nowhere: no such index"),
        (["refit", "nowhere"], "nowhere: no such index"),
    ],
)
def test_bad_use_is_one_line_and_changes_nothing(
    arguments: list[str], line: str, index: Path, model_folder: Path, capsys: Captured
) -> None:
    Path("loop").symlink_to("loop")
    if arguments[0] == "index" and "--model" not in arguments:
        arguments = [*arguments, "--model", str(model_folder)]
    assert cli.run(arguments) == 2
    printed = capsys.readouterr()
    last = printed.err.splitlines()[-1]
    assert last.startswith(f"denspi: {line}")
    assert all(each.startswith(("skipped: ", "1 skipped")) for each in printed.err.splitlines()[:-1])
    assert printed.out == ""
    assert info(capsys)["documents"] == 5
    assert not Path("x").exists()


@pytest.mark.parametrize("name", ["merging/notes.txt", "000001-segment/a.txt", "building.jsonl", "lock"])
def test_nobodys_files_are_removed_for_their_names(
    name: str, docs: Path, model_folder: Path, capsys: Captured
) -> None:
    own = Path("mine") / name
    own.parent.mkdir(parents=True)
    own.write_text('{"text": "mine"}\n')
    entry = name.split("/")[0]
    assert cli.run(["index", "docs", "--output", "mine", "--model", str(model_folder)]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"denspi: mine: not empty (it holds {entry!r}); choose another folder"
    with pytest.raises(InputError, match="not empty"):
        Index.create("mine", str(model_folder))
    assert own.read_text() == '{"text": "mine"}\n'
    assert os.listdir("mine") == [entry]


def test_an_index_may_lie_behind_a_link(docs: Path, model_folder: Path, capsys: Captured) -> None:
    Path("real").mkdir()
    Path("index").symlink_to("real")
    assert cli.run(["index", "docs", "--output", "index", "--model", str(model_folder)]) == 0
    assert cli.run(["delete", "index", "d1.txt"]) == 0
    assert cli.run(["merge", "index"]) == 0
    capsys.readouterr()
    assert info(capsys)["documents"] == 4
    assert cli.run(["verify", "index"]) == 0


def test_an_index_among_its_own_documents_is_left_out(
    docs: Path, model_folder: Path, capsys: Captured
) -> None:
    assert cli.run(["index", ".", "--output", "docs/index", "--model", str(model_folder)]) == 0
    assert "docs/index: 5 documents" in capsys.readouterr().out
    assert cli.run(["update", "docs/index", ".", "docs/index/.."]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("encoded 5 documents")  # the second path has other ids: d0.txt, docs/d0.txt
    assert "note:" not in printed.err


def test_another_index_among_the_documents_is_left_out(
    docs: Path, model_folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its texts lie there as they are: read, they would bring back what was deleted."""
    built = ["--model", str(model_folder)]
    assert cli.run(["index", "docs", "--output", "docs/first", *built]) == 0
    assert cli.run(["delete", "docs/first", "d1.txt"]) == 0
    monkeypatch.setattr("denspi.build.index.SEGMENT_WORDS", 1)
    with Index.create("docs/unfinished", str(model_folder)) as unfinished:
        unfinished.add(make_documents(2))
    assert Path("docs/unfinished/building.jsonl").exists()
    assert not Path("docs/unfinished/manifest.json").exists()
    capsys.readouterr()
    assert cli.run(["index", "docs", "--output", "docs/second", *built]) == 0
    printed = capsys.readouterr()
    assert "docs/second: 5 documents" in printed.out
    assert printed.err.splitlines() == [
        "note: docs/first: left out: an index of denspi, no documents",
        "note: docs/unfinished: left out: an index of denspi, no documents",
        "skipped: docs/empty.txt: empty",
        "1 skipped",
    ]
    assert cli.run(["index", "docs/first", "--output", "third", *built]) == 2
    assert capsys.readouterr().err.endswith("denspi: no document found in docs/first\n")
    assert not Path("third").exists()


def test_another_model_is_refused(index: Path, other_model_folder: Path, capsys: Captured) -> None:
    assert cli.run(["update", "index", "docs", "--model", str(other_model_folder)]) == 2
    assert capsys.readouterr().err.startswith("denspi: index: built with model ")


def test_a_second_writer_is_told_who_the_first_is(index: Path, docs: Path, capsys: Captured) -> None:
    (docs / "d9.txt").write_text("joon lives in graz .")
    with Index.open(index, workers=WorkerSettings(processes=0)) as first:
        first.delete("d0.txt")
        assert cli.run(["add", "index", "docs/d9.txt"]) == 2
    assert " is writing it; wait for it to finish" in capsys.readouterr().err


def test_a_merge_waits_briefly_for_a_writer(index: Path, docs: Path, capsys: Captured) -> None:
    assert cli.run(["delete", "index", "d1.txt"]) == 0
    capsys.readouterr()
    with Index.open(index, workers=WorkerSettings(processes=0)) as writer:
        writer.delete("d0.txt")
        assert cli.run(["merge", "index", "--wait", "0"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert " is writing it; wait for it to finish" in line
        assert cli.run(["merge", "index", "--wait", "0.1"]) == 2
        waiting, line = capsys.readouterr().err.splitlines()
        me = f"process {os.getpid()} on "
        assert waiting.startswith("denspi: index: waiting up to 0.1 s for " + me)
        assert waiting.endswith(", which is writing it")
        assert line.startswith("denspi: index: " + me)
        assert " is still writing it, after 0.1 s; " in line
        assert not (index / "merging").exists()

        def leave(holder: str) -> None:
            writer.close()

        assert Index.open(index).merge(60, leave) == 3
    assert info(capsys)["deleted_documents"] == 0
    assert not Index.open(index).verify().problems


def test_a_merge_waits_for_another_merge(index: Path, capsys: Captured) -> None:
    assert cli.run(["delete", "index", "d1.txt"]) == 0
    capsys.readouterr()
    other = Directory(index).lock(MERGE_LOCK)
    assert cli.run(["merge", "index", "--wait", "0.1"]) == 2
    waiting, line = capsys.readouterr().err.splitlines()
    assert waiting.startswith(f"denspi: index: waiting up to 0.1 s for process {os.getpid()} on ")
    assert waiting.endswith(", which is merging it")
    assert " is still merging it, after 0.1 s; wait for it to finish" in line
    assert Index.open(index).merge(60, lambda _: other.release()) == 3
    assert info(capsys)["deleted_documents"] == 0


def test_a_merge_beside_unfinished_changes_says_so_before_it_copies(
    index: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run(["delete", "index", "d1.txt"]) == 0
    monkeypatch.setattr("denspi.build.index.SEGMENT_WORDS", 1)
    with Index.open(index, workers=WorkerSettings(processes=0)) as writer:
        writer.add(make_documents(9)[7:])
    monkeypatch.setattr(PartWriter, "__init__", None)  # nothing is copied
    capsys.readouterr()
    assert cli.run(["merge", "index"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "denspi: index: holds unfinished changes; first go on with the command that began them"
    )
    assert info(capsys)["generation"] == 2


@pytest.mark.parametrize("change", [["delete", "index", "d1.txt"], ["refit", "index"]])
def test_who_gives_up_the_work_of_an_interrupted_command_says_so(
    index: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, change: list[str]
) -> None:
    monkeypatch.setattr("denspi.build.index.SEGMENT_WORDS", 1)
    with Index.open(index, workers=WorkerSettings(processes=0)) as writer:
        writer.add(make_documents(9)[7:])
    assert cli.run(["delete", "index", "nothing"]) == 2  # changes nothing, gives up nothing
    capsys.readouterr()
    assert cli.run(change) == 0
    assert capsys.readouterr().err == (
        "denspi: gave up 2 documents that an interrupted command had written; "
        "run that one again to have them\n"
    )
    assert cli.run(["delete", "index", "d2.txt"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(sys.platform == "darwin", reason="has no such file names")
def test_a_file_name_that_is_not_utf8_is_an_id_that_can_be_typed(
    index: Path, docs: Path, capsys: Captured
) -> None:
    Path(os.fsdecode(b"docs/caf\xe9.txt")).write_text("joon lives in graz .")
    assert cli.run(["update", "index", "docs"]) == 0
    capsys.readouterr()
    stored = Index.open(index).snapshot().document(r"caf\xe9.txt")
    assert stored is not None
    assert stored.source == r"docs/caf\xe9.txt"
    assert cli.run(["delete", "index", r"caf\xe9.txt"]) == 0
    assert capsys.readouterr().out.startswith("1 document deleted")


def test_what_a_stranger_has_named_moves_no_cursor(
    index: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.loads((index / "manifest.json").read_bytes())["content"]
    body["model"] |= {"name": "good\x1b[2J\n[red]model", "fingerprint": "\x1b]0;owned\x07"}
    (index / "manifest.json").write_bytes(sealed(body))
    # Nothing is stripped of what goes to a terminal.
    monkeypatch.setattr("typer.echo", lambda text, err=False: print(text, file=sys.stderr if err else None))
    assert cli.run(["info", "index"]) == 0
    assert cli.run(["ask", "index", "who?"]) == 2
    printed = capsys.readouterr()
    assert "[red]model" in printed.out
    assert not {"\x1b", "\x07"} & {*printed.out, *printed.err}
    assert len(printed.err.splitlines()) == 1


def test_verify_names_the_damaged_component(index: Path, capsys: Captured) -> None:
    (damaged,) = index.glob("*-segment/starts")
    content = bytearray(damaged.read_bytes())
    content[7] ^= 1
    damaged.write_bytes(content)
    (cut,) = index.glob("*-segment/ends")
    cut.write_bytes(cut.read_bytes()[:-1])
    assert cli.run(["verify", "index"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("denspi: ") for line in lines)
    assert any(str(damaged.relative_to(index.parent)) in line for line in lines)
    assert any(str(cut.relative_to(index.parent)) in line for line in lines)
