from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from denspi.corpus import Skipped
from denspi.corpus.detection import detect_format
from denspi.corpus.folders import size_bytes


def test_a_folder_is_read_in_order_with_relative_ids(read: Callable, write: Callable, tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/b/c.txt", "a.txt", "B.txt"):
        write(name, f"In {name}.")
    result = read(tmp_path)
    assert result.ids == ["B.txt", "a/b/c.txt", "a/z.txt", "a.txt", "b.txt"]
    assert result.documents[1].source == f"{tmp_path}/a/b/c.txt"
    assert size_bytes([tmp_path]) == sum(path.stat().st_size for path in tmp_path.rglob("*.txt"))


def test_hidden_entries_are_left_out_and_noted(read: Callable, write: Callable, tmp_path: Path) -> None:
    write("a.txt", "A.")
    write(".hidden.txt", "H.")
    write(".git/config", "[core]")
    result = read(tmp_path)
    assert result.ids == ["a.txt"]
    assert [str(note) for note in result.notes] == [f"{tmp_path}: left out 2 hidden entries"]
    assert read(tmp_path / ".hidden.txt").ids == [".hidden.txt"], "a file that is named is read"


def test_links(read: Callable, write: Callable, tmp_path: Path) -> None:
    folder = write("real/a.txt", "A.").parent
    (folder / "b.txt").symlink_to(folder / "a.txt")
    (folder / "broken.txt").symlink_to(folder / "gone.txt")
    (folder / "loop").symlink_to(folder)
    (folder / "self").symlink_to(folder / "self")
    os.mkfifo(folder / "pipe")
    result = read(folder)
    assert result.ids == ["a.txt", "b.txt"]
    assert result.skipped == [
        Skipped(f"{folder}/broken.txt", "a broken link"),
        Skipped(f"{folder}/loop", "a link to a folder, not followed; give that folder as a path of its own"),
        Skipped(f"{folder}/pipe", "not a regular file"),
        Skipped(f"{folder}/self", f"cannot be opened: {os.strerror(errno.ELOOP)}"),
    ]


def test_names_that_are_not_unicode(read: Callable, tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")).write_text("Coffee.")
    except OSError:
        pytest.skip("this file system takes Unicode names only")
    assert read(tmp_path).ids == ["caf\\xe9.txt"]


@pytest.mark.parametrize(
    ("suffix", "head", "expected"),
    [
        (".txt", b'{"id": 1}\n', "text"),
        (".txt", b"%PDF-1.7\n", "pdf"),
        (".md", b"<html>", "markdown"),
        (".htm", b"plain", "html"),
        ("", b"<!DOCTYPE html>\n<p>x", "html"),
        ("", b"x < y and <html", "text"),
        (".log", b"a line\n", "text"),
        (".ndjson", b"", "jsonl"),
        (".json", b'{"id": 1, "text": "a"}\n{"id": 2', "jsonl"),
        (".json", b'{"text": "a very long first line', "jsonl"),
        (".json", b'\n{"version": "1.1", "data": [{"title": "x", "paragraphs": []}]}', "squad"),
        (".json", b'{"data": [1], "paragraphs": 2, "text": "a"}\n{"text": "b"}\n', "jsonl"),
        (".json", b'{"data": [{"title": "x", "paragraphs": []}]}\n', "squad"),
        (".json", '\ufeff{"data": [{"paragraphs": []}]}'.encode("utf-16-le"), "squad"),
        (".xml", b'<?xml version="1.0"?>\n<mediawiki xmlns="x">', "wikipedia"),
        ("", b'<mediawiki xmlns="x">', "wikipedia"),
    ],
)
def test_detection(suffix: str, head: bytes, expected: str) -> None:
    assert detect_format(suffix, head) == expected


def test_the_format_can_be_told(read: Callable, write: Callable) -> None:
    path = write("page.html", "<p>Text.</p>")
    assert read(path).only.text == "Text."
    assert read(path, format="text").only.text == "<p>Text.</p>"
