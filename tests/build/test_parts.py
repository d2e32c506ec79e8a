"""Parts of long text files: an update removes what a file no longer has, and nothing of anybody else's."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from tests.build.conftest import make_documents
from tests.build.test_index import HERE, build, by_id, parts, stored

from denspi import cli
from denspi.build.index import Index
from denspi.build.parts import part_of
from denspi.corpus import Skipped, read_corpus
from denspi.types import Document

LINE = "ada lives in oslo and works as a judge .\n\n"


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denspi.corpus.text.LONGEST_TEXT_CHARS", 1000)


def passages(page: str, count: int) -> list[Document]:
    """Somebody's own ids and metadata, which look like those of parts."""
    return [
        replace(
            each, document_id=f"{page}#{number}", source=f"p.jsonl:{number}", metadata={"start_char": 100}
        )
        for number, each in enumerate(make_documents(count), start=1)
    ]


def test_a_part_is_what_the_text_reader_makes(short_parts: None, tmp_path: Path) -> None:
    (tmp_path / "docs" / "a#2").mkdir(parents=True)
    (tmp_path / "docs" / "a#2" / "big#1.txt").write_text(LINE * 100)
    (tmp_path / "docs" / "small#1").write_text(LINE)
    read = [item for item in read_corpus(tmp_path / "docs") if isinstance(item, Document)]
    found = {each.document_id: part_of(each) for each in read}
    assert found.pop("small#1") is None
    assert len(found) == 5
    for number, part in enumerate(found.values(), start=1):
        assert part is not None
        assert (part.file_id, part.number) == ("a#2/big#1.txt", number)
        assert part.file_source == (tmp_path / "docs/a#2/big#1.txt").as_posix()


@pytest.mark.parametrize(
    "change",
    [
        {"source": "p.jsonl:2"},
        {"source": "docs/big.txt#1"},
        {"source": "docs/other.txt#2"},
        {"source": "docs/bigbig.txt#2"},
        {"metadata": {}},
        {"metadata": {"start_char": 4, "page": 1}},
        {"metadata": {"start_char": "4"}},
        {"document_id": "big.txt#02", "source": "docs/big.txt#02"},
        {"document_id": "big.txt#٢", "source": "docs/big.txt#٢"},
        {"document_id": "big.txt#" + "9" * 5000, "source": "docs/big.txt#" + "9" * 5000},
    ],
)
def test_anything_else_is_none(change: dict[str, object]) -> None:
    part = parts("big.txt", 2)[1]
    assert part_of(part) is not None
    assert part_of(replace(part, **change)) is None  # type: ignore[arg-type]


def test_update_and_delete_leave_the_ids_of_others_alone(model_folder: Path, tmp_path: Path) -> None:
    whole = replace(make_documents(9)[8], document_id="page", source="p.jsonl:9")
    first = [*passages("page", 6), *passages("big.txt", 2)]
    folder = build(tmp_path / "index", model_folder, first)
    expected = by_id(first)
    text_file = replace(whole, document_id="big.txt", source="docs/big.txt")
    for now in (passages("page", 3), [whole], [whole, *passages("page", 2)], [text_file]):
        with Index.open(folder, workers=HERE) as index:
            assert index.update(now).deleted == 0
            index.commit()
        expected |= by_id(now)
        assert stored(folder) == expected
    with Index.open(folder) as index:
        assert (index.delete("big.txt"), index.delete("big.txt")) == (1, 0)
        assert (index.delete("page"), index.delete("page")) == (1, 0)
        index.commit()
    assert stored(folder) == by_id(first)


def test_what_is_given_is_never_outdated(model_folder: Path, tmp_path: Path) -> None:
    """Two files of one id, one of them in parts: both stay, in either order."""
    long = parts("big.txt", 3)
    small = replace(long[0], document_id="big.txt", source="other/big.txt", metadata={})
    folder = build(tmp_path / "index", model_folder, [*long, small])
    for now in ([small, *long], [*long, small]):
        with Index.open(folder, workers=HERE) as index:
            assert index.update(now).deleted == 0
            index.commit()
        assert stored(folder) == by_id(now)


def test_a_part_that_could_not_be_used_keeps_the_others(model_folder: Path, tmp_path: Path) -> None:
    folder = build(tmp_path / "index", model_folder, parts("big.txt", 4))
    for skipped in (Skipped("docs/big.txt#2", "empty"), Skipped("docs/big.txt", "reading failed")):
        with Index.open(folder, workers=HERE) as index:
            assert index.update([skipped, parts("big.txt", 4)[0]]).deleted == 0
    with Index.open(folder, workers=HERE) as index:
        assert index.update([Skipped("docs/other.txt", "empty"), parts("big.txt", 4)[0]]).deleted == 3


@pytest.mark.parametrize("name", ["big.txt", "big.txt.gz"])
@pytest.mark.parametrize("kept_share", [0.1, 0.5])
def test_a_file_that_cannot_be_read_to_its_end_keeps_its_parts(
    kept_share: float,
    name: str,
    short_parts: None,
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for limit in ("CHUNK_BYTES", "HEAD_BYTES"):  # so that the damage is met when parts have been read
        monkeypatch.setattr(f"denspi.corpus.files.{limit}", 512)
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    is_gzip = name.endswith("gz")
    lines = "".join(f"{number} {LINE}" for number in range(100))
    content = gzip.compress(lines.encode(), 0) if is_gzip else lines.encode()
    (docs / name).write_bytes(content)
    assert cli.run(["index", str(docs), "--output", str(index), "--model", str(model_folder)]) == 0
    before = stored(index)
    assert len(before) == 5
    place = int(len(content) * kept_share)
    damaged = content[:place] if is_gzip else content[:place] + b"\xff" + content[place + 1 :]
    (docs / name).write_bytes(damaged)
    (docs / "other.txt").write_text(LINE)  # so that there is something to update with
    assert cli.run(["update", str(index), str(docs)]) == 0
    printed = capsys.readouterr()
    assert f"skipped: {(docs / name).as_posix()}: " in printed.err
    assert "no longer there" not in printed.out
    assert before.keys() <= stored(index).keys()
    (docs / name).write_bytes(gzip.compress(LINE.encode()) if is_gzip else LINE.encode())
    assert cli.run(["update", str(index), str(docs)]) == 0
    assert "5 documents no longer there, deleted" in capsys.readouterr().out
    assert stored(index).keys() == {name, "other.txt"}
