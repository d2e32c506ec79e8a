"""JSON Lines: an object a line with ``text``, perhaps ``id`` and ``title``; other fields become metadata.

Lines are read one at a time, and each bad line is skipped on its own. Blank lines are no items.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import NoReturn

from denspi.corpus.encoding import decode_chunks, encoding_of
from denspi.corpus.files import ByteStream, CorpusFile, TruncatedError, UnreadableError
from denspi.corpus.paragraphs import split_paragraphs
from denspi.corpus.records import DEEPEST_METADATA, Item, Skipped, is_shallow, shortened
from denspi.types import Document

LONGEST_LINE_BYTES = 64 << 20

_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}


def read_jsonl(file: CorpusFile, stream: ByteStream) -> Iterator[Item]:
    """One document a line; the id is the line's own, else ``file.jsonl:LINE``."""
    number = 0
    try:
        for number, line in enumerate(_lines(_utf8(stream)), start=1):
            source = f"{file.source}:{number}"
            if line is None:
                yield Skipped(source, f"a line longer than {LONGEST_LINE_BYTES >> 20} MiB")
            elif not line.isspace():
                try:
                    yield _document(line, f"{file.document_id}:{number}", source)
                except UnreadableError as error:
                    yield Skipped(source, str(error))
    except UnreadableError as error:
        # The lines before stay; only the unfinished one is lost.
        yield Skipped(f"{file.source}:{number + 1}", str(error))


def _document(line: bytes, default_id: str, source: str) -> Document:
    fields = _parse(line)
    document_id = _id(fields.pop("id", None), default_id)
    title = fields.pop("title", None)
    text = fields.pop("text", None)
    if text is None:
        raise UnreadableError("no text: the object lacks the field 'text'")
    if not isinstance(text, str):
        raise UnreadableError(f"field 'text' is {_kind(text)}, not a string")
    if not isinstance(title, str | None):
        raise UnreadableError(f"field 'title' is {_kind(title)}, not a string")
    inner = fields.get("metadata")
    if isinstance(inner, dict):  # as the HTTP API has them
        fields = {**inner, **{name: value for name, value in fields.items() if name != "metadata"}}
    if not is_shallow(fields):
        raise UnreadableError(f"metadata of more than {DEEPEST_METADATA} levels; nest them less deeply")
    return Document(document_id, title or document_id, text, split_paragraphs(text), source, fields)


def _parse(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"not UTF-8 text (0x{line[error.start]:02x} in the line's byte {error.start})"
        ) from error
    except json.JSONDecodeError as error:
        raise UnreadableError(f"not JSON ({error.msg} at column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"not usable JSON ({error})") from error
    if not isinstance(value, dict):
        raise UnreadableError(f"{_kind(value)}, not an object")
    return value


def _id(value: object, default_id: str) -> str:
    if value is None:
        return default_id
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UnreadableError(f"field 'id' is {_kind(value)}, not a string or a whole number")
    if value == "":
        raise UnreadableError("field 'id' is empty")
    return str(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):  # Python reads 1e999 so, and could not write it as JSON again
        raise ValueError(f"{shortened(number, 40)} is too large a number")
    return value


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")


def _utf8(stream: ByteStream) -> Iterator[bytes]:
    """The stream as UTF-8 bytes without a mark, so that one bad line does not spoil the others."""
    encoding, mark_bytes = encoding_of(stream.head)
    if encoding != "utf-8":
        yield from (text.encode() for text in decode_chunks(stream, encoding, mark_bytes))
        return
    chunks = iter(stream)
    yield next(chunks, b"")[mark_bytes:]
    yield from chunks


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Lines with their ends; None for one above the limit, whose bytes are let go as they come."""
    pieces: list[bytes] = []
    line_bytes = 0
    try:
        for chunk in chunks:
            for piece in _split(chunk):
                line_bytes += len(piece)
                if line_bytes > LONGEST_LINE_BYTES:
                    pieces.clear()
                else:
                    pieces.append(piece)
                if piece.endswith(b"\n"):
                    yield b"".join(pieces) if line_bytes <= LONGEST_LINE_BYTES else None
                    pieces.clear()
                    line_bytes = 0
    except TruncatedError:
        # A cut right at a line's end, or after a complete last line, loses nothing.
        if (last := b"".join(pieces).strip()) and last.endswith(b"}") and _is_whole(last):
            yield last
        raise
    if line_bytes:
        yield b"".join(pieces) if line_bytes <= LONGEST_LINE_BYTES else None


def _split(chunk: bytes) -> list[bytes]:
    """Cut after each line feed only; a carriage return is white space to JSON."""
    pieces = [piece + b"\n" for piece in chunk.split(b"\n")]
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]


def _is_whole(line: bytes) -> bool:
    try:
        _parse(line)
    except UnreadableError:
        return False
    return True
