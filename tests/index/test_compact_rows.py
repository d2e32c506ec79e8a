"""An index of compact rows is an index like any other, and says how wide its rows are."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.index.made import COMPACT, MODEL, build, contents, make

from denspi.errors import IndexDamagedError, InputError
from denspi.index import (
    IndexWriter,
    MergePolicy,
    ModelRecord,
    ParagraphRows,
    Snapshot,
    WriterSettings,
    verify,
)
from denspi.index.manifest import MANIFEST, sealed

APART = WriterSettings(policy=MergePolicy(fanout=100))


def test_what_comes_in_comes_out(tmp_path: Path) -> None:
    made = [make(n, model=COMPACT) for n in range(5)]
    build(tmp_path / "index", made, model=COMPACT)
    snapshot = Snapshot.open(tmp_path / "index")
    assert snapshot.model == COMPACT
    segment = snapshot.segments[0]
    for number, (document, rows) in enumerate(made):
        assert segment.document(number) == document
        first = int(segment.document_paragraphs[number])
        for paragraph, own in enumerate(rows, start=first):
            found = segment.rows_of(paragraph)
            for field in dataclasses.fields(ParagraphRows):
                np.testing.assert_array_equal(getattr(found, field.name), getattr(own, field.name))
            assert found.starts.dtype == found.end_keys.dtype == np.uint8
    assert verify(tmp_path / "index").problems == ()


def test_a_merge_is_what_one_build_would_have_made(tmp_path: Path) -> None:
    build(tmp_path / "parts", [make(n, model=COMPACT) for n in range(3)], APART, COMPACT)
    with IndexWriter.open(tmp_path / "parts", settings=APART) as writer:
        writer.add(*make(3, model=COMPACT))
        writer.delete("d1")
        writer.commit()
    with IndexWriter.open(tmp_path / "parts") as writer:
        writer.merge()
        writer.commit()
    build(tmp_path / "whole", [make(n, model=COMPACT) for n in (0, 2, 3)], model=COMPACT)
    merged, whole = Snapshot.open(tmp_path / "parts"), Snapshot.open(tmp_path / "whole")
    assert len(merged.segments) == 1
    ours, theirs = (contents(each.segments[0]._rows.path) for each in (merged, whole))
    assert ours == theirs


@pytest.mark.parametrize(
    ("given", "index", "finding"),
    [
        (MODEL, COMPACT, r"start rows of shape \(\d+, 6\) and keys of shape \(\d+, 2\); this index has"),
        (COMPACT, MODEL, r"start rows of shape \(\d+, 4\) and keys of shape \(\d+, 1\); this index has"),
        (
            dataclasses.replace(MODEL, vector_dim=4, coherency_dim=1),
            COMPACT,
            "start rows are int8 and int8; this index has uint8",
        ),
    ],
)
def test_rows_of_another_precision_are_refused(
    tmp_path: Path, given: ModelRecord, index: ModelRecord, finding: str
) -> None:
    with (
        IndexWriter.create(tmp_path / "index", index) as writer,
        pytest.raises(InputError, match=f"d1, paragraph 0: {finding}"),
    ):
        writer.add(*make(1, model=given))


def test_an_unfinished_build_of_other_rows_is_not_gone_on_with(tmp_path: Path) -> None:
    with IndexWriter.create(tmp_path / "index", COMPACT) as writer:
        writer.add(*make(1, model=COMPACT))
        writer.flush()
    for other in (MODEL, dataclasses.replace(COMPACT, vector_bytes=5)):
        finding = rf"the unfinished build is with model 'tiny' \(f+, compact\), not .*, {other.precision}\)"
        with pytest.raises(InputError, match=finding):
            IndexWriter.create(tmp_path / "index", other, resume=True)
    with IndexWriter.create(tmp_path / "index", COMPACT, resume=True) as writer:
        assert writer.resumed_documents == 1


@pytest.mark.parametrize(
    "widths",
    [
        {"precision": "compact"},
        {"precision": "compact", "vector_bytes": 4},
        {"precision": "compact", "vector_bytes": 0, "key_bytes": 1},
        {"precision": "compact", "vector_bytes": -1, "key_bytes": 1},
        {"precision": "compact", "vector_bytes": 4, "key_bytes": 1 << 20},
        {"precision": "int8", "vector_bytes": 4, "key_bytes": 1},
    ],
)
def test_a_record_without_its_widths_is_refused(widths: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="bytes"):
        dataclasses.replace(MODEL, **widths)


def test_the_manifest_of_an_int8_index_is_as_it_always_was() -> None:
    assert "vector_bytes" not in MODEL.encoded()
    assert COMPACT.encoded().items() >= {"vector_bytes": 4, "key_bytes": 1, "precision": "compact"}.items()


@pytest.mark.parametrize(
    ("field", "value", "finding"),
    [
        ("precision", "tiny", "precision 'tiny' is not known here; install a newer denspi"),
        ("vector_bytes", None, "vector_bytes is not a whole number"),
        ("vector_bytes", 0, "vector_bytes is not a positive number"),
        ("key_bytes", "1", "key_bytes is not a whole number"),
        ("key_bytes", 1 << 20, "key_bytes is not a whole number"),
        (
            "vector_bytes",
            5,
            r"starts: holds uint8 of shape \(\d+, 4\), expected uint8 with rows of shape \(5,\)",
        ),
        (
            "precision",
            "int8",
            r"starts: holds uint8 of shape \(\d+, 4\), expected int8 with rows of shape \(6,\)",
        ),
    ],
)
def test_a_manifest_that_says_otherwise_is_a_named_error(
    tmp_path: Path, field: str, value: Any, finding: str
) -> None:
    build(tmp_path / "index", [make(1, model=COMPACT)], model=COMPACT)
    path = tmp_path / "index" / MANIFEST
    body = json.loads(path.read_bytes())["content"]
    body["model"][field] = value
    path.write_bytes(sealed(body))
    with pytest.raises(IndexDamagedError, match=finding):
        Snapshot.open(tmp_path / "index").segments[0].starts  # noqa: B018
    assert verify(tmp_path / "index").problems
