"""Which format a file is in, from its name and its first bytes. Pure; opens nothing.

A known extension decides, except where it promises little (.json, .xml) or the bytes plainly disagree (a PDF,
or no text at all). Without a known extension the content decides, and any other text is plain text.
"""

from __future__ import annotations

import json
import re
from typing import Literal, get_args

from denspi.corpus.encoding import encoding_of
from denspi.corpus.files import UnreadableError
from denspi.errors import InputError

Format = Literal["text", "markdown", "html", "pdf", "jsonl", "squad", "wikipedia"]
FORMATS: tuple[Format, ...] = get_args(Format)

_BY_SUFFIX: dict[str, Format] = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".pdf": "pdf",
}
_BINARY_KINDS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive or office document"),
    (b"\xd0\xcf\x11\xe0", "an old office document"),
    (b"\x7fELF", "a program"),
    (b"\xfd7zXZ", "an .xz archive"),
    (b"\x28\xb5\x2f\xfd", "a .zst archive"),
    (b"SQLite format 3", "an SQLite database"),
)
_SQUAD = re.compile(r'"data"\s*:\s*\[')
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


def parse_format(name: str | None) -> Format | None:
    """The format that a person named; `InputError` with the choices for an unknown one."""
    for known in FORMATS:
        if name == known:
            return known
    if name is None:
        return None
    raise InputError(f"unknown format {name!r}; choose one of {', '.join(FORMATS)}")


def detect_format(suffix: str, head: bytes) -> Format:
    """The format of a file with this extension (lower case) and these first bytes."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if suffix == ".pdf":
        raise UnreadableError("named .pdf, but not a PDF")
    encoding, mark_bytes = encoding_of(head)
    for magic, kind in _BINARY_KINDS:
        if head.startswith(magic):
            raise UnreadableError(f"{kind}, which denspi does not read")
    if not mark_bytes and b"\0" in head:
        raise UnreadableError("neither text nor a format that denspi reads")
    text = head[mark_bytes:].decode(encoding, "replace").lstrip()
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if "<mediawiki" in text[:4096]:
        return "wikipedia"
    if suffix == ".xml":
        raise UnreadableError("XML, but not a Wikipedia dump (no <mediawiki> element)")
    if text.startswith("{") and (found := _json_format(text)):
        return found
    if suffix == ".json":
        raise UnreadableError("JSON, but neither SQuAD's layout nor JSON Lines")
    return "html" if text.startswith("<") and _HTML.search(text[:4096]) else "text"


def _json_format(text: str) -> Format | None:
    """SQuAD's layout, or JSON Lines when the first line is an object of its own."""
    first_line, line_end, rest = text.partition("\n")
    is_record = bool(line_end) and _is_object(first_line)
    if is_record and rest.strip():
        return "jsonl"
    if _SQUAD.search(text) and '"paragraphs"' in text:
        return "squad"
    if not line_end:  # one long line, or cut by the end of the head: it has to look like one of our records
        return "jsonl" if '"text"' in first_line else None
    return "jsonl" if is_record else None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
