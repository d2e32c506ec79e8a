"""What the issue calls bad input: skipped with file and reason, or refused at once; strict reading stops."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from denspi.corpus import read_corpus
from denspi.errors import InputError, MissingExtraError

LINES = [json.dumps({"id": f"d{n}", "text": f"Text number {n}."}) for n in range(5)]


def noise(count: int) -> str:
    """Text that does not compress well, so that a cut .gz still holds some of it."""
    generator = random.Random(7)
    return "\n\n".join("".join(generator.choices("abcdefgh ", k=80)) for _ in range(count))


BAD_FILES: list[tuple[str, bytes, str]] = [
    ("latin.txt", "Größe".encode("latin-1"), "not UTF-8 text (0xf6 at byte 2)"),
    ("empty.txt", b"", "empty"),
    ("blank.txt", b" \n\t\n", "empty"),
    ("empty.md", b"---\ntitle: only\n---\n", "empty"),
    ("empty.html", b"<html><script>x()</script></html>", "empty"),
    ("empty.txt.gz", gzip.compress(b""), "empty"),
    ("cut.txt.gz", gzip.compress(b"words " * 100)[:11], "truncated .gz; read up to the cut"),
    ("image.png", b"\x89PNG\r\n\x1a\n\0\0", "a PNG image, which denspi does not read"),
    ("archive.zip", b"PK\x03\x04\0\0", "a ZIP archive or office document, which denspi does not read"),
    ("data.bin", b"abc\0\x01\x02", "neither text nor a format that denspi reads"),
    ("fake.pdf", b"no PDF at all", "named .pdf, but not a PDF"),
    ("feed.xml", b"<rss></rss>", "XML, but not a Wikipedia dump (no <mediawiki> element)"),
    ("package.json", b'{\n "name": "x"\n}', "JSON, but neither SQuAD's layout nor JSON Lines"),
]


@pytest.mark.parametrize(("name", "content", "reason"), BAD_FILES, ids=[bad[0] for bad in BAD_FILES])
def test_a_bad_file_is_skipped_with_its_reason(
    name: str, content: bytes, reason: str, read: Callable, write: Callable
) -> None:
    write("folder/good.txt", "Good.")
    path = write(f"folder/{name}", content)
    result = read(path.parent)
    assert result.ids == ["good.txt"]
    assert [str(skipped) for skipped in result.skipped] == [f"{path}: {reason}"]
    with pytest.raises(InputError, match=r"folder/.*: "):
        list(read_corpus(path.parent, strict=True))


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf", "a.jsonl", "a.json", "a.xml", "a"])
@pytest.mark.parametrize("kept_bytes", [2, 4, 10])
def test_a_file_cut_before_its_first_byte_is_truncated(
    name: str, kept_bytes: int, read: Callable, write: Callable
) -> None:
    gz, bz2_file = gzip.compress(b"words " * 100), bz2.compress(b"words " * 100)
    assert read(write(f"{name}.gz", gz[:kept_bytes])).reason == "truncated .gz; read up to the cut"
    if kept_bytes > 3:
        assert (
            read(write(f"{name}.bz2", bz2_file[:kept_bytes])).reason == "truncated .bz2; read up to the cut"
        )


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"pipe: not a regular file or folder$"):
        read_corpus(tmp_path / "pipe")


def test_a_missing_path_is_refused_before_anything_is_read(write: Callable, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such file or folder"):
        read_corpus([write("a.txt", "A."), tmp_path / "nowhere"])
    with pytest.raises(InputError, match="no path given"):
        read_corpus([])
    with pytest.raises(InputError, match=r"unknown format 'word'; choose one of text, markdown"):
        read_corpus(write("b.txt", "B."), format="word")


def test_an_unreadable_file_is_skipped(read: Callable, write: Callable) -> None:
    path = write("secret.txt", "Secret.")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert read(path).reason == "cannot be opened: Permission denied"


def test_a_truncated_gz_keeps_what_came_before(read: Callable, write: Callable) -> None:
    text = noise(4000)
    packed = gzip.compress(text.encode())
    result = read(write("cut.txt.gz", packed[: len(packed) // 2]))
    (document,) = result.documents
    assert len(document.text) > 10_000
    assert text.startswith(document.text)
    assert result.reason == "truncated .gz; read up to the cut"


def test_a_truncated_gz_keeps_the_lines_before(read: Callable, write: Callable) -> None:
    lines = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(noise(4000).split("\n\n"))]
    packed = gzip.compress("\n".join(lines).encode())
    path = write("cut.jsonl.gz", packed[: len(packed) // 2])
    result = read(path)
    count = len(result.documents)
    assert count > 500
    assert result.ids == [str(n) for n in range(count)]
    (skipped,) = result.skipped
    assert (skipped.source, skipped.reason) == (f"{path}:{count + 1}", "truncated .gz; read up to the cut")


def test_a_damaged_gz_is_skipped(read: Callable, write: Callable) -> None:
    packed = bytearray(gzip.compress(b"words " * 100))
    packed[-6] ^= 1  # the check sum
    result = read(write("bad.txt.gz", bytes(packed)))
    assert not result.documents
    assert result.reason.startswith("damaged .gz")


def test_a_bad_line_is_skipped_alone(read: Callable, write: Callable) -> None:
    bad: list[bytes] = [
        b"not json",
        b'{"id": "a", "text": "\xff"}',
        b'["a list"]',
        b'{"id": "b"}',
        b'{"id": "c", "text": NaN}',
        b'{"id": "d", "text": ["x"]}',
        b'{"id": 1.5, "text": "x"}',
        b'{"id": "", "text": "x"}',
        b'{"id": "e", "text": "x", "title": 3}',
        b'{"id": "f", "text": "  "}',
        b'{"id": "g", "text": "half \\ud800"}',
        b'{"id": "d0", "text": "again"}',
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5000 + b', "text": "x"}',
        b'{"id": "h", "text": "x", "extra": "\\udfff"}',
        b'{"id": "i", "text": "x", "metadata": {"x": [1e999]}}',
        b'{"id": "j", "text": "x", "metadata": {"x": -1' + b"0" * 400 + b".5}}",
        b'{"id": "k", "text": "x", "metadata": ' + b"[" * 70 + b"]" * 70 + b"}",
    ]
    path = write("notes.jsonl", b"\n".join([LINES[0].encode(), *bad, LINES[1].encode()]))
    result = read(path)
    assert result.ids == ["d0", "d1"]
    assert [skipped.source for skipped in result.skipped] == [f"{path}:{n}" for n in range(2, 2 + len(bad))]
    reasons = [skipped.reason for skipped in result.skipped]
    assert reasons[:12] == [
        "not JSON (Expecting value at column 1)",
        "not UTF-8 text (0xff in the line's byte 21)",
        "a list, not an object",
        "no text: the object lacks the field 'text'",
        "not usable JSON (NaN is not JSON)",
        "field 'text' is a list, not a string",
        "field 'id' is a number, not a string or a whole number",
        "field 'id' is empty",
        "field 'title' is a number, not a string",
        "empty",
        "broken Unicode: half of a surrogate pair",
        f"duplicate id 'd0', first met in {path}",
    ]
    assert reasons[12].startswith("not usable JSON (maximum recursion depth")
    assert reasons[13].startswith("not usable JSON (Exceeds the limit")
    assert reasons[14] == "broken Unicode: half of a surrogate pair"
    assert reasons[15] == "not usable JSON (1e999 is too large a number)"
    assert reasons[16].startswith("not usable JSON (-1000")
    assert reasons[17] == "metadata of more than 64 levels; nest them less deeply"


def test_duplicate_ids_across_paths_name_the_first(read: Callable, write: Callable) -> None:
    first, second = write("one/a.txt", "A."), write("two/a.txt", "Another A.")
    result = read([first.parent, second.parent])
    assert result.ids == ["a.txt"]
    assert str(result.skipped[0]) == f"{second}: duplicate id 'a.txt', first met in {first.parent}"


def test_strict_stops_at_the_first_skipped_item(write: Callable) -> None:
    path = write("notes.jsonl", "\n".join([LINES[0], "oops", LINES[1]]))
    items = read_corpus(path, strict=True)
    next(items)
    with pytest.raises(InputError, match=r"notes\.jsonl:2: not JSON"):
        next(items)


def test_a_missing_library_names_the_extra(write: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in (("a.pdf", "pypdf"), ("a.html", "selectolax.lexbor"), ("a.md", "markdown_it")):
        path = write(name, "%PDF-1.4 hollow" if module == "pypdf" else "text")
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(
                MissingExtraError, match=r"reading (PDF|HTML|Markdown) files .*denspi\[corpus\]"
            ):
                list(read_corpus(path))
