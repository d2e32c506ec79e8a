"""`Index`: what goes in comes back, the same bytes whoever encoded, and an interruption costs little."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.build.conftest import make_documents

from denspi.build.index import Index
from denspi.build.rows import encode_rows
from denspi.build.workers import WorkerSettings
from denspi.corpus import join_paragraphs
from denspi.dense.encoder import PhraseEncoder
from denspi.errors import IndexLockedError, InputError
from denspi.index.rows import ParagraphRows
from denspi.types import Document, Span

HERE = WorkerSettings(processes=0)
DOCUMENTS = make_documents(40)
MANY = make_documents(140)  # more paragraphs than the encoder takes at once


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some ten documents each, so that a build has several."""
    monkeypatch.setattr("denspi.build.index.SEGMENT_WORDS", 300)


def build(folder: Path, model: Path, documents: list[Document], workers: WorkerSettings = HERE) -> Path:
    with Index.create(folder, str(model), workers=workers) as index:
        index.add(documents)
        index.commit()
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every byte of an index but for its locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and "lock" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def stored(folder: Path) -> dict[str, Document]:
    found = {}
    for segment in Index.open(folder).snapshot().segments:
        for number in np.flatnonzero(segment.live).tolist():
            document = segment.document(number)
            found[document.document_id] = document
    return found


def by_id(documents: list[Document]) -> dict[str, Document]:
    return {document.document_id: document for document in documents}


def changed(document: Document) -> Document:
    text, spans = join_paragraphs([*document.paragraph_texts(), "iris was a judge in cork ."])
    return replace(document, text=text, paragraphs=spans)


def test_what_goes_in_comes_back(model_folder: Path, encoder: PhraseEncoder, tmp_path: Path) -> None:
    folder = build(tmp_path / "index", model_folder, DOCUMENTS)
    assert stored(folder) == by_id(DOCUMENTS)
    snapshot = Index.open(folder).snapshot()
    for document in DOCUMENTS[::7]:
        place = snapshot.find(document.document_id)
        assert place is not None
        segment = snapshot.segments[place.segment]
        first = int(segment.document_paragraphs[place.document])
        right = encode_rows(encoder, document.paragraph_texts())
        for number, rows in enumerate(right):
            found = segment.rows_of(first + number)
            for name in ParagraphRows.__dataclass_fields__:
                assert np.array_equal(getattr(found, name), getattr(rows, name)), name


@pytest.mark.parametrize(
    "workers", [WorkerSettings(processes=1), WorkerSettings(processes=3, task_chars=50, tasks_ahead=1)]
)
def test_the_bytes_do_not_depend_on_who_encodes(
    workers: WorkerSettings, model_folder: Path, tmp_path: Path
) -> None:
    one = build(tmp_path / "one", model_folder, DOCUMENTS)
    other = build(tmp_path / "other", model_folder, DOCUMENTS, workers)
    assert content(one) == content(other)


def test_as_many_files_may_be_open_as_the_system_allows(model_folder: Path, tmp_path: Path) -> None:
    old = soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, most - 1), most))
        with Index.create(tmp_path / "index", str(model_folder)):
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)


def interrupted(documents: list[Document], after: int) -> Iterator[Document]:
    yield from documents[:after]
    raise KeyboardInterrupt


@pytest.mark.parametrize("after", [5, 80, 139])
def test_an_interrupted_build_goes_on_and_ends_with_the_same_bytes(
    after: int, model_folder: Path, tmp_path: Path
) -> None:
    right = build(tmp_path / "right", model_folder, MANY)
    folder = tmp_path / "index"
    with pytest.raises(KeyboardInterrupt), Index.create(folder, str(model_folder), workers=HERE) as index:
        index.add(interrupted(MANY, after))
    with pytest.raises(InputError, match="unfinished build; go on" if after > 5 else "not an index"):
        Index.open(folder)
    with Index.create(folder, str(model_folder), workers=HERE) as index:
        changes = index.add(MANY)
        index.commit()
    assert changes.encoded.documents + changes.unchanged.documents == len(MANY)
    assert changes.unchanged.documents >= after - 60
    assert content(folder) == content(right)


def test_going_on_with_other_documents_leaves_no_trace_of_the_first(
    model_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    with pytest.raises(KeyboardInterrupt), Index.create(folder, str(model_folder), workers=HERE) as index:
        index.add(interrupted(MANY, 120))
    assert (folder / "building.jsonl").exists()
    others = [changed(MANY[0]), *MANY[3:8], *make_documents(150)[145:]]
    build(folder, model_folder, others)
    assert stored(folder) == by_id(others)


def test_an_interrupted_add_goes_on_too(model_folder: Path, tmp_path: Path) -> None:
    folder = build(tmp_path / "index", model_folder, DOCUMENTS[:4])
    with pytest.raises(KeyboardInterrupt), Index.open(folder, workers=HERE) as index:
        index.add(interrupted(MANY[4:], 120))
    assert stored(folder) == by_id(DOCUMENTS[:4])
    with Index.open(folder, workers=HERE) as index:
        changes = index.add(MANY[4:])
        assert changes.unchanged.documents > 5
        index.commit()
    assert stored(folder) == by_id(DOCUMENTS[:4] + MANY[4:])


@pytest.mark.parametrize("then", ["the same", "another update", "add", "delete"])
def test_whatever_follows_an_interrupted_update_nothing_committed_is_lost(
    then: str, model_folder: Path, tmp_path: Path
) -> None:
    long_ago = parts("big.txt", 3)
    folder = build(tmp_path / "index", model_folder, [*MANY[:100], *long_ago])
    before = stored(folder)
    whole = replace(long_ago[0], document_id="big.txt", source="docs/big.txt", metadata={})
    now = [whole, *map(changed, MANY[:120])]
    with pytest.raises(KeyboardInterrupt), Index.open(folder, workers=HERE) as index:
        index.update(interrupted(now, 110))
    assert (folder / "building.jsonl").exists()
    assert stored(folder) == before
    with Index.open(folder, workers=HERE) as index:
        if then == "the same":
            changes = index.update(now)
            assert changes.unchanged.documents > 20
            expected = by_id(now)
        elif then == "another update":
            index.update([changed(changed(MANY[0])), changed(MANY[1]), MANY[2]])
            expected = before | by_id([changed(changed(MANY[0])), changed(MANY[1])])
        elif then == "add":
            with pytest.raises(InputError, match="already has a document 'd0'"):
                index.add([changed(MANY[0])])
            index.add([changed(MANY[130])])
            expected = before | by_id([changed(MANY[130])])
        else:
            assert index.delete("d5") == 1
            assert index.delete("d110") == 0  # of the interrupted run alone
            expected = {name: document for name, document in before.items() if name != "d5"}
        index.commit()
    assert stored(folder) == expected
    assert not Index.open(folder).verify().problems


def test_adding_what_is_there_is_refused(model_folder: Path, tmp_path: Path) -> None:
    folder = build(tmp_path / "index", model_folder, DOCUMENTS[:4])
    with (
        Index.open(folder, workers=HERE) as index,
        pytest.raises(InputError, match=r"already has a document 'd2'; .*update"),
    ):
        index.add([DOCUMENTS[9], DOCUMENTS[2]])
    assert stored(folder) == by_id(DOCUMENTS[:4])


def test_update_encodes_what_has_changed_and_nothing_else(model_folder: Path, tmp_path: Path) -> None:
    folder = build(tmp_path / "index", model_folder, DOCUMENTS[:6])
    moved = replace(DOCUMENTS[1], source="elsewhere")
    now = [DOCUMENTS[0], moved, changed(DOCUMENTS[2]), DOCUMENTS[7], replace(DOCUMENTS[3], title="New")]
    with Index.open(folder, workers=HERE) as index:
        changes = index.update(now)
        generation = index.commit()
    assert (changes.encoded.documents, changes.unchanged.documents, changes.deleted) == (3, 2, 0)
    assert generation == 2
    assert stored(folder) == by_id(DOCUMENTS[:6]) | by_id([each for each in now if each is not moved])
    with Index.open(folder, workers=HERE) as index:
        assert index.update(now).encoded.documents == 0
        assert index.commit() == generation


def parts(base: str, count: int) -> list[Document]:
    one = make_documents(count)
    return [
        replace(
            each,
            document_id=f"{base}#{number + 1}",
            source=f"docs/{base}#{number + 1}",
            metadata={"start_char": 100 * number},
        )
        for number, each in enumerate(one)
    ]


def test_update_of_a_long_file_leaves_no_part_behind(model_folder: Path, tmp_path: Path) -> None:
    namesake = replace(DOCUMENTS[0], document_id="d1#1")  # no part: somebody's own id
    small = replace(DOCUMENTS[0], document_id="big.txt", source="big.txt")
    first = [*parts("big.txt", 5), *DOCUMENTS[1:3], namesake]
    folder = build(tmp_path / "index", model_folder, first)
    for now in (parts("big.txt", 3), [small], parts("big.txt", 4), [DOCUMENTS[1]]):
        with Index.open(folder, workers=HERE) as index:
            index.update(now)
            index.commit()
        found = {name for name in stored(folder) if name.startswith("big")}
        if now != [DOCUMENTS[1]]:
            expected = set(by_id(now))
        assert found == expected
    assert {"d1", "d2", "d1#1"} <= stored(folder).keys()
    with Index.open(folder) as index:
        assert index.delete("big.txt") == 4
        assert index.delete("big.txt") == 0
        index.commit()
    assert stored(folder).keys() == {"d1", "d2", "d1#1"}


def test_nothing_is_visible_before_the_commit(model_folder: Path, tmp_path: Path) -> None:
    folder = build(tmp_path / "index", model_folder, DOCUMENTS[:6])
    reader = Index.open(folder)
    with Index.open(folder, workers=HERE) as index:
        index.delete("d0")
        index.add(DOCUMENTS[6:8])
        assert reader.info().documents == 6
        with pytest.raises(IndexLockedError, match="is writing it"):
            Index.open(folder).delete("d1")
        index.commit()
        assert Index.open(folder).delete("d1") == 1  # the lock is free again
    assert reader.info().documents == 7
    assert reader.info().deleted_documents == 1


def test_merge_and_refit(model_folder: Path, tmp_path: Path) -> None:
    folder = build(tmp_path / "index", model_folder, DOCUMENTS[:20])
    with Index.open(folder, workers=HERE) as index:
        for document in DOCUMENTS[20:22]:
            index.add([document])
            index.delete(f"d{int(document.document_id[1:]) - 20}")
            index.commit()
        assert index.info().segments > 1
        index.merge()
        index.refit()
        assert (index.info().segments, index.info().deleted_documents) == (1, 0)
    fresh = build(tmp_path / "fresh", model_folder, DOCUMENTS[2:22])
    ours, theirs = Index.open(folder).snapshot(), Index.open(fresh).snapshot()
    assert ours.manifest.fit.fingerprint == theirs.manifest.fit.fingerprint
    assert ours.manifest.segments[0].rows.table_sha256 == theirs.manifest.segments[0].rows.table_sha256


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (Document("", "T", "ada", (Span(0, 3),), "here.txt"), "here.txt: has no id"),
        (Document("x", "T", "   ", ()), "x: has no paragraph"),
        (Document("x", "T", "ada " * 4_000_001, (Span(0, 3),)), "x: 16,000,004 characters, above the limit"),
    ],
)
def test_a_document_that_cannot_be_indexed_is_one_line(
    document: Document, line: str, model_folder: Path, tmp_path: Path
) -> None:
    with (
        Index.create(tmp_path / "index", str(model_folder), workers=HERE) as index,
        pytest.raises(InputError, match=f"^{line}"),
    ):
        index.add([document])


def test_a_document_with_too_many_rows_is_refused(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denspi.build.pipeline.LARGEST_DOCUMENT_BYTES", 4000)
    with (
        Index.create(tmp_path / "index", str(model_folder), workers=HERE) as index,
        pytest.raises(InputError, match=r"^d8: its vectors take more than"),
    ):
        index.add([*make_documents(8, paragraphs=1), make_documents(9, paragraphs=30)[8]])


def test_a_paragraph_too_long_to_encode_is_stored_as_several(model_folder: Path, tmp_path: Path) -> None:
    text = "ada lives in oslo . " * 2500
    long = Document("long", "Long", text, (Span(0, len(text) - 1),))
    folder = build(tmp_path / "index", model_folder, [long])
    (found,) = stored(folder).values()
    assert found.text == text
    assert len(found.paragraphs) == 3
    with Index.open(folder, workers=HERE) as index:
        assert index.update([long]).unchanged.documents == 1


def test_the_last_of_several_with_one_id_stays(model_folder: Path, tmp_path: Path) -> None:
    one, other = DOCUMENTS[0], changed(DOCUMENTS[0])
    folder = build(tmp_path / "index", model_folder, [one])
    for given, last in (([other, one], one), ([one, other, one, other], other), ([one, one], one)):
        with Index.open(folder, workers=HERE) as index:
            index.update(given)
            index.commit()
        assert stored(folder) == by_id([last])


def test_what_failed_half_way_is_not_committed_in_part(model_folder: Path, tmp_path: Path) -> None:
    first, second, third = DOCUMENTS[:3]
    folder = build(tmp_path / "index", model_folder, [first])
    with Index.open(folder, workers=HERE) as index:
        with pytest.raises(InputError, match="already"):
            index.add([second, third, second])
        for change in (index.commit, index.merge, lambda: index.add([third]), lambda: index.delete("d0")):
            with pytest.raises(InputError, match="failed half way, so nothing is committed; discard"):
                change()
        index.discard()
        index.add([third])
        with pytest.raises(InputError, match="already has a document"):
            index.add([first])  # nothing of this one was taken
        index.commit()
    assert stored(folder) == by_id([first, third])
    index = Index.open(folder, workers=HERE)
    with index, pytest.raises(InputError):
        index.update([second, replace(first, document_id="")])
    with index:
        assert index.commit() == 2
    assert stored(folder) == by_id([first, third])
