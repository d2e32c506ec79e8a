"""An index that was written by format version 1 opens and answers, with whatever the code has become."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.compat.make_tiny_index import MODEL, TEXTS, make_tiny_index, tiny_document, tiny_rows

from denspi.index import IndexWriter, ParagraphRows, Snapshot, verify
from denspi.sparse import weigh_question

ARCHIVE = Path(__file__).parent / "index-format-1.zip"
SCORE = "0.910683"
ADDED = {"paragraph_runs"}
"""Components that version 1 has gained since."""
NO_LONGER = {"texts_blocks", "records_blocks"}
"""Those that it has lost: texts were compressed, which can still be read."""
LIVE = [name for name in TEXTS if name != "gone"]


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path / "frozen")
    return tmp_path / "frozen"


def test_it_opens_and_every_value_is_there(frozen: Path) -> None:
    snapshot = Snapshot.open(frozen)
    assert snapshot.generation == 3
    assert snapshot.model == MODEL
    assert snapshot.live.documents == len(LIVE)
    for name in LIVE:
        place = snapshot.find(name)
        assert place is not None
        segment, document = snapshot.segments[place.segment], tiny_document(name)
        assert segment.document(place.document) == document
        first = int(segment.document_paragraphs[place.document])
        for paragraph, text in enumerate(document.paragraph_texts(), start=first):
            stored, made = segment.rows_of(paragraph), tiny_rows(text)
            for field in dataclasses.fields(ParagraphRows):
                np.testing.assert_array_equal(getattr(stored, field.name), getattr(made, field.name))
    assert snapshot.document("gone") is None


def test_it_answers(frozen: Path) -> None:
    snapshot = Snapshot.open(frozen)
    question = weigh_question("When was the Old Town of Warsaw rebuilt?", snapshot.frequencies)
    hits = snapshot.segments[0].postings.top_paragraphs_by_both(question, 1)
    assert (
        snapshot.segments[0].paragraph_text(int(hits.numbers[0])) == "The Old Town was rebuilt after the war."
    )
    assert f"{hits.scores[0]:.6f}" == SCORE


def test_it_verifies_and_can_be_changed(frozen: Path) -> None:
    assert verify(frozen).problems == ()
    with IndexWriter.open(frozen) as writer:
        writer.delete("who")
        writer.merge()
        assert writer.commit() == 4
    assert Snapshot.open(frozen).live.documents == len(LIVE) - 1


def test_today_the_same_documents_give_the_same_bytes(frozen: Path, tmp_path: Path) -> None:
    """As long as this is the newest format; all but those of the texts."""
    make_tiny_index(tmp_path / "index")
    unlike = {"texts", "records", "table.json", "manifest.json", "lock", *ADDED, *NO_LONGER}
    old, new = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in unlike
        }
        for folder in (frozen, tmp_path / "index")
    )
    assert old == new


def test_its_words_are_counted_as_a_new_index_has_them_counted(frozen: Path, tmp_path: Path) -> None:
    """In the texts where no count is stored; a merge stores it."""
    words = sum(len(TEXTS[name].split()) for name in LIVE)
    make_tiny_index(tmp_path / "index")
    assert Snapshot.open(frozen).live_runs == Snapshot.open(tmp_path / "index").live_runs == words
    with IndexWriter.open(frozen) as writer:
        writer.merge()
        writer.commit()
    assert (frozen / Snapshot.open(frozen).segments[0].name / "paragraph_runs").exists()
    assert Snapshot.open(frozen).live_runs == words
    assert verify(frozen).problems == ()
