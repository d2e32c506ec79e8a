"""What reading a corpus yields besides documents: what was skipped, and what was ordinarily left out.

Every item that a reader meets becomes exactly one of the three, so that nothing is dropped silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from denspi.types import Document

DEEPEST_METADATA = 64
"""Levels of dicts and lists that an index stores, the metadata themselves being the first."""


def one_line(text: str) -> str:
    """`text` with everything that would break a line or move a terminal's cursor written as an escape."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def shortened(text: str, longest: int = 200) -> str:
    """`text` for a message: an id or a name may be of any length, a line that people read may not."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def is_shallow(value: object, levels: int = DEEPEST_METADATA) -> bool:
    """Whether dicts and lists are nested no deeper: whoever reads them may be deep in a stack himself."""
    within: list[Any] = [value]
    for _ in range(levels):
        inner = [each.values() if isinstance(each, dict) else each for each in within]
        within = [each for one in inner for each in one if isinstance(each, dict | list | tuple)]
        if not within:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that could not be used; `source` is a path, where sensible with a place: ``notes.jsonl:12``."""

    source: str
    reason: str

    def __str__(self) -> str:
        return one_line(f"{self.source}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Note:
    """Something ordinary that was left out on purpose (redirects, hidden files); strict reading goes on."""

    source: str
    text: str

    def __str__(self) -> str:
        return one_line(f"{self.source}: {self.text}")


Item = Document | Skipped | Note
