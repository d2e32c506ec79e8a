"""Plain text files. A file of any size is read in bounded memory.

A text above `LONGEST_TEXT_CHARS` becomes consecutive documents ``big.txt#1``, ``big.txt#2``, ... that are cut
where a paragraph starts; together they hold every character of the file.
"""

from __future__ import annotations

from collections.abc import Iterator

from denspi.corpus.encoding import decode_stream
from denspi.corpus.files import ByteStream, CorpusFile, TruncatedError, UnreadableError
from denspi.corpus.paragraphs import split_paragraphs
from denspi.corpus.records import Item, Skipped
from denspi.types import Document

LONGEST_TEXT_CHARS = 4_000_000


def read_text(file: CorpusFile, stream: ByteStream) -> Iterator[Item]:
    """One document, or several if the text is long."""
    text = ""
    parts = 0
    start_char = 0
    failure: UnreadableError | None = None
    chunks = decode_stream(stream)
    while True:
        try:
            chunk = next(chunks, None)
        except UnreadableError as error:
            failure, chunk = error, None
        if chunk is None:
            break
        text += chunk
        while len(text) > LONGEST_TEXT_CHARS:
            cut = part_end(text[:LONGEST_TEXT_CHARS])
            parts += 1
            yield _part(file, parts, start_char, text[:cut])
            text, start_char = text[cut:], start_char + cut
    if failure and not isinstance(failure, TruncatedError):
        rest = f"; part {parts + 1} and what follows it left out" if parts else ""
        yield Skipped(file.source, f"{failure}{rest}")
        return
    if parts and text.strip():
        yield _part(file, parts + 1, start_char, text)
    elif not parts and (text.strip() or not failure):
        yield Document(file.document_id, file.title, text, split_paragraphs(text), file.source)
    if failure:
        yield Skipped(file.source, str(failure))


def part_end(text: str) -> int:
    """Where to end a part that begins with `text`: before its last paragraph, line or word, else hard."""
    last_paragraph = split_paragraphs(text)[-1:]
    if last_paragraph and last_paragraph[0].start_char > len(text) // 2:
        return last_paragraph[0].start_char
    for separator in ("\n", " "):
        cut = text.rfind(separator) + 1
        if cut > len(text) // 2:
            return cut
    return len(text)


def _part(file: CorpusFile, number: int, start_char: int, text: str) -> Document:
    return Document(
        document_id=f"{file.document_id}#{number}",
        title=file.title,
        text=text,
        paragraphs=split_paragraphs(text),
        source=f"{file.source}#{number}",
        metadata={"start_char": start_char},
    )
