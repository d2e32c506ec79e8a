"""Long text files are indexed in parts, ``big.txt#1`` and so on: which of them an update leaves behind. Pure.

A part is told from an ordinary id with a number sign by the `start_char` in its metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from denspi.types import Document

Lookup = Callable[[str], Document | None]


def part_number(document: Document) -> tuple[str, int] | None:
    """The file's own id and the number of its part; None for a document that is no part."""
    base, sign, number = document.document_id.rpartition("#")
    if not sign or not number.isdecimal() or "start_char" not in document.metadata:
        return None
    return base, int(number)


def parts_from(base: str, first: int, find: Lookup) -> Iterator[str]:
    """The ids of the stored parts of a file, from number `first` on."""
    for number in count(first):
        found = find(f"{base}#{number}")
        if found is None or part_number(found) is None:
            return
        yield found.document_id


class Outdated:
    """Follows the documents of an update, and knows which stored ones their files no longer have."""

    def __init__(self) -> None:
        self._last_parts: dict[str, int] = {}

    def see(self, document: Document, find: Lookup) -> Iterator[str]:
        """What this document makes outdated at once; parts that follow are for `rest`."""
        found = part_number(document)
        if found is None:
            yield from parts_from(document.document_id, 1, find)
            return
        base, number = found
        if base not in self._last_parts and find(base) is not None:
            yield base
        self._last_parts[base] = max(number, self._last_parts.get(base, 0))

    def rest(self, find: Lookup) -> Iterator[str]:
        """After the last document: parts behind the last one of their file."""
        for base, number in self._last_parts.items():
            yield from parts_from(base, number + 1, find)
