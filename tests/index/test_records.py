"""What is stored about a document comes back as it was, or is refused when it is added."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.made import MODEL, make_document, make_rows

from denspi.errors import InputError
from denspi.index import IndexWriter, Snapshot
from denspi.index.segment_writer import encode_record

PAIR = "\ud83d" + "\ude00"  # two halves; as one character it would be another text
TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=4)


@pytest.mark.parametrize(
    "given", [{"document_id": PAIR}, {"metadata": {"k": PAIR}}, {"metadata": {PAIR: 1}}, {"source": PAIR}]
)
def test_halves_that_json_would_join_are_refused(tmp_path: Path, given: dict[str, object]) -> None:
    document = make_document(**{"document_id": "d", "paragraphs": ["old town"], **given})  # type: ignore[arg-type]
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        with pytest.raises(InputError, match="gives back otherwise") as told:
            writer.add(document, [make_rows("old town", np.random.default_rng(0))])
        assert "\n" not in str(told.value)
        str(told.value).encode()  # can be printed
        assert writer.commit() == 1
    assert Snapshot.open(tmp_path / "index").live.documents == 0


@given(name=TEXTS, value=TEXTS)
def test_an_accepted_record_comes_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: str
) -> None:
    folder = tmp_path_factory.mktemp("records") / "index"
    document = make_document(name or "-", ["old town"], metadata={"k": [value, {value: 1}]})
    with IndexWriter.create(folder, MODEL) as writer:
        try:
            writer.add(document, [make_rows("old town", np.random.default_rng(0))])
        except InputError:
            assert any("\ud800" <= each <= "\udbff" for each in name + value)
            return
        writer.commit()
    assert Snapshot.open(folder).document(document.document_id) == document


def nested(levels: int, value: object = 0) -> dict[str, object]:
    for _ in range(levels):
        value = [value]
    return {"k": value}


def test_metadata_that_are_nested_too_deep_are_refused() -> None:
    encode_record(make_document("d", ["old town"], metadata=nested(50)))
    for levels in (100, 900, 100_000):
        with pytest.raises(InputError, match="levels; nest them less deeply"):
            encode_record(make_document("d", ["old town"], metadata=nested(levels)))
