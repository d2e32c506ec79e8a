"""Finding the files of a corpus and reading their bytes once, front to back, decompressed on the way.

The only module of the corpus that touches the disk. Memory holds a few chunks, whatever the file's size;
.gz and .bz2 are known by their first bytes, not by their names.
"""

from __future__ import annotations

import bz2
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 256 * 1024
HEAD_BYTES = 64 * 1024

_GZIP_MAGIC = b"\x1f\x8b\x08"
_BZIP2_START = re.compile(rb"BZh[1-9]")
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # what follows: a block, or the end
_COMPRESSED_SUFFIXES = (".gz", ".bz2")


class UnreadableError(Exception):
    """The file, or the rest of it, cannot be used; the message is the reason."""


class TruncatedError(UnreadableError):
    """The file ends too early; what was read before is sound."""


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file to read: where it is, the id of the document it may become, and how people name it."""

    path: Path
    document_id: str
    source: str

    @property
    def suffix(self) -> str:
        """The extension that tells the format, in lower case: ``.json`` of ``train.JSON.gz``."""
        return self._plain_name.suffix.lower()

    @property
    def title(self) -> str:
        """A title made of the file's name: ``oil crisis`` of ``oil_crisis.txt.gz``."""
        return self._plain_name.stem.replace("_", " ").strip() or self.document_id

    @property
    def _plain_name(self) -> Path:
        name = Path(self.document_id.rsplit("/", 1)[-1])
        return name.with_suffix("") if name.suffix.lower() in _COMPRESSED_SUFFIXES else name


class ByteStream:
    """The decompressed bytes of one file: `head` to look at, then every chunk once.

    A file that fails before its first byte raises `UnreadableError` at once.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._failure: UnreadableError | None = None
        head = bytearray()
        try:
            while len(head) < HEAD_BYTES and (chunk := next(chunks, b"")):
                head += chunk
        except UnreadableError as error:
            if not head:
                raise
            self._failure = error  # told when the reader arrives there: what came before may be usable
        self._first = bytes(head)

    @property
    def head(self) -> bytes:
        """The first bytes (up to 64 KiB), for looking at only."""
        return self._first[:HEAD_BYTES]

    @property
    def is_empty(self) -> bool:
        """Whether the file holds nothing at all."""
        return not self._first

    def __iter__(self) -> Iterator[bytes]:
        if self._first:
            yield self._first
        if self._failure:
            raise self._failure
        yield from self._chunks

    def read_all(self, limit_bytes: int) -> bytes:
        """Everything at once, for formats that cannot be streamed; more than the limit is refused."""
        data = bytearray()
        for chunk in self:
            data += chunk
            if len(data) > limit_bytes:
                raise UnreadableError(f"larger than {limit_bytes >> 20} MiB, the limit for this format")
        return bytes(data)


def stream_bytes(file: BinaryIO, on_bytes_read: Callable[[int], None]) -> ByteStream:
    """The decompressed stream of an open file; `on_bytes_read` hears how many bytes left the disk."""
    raw = _raw_chunks(file, on_bytes_read)
    first = next(raw, b"")
    # Also what is cut within these first bytes.
    if first and first[:3] == _GZIP_MAGIC[: len(first)]:
        return ByteStream(_gunzip(first, raw))
    if _BZIP2_START.match(first) and any(block[: len(first) - 4] == first[4:10] for block in _BZIP2_BLOCKS):
        return ByteStream(_bunzip2(first, raw))
    return ByteStream(_chain(first, raw))


def _raw_chunks(file: BinaryIO, on_bytes_read: Callable[[int], None]) -> Iterator[bytes]:
    try:
        while chunk := file.read(CHUNK_BYTES):
            on_bytes_read(len(chunk))
            yield chunk
    except OSError as error:
        raise UnreadableError(f"reading failed: {error.strerror or error}") from error


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
        yield from rest


def _gunzip(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Decompressed chunks of bounded size, of all members; zero padding after the last is allowed."""
    member = zlib.decompressobj(wbits=31)
    pending = first
    while True:
        try:
            chunk = member.decompress(pending, CHUNK_BYTES)
        except zlib.error as error:
            raise UnreadableError(f"damaged .gz ({error})") from error
        if chunk:
            yield chunk
        pending = member.unconsumed_tail
        if member.eof:
            pending = member.unused_data.lstrip(b"\0")
            while not pending and (more := next(rest, b"")):
                pending = more.lstrip(b"\0")
            if not pending:
                return
            if not pending.startswith(_GZIP_MAGIC[: len(pending)]):
                raise TruncatedError("bytes after the end of the .gz that are not gzip; left unread")
            member = zlib.decompressobj(wbits=31)
        elif not pending and len(chunk) < CHUNK_BYTES:
            pending = next(rest, b"")
            if not pending:
                raise TruncatedError("truncated .gz; read up to the cut")


def _bunzip2(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Like `_gunzip`; Wikipedia's multistream dumps are many streams one after the other."""
    stream = bz2.BZ2Decompressor()
    pending = first
    while True:
        try:
            chunk = stream.decompress(pending, CHUNK_BYTES)
        except OSError as error:
            raise UnreadableError(f"damaged .bz2 ({error})") from error
        pending = b""
        if chunk:
            yield chunk
        if stream.eof:
            pending = stream.unused_data or next(rest, b"")
            if not pending:
                return
            if not pending.startswith(b"BZh"[: len(pending)]):
                raise TruncatedError("bytes after the end of the .bz2 that are not bzip2; left unread")
            stream = bz2.BZ2Decompressor()
        elif stream.needs_input:
            pending = next(rest, b"")
            if not pending:
                raise TruncatedError("truncated .bz2; read up to the cut")
