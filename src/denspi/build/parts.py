"""Long text files are indexed in parts, ``big.txt#1`` and so on: which of them an update leaves behind. Pure.

Only what the text reader itself makes is a part. Its source is the part's place in a file whose path ends
with the id, and its metadata is where it begins, nothing else: neither can come from a line of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from denspi.corpus.records import Item, Note, Skipped
from denspi.types import Document

Lookup = Callable[[str], Document | None]
_PART = re.compile(r"(.+)#([1-9][0-9]{0,8})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of which file a document is."""

    file_id: str
    file_source: str
    number: int


def part_of(document: Document) -> Part | None:
    """None for a document that is no part of a text file."""
    name, source = _PART.fullmatch(document.document_id), _PART.fullmatch(document.source)
    if not name or not source or name[2] != source[2] or not _is_file(name[1], source[1]):
        return None
    start_char = document.metadata.get("start_char")
    if document.metadata.keys() != {"start_char"} or type(start_char) is not int:
        return None
    return Part(name[1], source[1], int(name[2]))


def parts_from(file_id: str, first: int, find: Lookup) -> Iterator[str]:
    """The ids of the stored parts of a file, from number `first` on."""
    for number in count(first):
        found = find(f"{file_id}#{number}")
        if found is None or part_of(found) is None:
            return
        yield found.document_id


class Outdated:
    """Follows an update, and knows which stored documents the files that it has read no longer have."""

    def __init__(self) -> None:
        self._last_parts: dict[str, int] = {}  # of each file; 0 for one that is whole now and had parts
        self._sources: dict[str, str] = {}
        self._skipped: set[str] = set()

    def see(self, item: Item, find: Lookup) -> None:
        """Something was read, or could not be."""
        if isinstance(item, Skipped):
            self._skipped.add(item.source)
            if found := _PART.fullmatch(item.source):
                self._skipped.add(found[1])
        elif isinstance(item, Note):
            return
        elif part := part_of(item):
            self._last_parts[part.file_id] = max(part.number, self._last_parts.get(part.file_id, 0))
            self._sources[part.file_id] = part.file_source
        elif _is_whole(item) and any(parts_from(item.document_id, 1, find)):
            self._last_parts.setdefault(item.document_id, 0)
            self._sources.setdefault(item.document_id, item.source)

    def rest(self, find: Lookup) -> Iterator[str]:
        """After the last document: what is left of files that were read to their end."""
        for file_id, last in self._last_parts.items():
            if self._sources[file_id] in self._skipped:
                continue  # what could not be read may be what is stored
            if last and (found := find(file_id)) is not None and _is_whole(found):
                yield file_id
            yield from parts_from(file_id, last + 1, find)


def _is_whole(document: Document) -> bool:
    return not document.metadata and _is_file(document.document_id, document.source)


def _is_file(document_id: str, source: str) -> bool:
    """A file's id is the end of its path."""
    return source == document_id or source.endswith(f"/{document_id}")
