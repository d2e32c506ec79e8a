"""From bytes to text: UTF-8 unless a byte order mark says otherwise, and never a guess or a replacement sign.

Bytes that are no text raise `UnreadableError` with their place; nothing is mended.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from denspi.corpus.files import ByteStream, UnreadableError

# The longer marks first: UTF-32's begins like UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_NAMES = {"utf-8": "UTF-8", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}


def encoding_of(head: bytes) -> tuple[str, int]:
    """The encoding that the first bytes announce, and the length of their mark (0: none, so UTF-8)."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


def decode_stream(stream: ByteStream) -> Iterator[str]:
    """The text of a stream, chunk by chunk."""
    encoding, mark_bytes = encoding_of(stream.head)
    return decode_chunks(stream, encoding, mark_bytes)


def decode_all(data: bytes, encoding: str | None = None) -> str:
    """The text of a whole file, in its own encoding or in the one given."""
    announced, mark_bytes = encoding_of(data)
    used = encoding if encoding and not mark_bytes else announced
    return "".join(decode_chunks((data,), used, mark_bytes))


def decode_chunks(chunks: Iterable[bytes], encoding: str, mark_bytes: int = 0) -> Iterator[str]:
    """Decode strictly, leaving out the first `mark_bytes`."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    done_bytes = 0
    to_drop = mark_bytes
    for chunk in chunks:
        payload = chunk[to_drop:]
        to_drop = 0
        # An unfinished sign stays in the decoder: the place of an error counts from there.
        waiting_bytes = len(decoder.getstate()[0])
        yield _decode(decoder, payload, mark_bytes + done_bytes - waiting_bytes, encoding)
        done_bytes += len(payload)
    waiting_bytes = len(decoder.getstate()[0])
    yield _decode(decoder, b"", mark_bytes + done_bytes - waiting_bytes, encoding, final=True)


def _decode(
    decoder: codecs.IncrementalDecoder, data: bytes, start_byte: int, encoding: str, *, final: bool = False
) -> str:
    try:
        return decoder.decode(data, final)
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"not {_NAMES.get(encoding, encoding)} text "
            f"(0x{error.object[error.start]:02x} at byte {start_byte + error.start})"
        ) from error
