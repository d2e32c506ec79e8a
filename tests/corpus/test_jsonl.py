from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus import jsonl, split_paragraphs
from denspi.corpus.files import ByteStream, CorpusFile
from denspi.corpus.jsonl import read_jsonl
from denspi.types import Document

FILE = CorpusFile(Path("a.jsonl"), "a.jsonl", "a.jsonl")


def test_an_object_of_metadata_is_as_good_as_fields_beside_the_text(read: Callable, write: Callable) -> None:
    lines = [
        {"id": "a", "text": "x", "metadata": {"year": 1999, "metadata": {"deeper": 1}}},
        {"id": "b", "text": "x", "metadata": {"year": 1999, "tag": "inner"}, "tag": "own"},
        {"id": "c", "text": "x", "metadata": "a word"},
    ]
    found = read(write("a.jsonl", "\n".join(map(json.dumps, lines)))).documents
    assert [each.metadata for each in found] == [
        {"year": 1999, "metadata": {"deeper": 1}},
        {"year": 1999, "tag": "own"},
        {"metadata": "a word"},
    ]


def test_fields_ids_and_metadata(read: Callable, write: Callable) -> None:
    lines = [
        '{"id": "a", "title": "Title", "text": "One.\\nTwo.", "year": 1999, "tags": ["x"]}',
        "",
        '{"id": 7, "text": "Seven."}\r',
        '{"text": "No id.", "id": null, "title": null}',
    ]
    first, second, third = read(write("notes.jsonl", "\n".join(lines))).documents
    assert (first.document_id, first.title, first.metadata) == ("a", "Title", {"year": 1999, "tags": ["x"]})
    assert list(first.paragraph_texts()) == ["One.", "Two."]
    assert (second.document_id, second.title) == ("7", "7")
    assert (third.document_id, third.title) == ("notes.jsonl:4", "notes.jsonl:4")


def test_byte_order_marks(read: Callable, write: Callable) -> None:
    line = '{"id": "ä", "text": "Grüße."}\n'
    for name, encoding in (("a.jsonl", "utf-8-sig"), ("b.jsonl", "utf-16"), ("c.jsonl", "utf-32")):
        assert read(write(name, line.encode(encoding))).only.text == "Grüße."


def test_a_line_above_the_limit_is_skipped(
    read: Callable, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "LONGEST_LINE_BYTES", 1 << 20)
    long_line = json.dumps({"id": "long", "text": "x" * (1 << 20)})
    result = read(write("a.jsonl", f'{{"id": "a", "text": "A."}}\n{long_line}\n{{"id": "b", "text": "B."}}'))
    assert result.ids == ["a", "b"]
    assert result.reason == "a line longer than 1 MiB"


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8),
    st.integers(1, 50),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_any_text_comes_back_exactly(texts: list[str], chunk_bytes: int, line_end: str) -> None:
    data = "".join(json.dumps({"text": text}, ensure_ascii=False) + line_end for text in texts).encode()
    chunks = [data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes)]
    items = list(read_jsonl(FILE, ByteStream(iter(chunks))))
    assert [item.text for item in items if isinstance(item, Document)] == texts
    for item in items:
        assert isinstance(item, Document)
        assert item.paragraphs == split_paragraphs(item.text)
