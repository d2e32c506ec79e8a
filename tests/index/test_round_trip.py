"""What is read back is what was written, whatever the texts, the cut into segments and the merges between."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.made import MODEL, Made, build, contents, make, make_document, make_rows

from denspi.errors import InputError
from denspi.index import IndexWriter, ParagraphRows, Snapshot, WriterSettings, merge_beside, verify
from denspi.sparse import weigh_question
from denspi.sparse.rescoring import document_scores_of, paragraph_scores_of
from denspi.types import Document

QUESTION = "When was the old town of Warsaw on the Vistula rebuilt?"


def assert_same_rows(found: ParagraphRows, given_rows: ParagraphRows) -> None:
    for field in dataclasses.fields(ParagraphRows):
        expected, got = getattr(given_rows, field.name), getattr(found, field.name)
        np.testing.assert_array_equal(got, expected, err_msg=field.name)
        assert field.name == "word_count" or got.dtype == expected.dtype


def assert_holds(snapshot: Snapshot, made: list[Made]) -> None:
    """Exactly these documents, as they were."""
    assert snapshot.live.documents == len(made)
    for document, rows in made:
        place = snapshot.find(document.document_id)
        assert place is not None
        segment = snapshot.segments[place.segment]
        assert segment.document(place.document) == document
        first, last = segment.document_paragraphs[place.document : place.document + 2].tolist()
        assert last - first == len(rows)
        for paragraph, own, span in zip(range(first, last), rows, document.paragraphs, strict=True):
            assert_same_rows(segment.rows_of(paragraph), own)
            assert segment.paragraph_text(paragraph) == span.of(document.text)
            assert segment.paragraph_span(paragraph) == span
            assert segment.documents_of(np.array([paragraph])).tolist() == [place.document]


def scores(snapshot: Snapshot, question: str = QUESTION) -> dict[str, list[float]]:
    """By document id: its own sparse score and those of its paragraphs."""
    asked = weigh_question(question, snapshot.frequencies)
    found: dict[str, list[float]] = {}
    for segment in snapshot.segments:
        by_document = document_scores_of(segment.postings, asked, np.arange(segment.counts.documents))
        by_paragraph = paragraph_scores_of(segment.postings, asked, np.arange(segment.counts.paragraphs))
        for number in np.flatnonzero(segment.live).tolist():
            first, last = segment.document_paragraphs[number : number + 2]
            name = segment.record(number).document_id
            found[name] = [float(by_document[number]), *by_paragraph[first:last].tolist()]
    return found


# Any text: several scripts, half a surrogate pair, line ends.
texts = st.lists(st.text(st.characters(codec=None), min_size=1, max_size=40), max_size=3)


@settings(max_examples=25)
@given(
    collection=st.lists(texts, max_size=6),
    cuts=st.sets(st.integers(0, 5)),
    commits=st.sets(st.integers(0, 5)),
    merge_at_the_end=st.booleans(),
)
def test_any_texts_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    collection: list[list[str]],
    cuts: set[int],
    commits: set[int],
    merge_at_the_end: bool,
) -> None:
    folder = tmp_path_factory.mktemp("index") / "index"
    generator = np.random.default_rng(1)
    made = [
        (make_document(f"№{n}", each), [make_rows(text, generator) for text in each])
        for n, each in enumerate(collection)
    ]
    with IndexWriter.create(folder, MODEL) as writer:
        for number, (document, rows) in enumerate(made):
            writer.add(document, rows)
            if number in cuts:
                writer.flush()
            if number in commits:
                writer.commit()
        writer.commit()
    if merge_at_the_end:
        merge_beside(folder, everything=True)
    snapshot = Snapshot.open(folder)
    assert_holds(snapshot, made)
    assert verify(folder).problems == ()


def segments_of(folder: Path) -> list[dict[str, bytes]]:
    """The files of each segment's rows, whatever their folders are called."""
    return [contents(folder / entry.rows.folder) for entry in Snapshot.open(folder).manifest.segments]


@pytest.mark.parametrize("flush_words", [1, 30, 10_000])
def test_a_build_in_pieces_gives_the_same_bytes(tmp_path: Path, flush_words: int) -> None:
    made = [make(n) for n in range(9)]
    build(tmp_path / "whole", made)
    build(tmp_path / "pieces", made, WriterSettings(flush_words=flush_words))
    assert segments_of(tmp_path / "pieces") == segments_of(tmp_path / "whole")
    assert scores(Snapshot.open(tmp_path / "pieces")) == scores(Snapshot.open(tmp_path / "whole"))


def test_two_builds_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build(tmp_path / name, [make(n) for n in range(9)], WriterSettings(flush_words=40))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_merge_equals_a_build_of_what_is_left(tmp_path: Path) -> None:
    build(tmp_path / "fresh", [make(n) for n in (0, 2, 3, 5)])
    with IndexWriter.create(tmp_path / "grown", MODEL) as writer:
        for n in range(6):
            writer.add(*make(n))
            writer.commit()
        writer.delete("d1")
        writer.delete("d4")
        writer.merge()
        writer.commit()
    assert segments_of(tmp_path / "grown") == segments_of(tmp_path / "fresh")


def test_wide_places_become_narrow_again(tmp_path: Path) -> None:
    """uint32 exactly where a kept paragraph needs it."""
    generator = np.random.default_rng(2)
    long = "w " * 40_000 + "end"
    made_long = (make_document("long", [long]), [make_rows(long, generator)])
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        writer.add(*made_long)
        writer.add(*make(1))
        writer.commit()
        before = Snapshot.open(tmp_path / "index")
        assert_holds(before, [made_long, make(1)])
        assert before.segments[0].starts.chars.dtype == np.uint32
        assert before.segments[0].starts.words.dtype == np.uint16
        writer.delete("long")
        writer.merge()
        writer.commit()
    after = before.refresh()
    assert after.segments[0].starts.chars.dtype == np.uint16
    assert_holds(after, [make(1)])


def test_documents_are_added_updated_and_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    expected = {n: make(n) for n in range(8)}
    build(folder, expected.values())
    with IndexWriter.open(folder) as writer:
        assert writer.delete("d3")
        assert not writer.delete("d3")
        assert not writer.delete("nobody")
        writer.update(*make(5, version=1))
        writer.update(*make(5, version=2))
        writer.add(*make(20))
        assert writer.delete("d20")
        writer.add(*make(21))
        assert "d21" in writer
        assert "d3" not in writer
        assert writer.document("d5") == make(5, version=2)[0]
        assert Snapshot.open(folder).live.documents == 8  # nothing is visible yet
        assert writer.commit() == 2
        assert writer.commit() == 2  # nothing has changed
    del expected[3]
    expected |= {5: make(5, version=2), 21: make(21)}
    assert_holds(Snapshot.open(folder), list(expected.values()))
    assert verify(folder).problems == ()


def test_a_deleted_document_may_come_again(tmp_path: Path) -> None:
    build(tmp_path / "index", [make(1), make(2)])
    with IndexWriter.open(tmp_path / "index") as writer:
        writer.delete("d1")
        writer.add(*make(1, version=1))
        writer.commit()
    assert_holds(Snapshot.open(tmp_path / "index"), [make(1, version=1), make(2)])


def test_leaving_without_a_commit_changes_nothing(tmp_path: Path) -> None:
    build(tmp_path / "index", [make(1)])
    before = contents(tmp_path / "index")
    with IndexWriter.open(tmp_path / "index") as writer:
        writer.add(*make(2))
        writer.delete("d1")
        writer.flush()
        writer.discard()
        writer.commit()
    assert contents(tmp_path / "index") == before


def test_an_empty_index_and_an_empty_document(tmp_path: Path) -> None:
    build(tmp_path / "index", [])
    assert Snapshot.open(tmp_path / "index").live.documents == 0
    bare = (Document("bare", "", "", ()), [])
    with IndexWriter.open(tmp_path / "index") as writer:
        writer.add(*bare)
        writer.commit()
    assert_holds(Snapshot.open(tmp_path / "index"), [bare])
    with IndexWriter.open(tmp_path / "index") as writer:
        writer.delete("bare")
        writer.commit()
    snapshot = Snapshot.open(tmp_path / "index")
    assert snapshot.segments == ()
    assert verify(tmp_path / "index").problems == ()


def _changed(rows: ParagraphRows, **changes: object) -> ParagraphRows:
    return dataclasses.replace(rows, **changes)  # type: ignore[arg-type]


def test_what_cannot_be_stored_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    document, (first, second) = make(1)
    wide = np.zeros((len(first.start_words), 7), np.int8)
    bad: list[tuple[Document, list[ParagraphRows], str]] = [
        (document, [first], "2 paragraphs but rows of 1"),
        (document, [_changed(first, starts=wide), second], "shape"),
        (document, [_changed(first, starts=first.starts.astype(np.float32)), second], "int8"),
        (document, [_changed(first, start_words=first.start_words[::-1]), second], "ascend"),
        (document, [_changed(first, word_count=1), second], "ascend within 1"),
        (document, [_changed(first, end_chars=first.end_chars + 1000), second], "leave the paragraph"),
        (dataclasses.replace(document, metadata={"x": object()}), [first, second], "metadata"),
        (dataclasses.replace(document, metadata={"x": float("nan")}), [first, second], "metadata"),
    ]
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        writer.add(document, [first, second])
        for wrong, rows, finding in bad:
            with pytest.raises(InputError, match=finding):
                writer.update(wrong, rows)
        with pytest.raises(InputError, match="already in the index"):
            writer.add(document, [first, second])
        writer.commit()
    assert_holds(Snapshot.open(tmp_path / "index"), [(document, [first, second])])


def test_random_rows_equal_the_scan(tmp_path: Path) -> None:
    """Rows by number, by range and all at once are the same rows, however they are reached first."""
    build(tmp_path / "index", [make(n, words=400) for n in range(30)])
    whole = Snapshot.open(tmp_path / "index").segments[0].starts.codes.whole()
    generator = np.random.default_rng(3)
    rows = generator.integers(0, len(whole), 200)
    fresh = Snapshot.open(tmp_path / "index").segments[0].starts
    np.testing.assert_array_equal(fresh.codes.at(rows), whole[rows])
    np.testing.assert_array_equal(fresh.codes.rows(100, 7000), whole[100:7000])
    paragraphs = fresh.paragraphs_of(rows)
    assert all(
        fresh.of(int(p)).start <= row < fresh.of(int(p)).stop for p, row in zip(paragraphs, rows, strict=True)
    )
    assert not whole.flags.writeable
