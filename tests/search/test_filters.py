from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from denspi.errors import InputError
from denspi.index.documents import DocumentRecord
from denspi.search.fields import FieldColumns, values_of
from denspi.search.filters import Filter
from denspi.search.view import SearchView

RECORD = DocumentRecord(
    "a/b.md",
    "Rivers",
    "b.md:1",
    {"language": "en", "year": 1889, "open": True, "tags": ["x", "y"], "n": None},
)


def fits_plainly(chosen: Filter, record: DocumentRecord) -> bool:
    return all(not values.isdisjoint(values_of(record, field)) for field, values in chosen.conditions)


class OneDocument:
    """A segment of one record."""

    counts = SimpleNamespace(documents=1)

    def record(self, number: int) -> DocumentRecord:
        return RECORD

    def numbers_of(self, document_id: str) -> list[int]:
        return [0] if document_id == RECORD.document_id else []


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        (None, True),
        ({}, True),
        ({"language": "en"}, True),
        ({"language": "de"}, False),
        ({"language": ["de", "en"]}, True),
        ({"language": []}, False),
        ({"year": 1889}, True),
        ("year=1889", True),
        (["year=1889", "language=de"], False),
        (["language=de", "language=en"], True),
        (["open=true"], True),
        ({"open": True}, True),
        ({"open": False}, False),
        ({"tags": "y"}, True),
        ({"tags": "z"}, False),
        ({"n": "null"}, False),
        ({"unknown": "x"}, False),
        ({"document_id": "a/b.md"}, True),
        ({"title": "Rivers", "source": "b.md:1"}, True),
        (["title = Rivers"], True),
        (["note=a=b"], False),
    ],
)
def test_conditions(where: object, fits: bool) -> None:
    chosen = Filter.of(where)  # type: ignore[arg-type]
    assert fits_plainly(chosen, RECORD) == fits
    segment: Any = SimpleNamespace(reader=OneDocument(), memo=SimpleNamespace(columns=FieldColumns()))
    assert chosen.mask_of(segment).tolist() == [fits]
    assert Filter.of(chosen) is chosen
    assert hash(Filter.of(where)) == hash(chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("condition", ["language", "=en", " =en", ""])
def test_a_condition_without_field_and_value_is_named(condition: str) -> None:
    with pytest.raises(InputError, match="field=value"):
        Filter.of([condition])


def test_masks_say_what_fits(view: SearchView) -> None:
    chosen = Filter.of({"number": [1, 3, 5, 13]})
    for segment in view.segments:
        mask = chosen.mask_of(segment)
        assert mask.tolist() == [
            fits_plainly(chosen, segment.reader.record(number))
            for number in range(segment.reader.counts.documents)
        ]
    only = chosen.applied_to(view)
    found = [
        segment.reader.record(number).document_id
        for segment in only.segments
        for number in np.flatnonzero(segment.allowed_documents)
    ]
    assert sorted(found) == ["d1", "d13", "d5"]  # d3 is deleted, and of d5 only the new version is live
    assert Filter.of(None).applied_to(view) is view


def test_ids_are_found_without_reading_every_record(
    view: SearchView, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    reader = type(view.segments[0].reader)
    original = reader.record
    monkeypatch.setattr(reader, "record", lambda self, number: read.append(number) or original(self, number))
    by_id = Filter.of({"document_id": ["d2", "d19", "nobody"]}).applied_to(view)
    assert sum(int(segment.allowed_documents.sum()) for segment in by_id.segments) == 2
    assert len(read) < 10


def test_records_are_read_once_for_a_field_and_never_for_one_that_nobody_has(
    view: SearchView, monkeypatch: pytest.MonkeyPatch
) -> None:
    Filter.of({"number": 1}).applied_to(view)
    monkeypatch.setattr(type(view.segments[0].reader), "record", None)
    for number in range(20):
        Filter.of({"number": number, f"field {number}": "x"}).applied_to(view)


def test_numbers_and_dates_are_compared_as_people_write_them() -> None:
    assert Filter.of({"year": 1889.0}) == Filter.of({"year": 1889}) == Filter.of(["year=1889"])
    assert Filter.of({"on": datetime.date(2020, 1, 1)}) == Filter.of(["on=2020-01-01"])
    assert Filter.of({"a": (n for n in ("x", "y"))}) == Filter.of({"a": {"x": 1, "y": 2}.keys()})
    with pytest.raises(InputError, match="conditions 5"):
        Filter.of(5)  # type: ignore[arg-type]


def test_fields_that_no_document_has_are_named(view: SearchView) -> None:
    wanted = Filter.of(["titel=x", "title=y"])
    assert wanted.unknown_fields(view) == ["titel"]
    assert wanted.fields_of(view)[:3] == ["document_id", "title", "source"]
    assert Filter.of(["document_id=x"]).unknown_fields(view) == []
