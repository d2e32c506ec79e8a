from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus import text as text_reader
from denspi.corpus.files import ByteStream, CorpusFile
from denspi.corpus.text import part_end, read_text
from denspi.types import Document

FILE = CorpusFile(Path("big.txt"), "big.txt", "big.txt")


def test_a_file_is_a_document_named_after_it(read: Callable, write: Callable) -> None:
    document = read(write("oil_crisis.txt", "  One.\n\nTwo.\n")).only
    assert (document.document_id, document.title) == ("oil_crisis.txt", "oil crisis")
    assert document.text == "  One.\n\nTwo.\n"
    assert list(document.paragraph_texts()) == ["One.", "Two."]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe",
        "Grüße".encode("utf-16"),
        b"\xfe\xff" + "Grüße".encode("utf-16-be"),
        "Grüße".encode("utf-32"),
        gzip.compress("Grüße".encode(), mtime=0),
        bz2.compress("Grüße".encode()),
        gzip.compress("Grü".encode(), mtime=0) + gzip.compress("ße".encode(), mtime=0) + b"\0" * 100,
        bz2.compress("Grü".encode()) + bz2.compress("ße".encode()),
    ],
)
def test_encodings_and_compression(content: bytes, read: Callable, write: Callable) -> None:
    assert read(write("a.txt", content)).only.text == "Grüße"


@given(
    st.lists(st.sampled_from(["word ", "é", "\n", "\n\n", "a sentence.", "𝔘"]), max_size=60).map("".join),
    st.integers(1, 9),
)
def test_parts_hold_every_character(text: str, chunk_bytes: int) -> None:
    data = text.encode()
    chunks = [data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "LONGEST_TEXT_CHARS", 20)
        parts = list(read_text(FILE, ByteStream(iter(chunks))))
    assert all(isinstance(part, Document) for part in parts)
    joined = "".join(part.text for part in parts if isinstance(part, Document))
    assert joined == text or (text.startswith(joined) and not text[len(joined) :].strip())
    if len(parts) > 1:
        assert [part.document_id for part in parts] == [f"big.txt#{n + 1}" for n in range(len(parts))]  # type: ignore[union-attr]
        for part in parts:
            assert isinstance(part, Document)
            start_char = part.metadata["start_char"]
            assert isinstance(start_char, int)
            assert text[start_char : start_char + len(part.text)] == part.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two\n\nthree four\n\nfive", "one two\n\nthree four\n\n"),
        ("no paragraph but many words here", "no paragraph but many words "),
        ("x" * 30, "x" * 30),
    ],
)
def test_where_a_part_ends(text: str, expected: str) -> None:
    assert text[: part_end(text)] == expected


def test_an_unreadable_byte_in_a_later_part_keeps_the_parts_before(
    read: Callable, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_reader, "LONGEST_TEXT_CHARS", 300_000)
    result = read(write("big.txt", b"good words\n\n" * 50_000 + b"\xff"))
    assert result.ids == ["big.txt#1"]
    assert result.reason == "not UTF-8 text (0xff at byte 600000); part 2 and what follows it left out"
