"""JSON that may come from a stranger: canonical bytes out, fields of a known type and range in.

Every complaint names the file and the field. Never believes a number beyond the limit it was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from denspi.errors import IndexDamagedError


def canonical(value: object) -> bytes:
    """The one spelling of a JSON value: sorted keys, no spaces, ASCII."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def parse_json(content: bytes, where: str) -> object:
    """The value of `content`, which must be the canonical spelling: so no byte of it is without meaning."""
    try:
        value: object = json.loads(content)
        spelled = canonical(value)
    except (ValueError, RecursionError) as error:
        finding = str(error).splitlines()[0][:100]
        raise IndexDamagedError(f"{where}: not readable ({finding}); the index is damaged") from None
    if spelled != content:
        raise IndexDamagedError(f"{where}: not in canonical form; the index is damaged")
    return value


class Fields:
    """One JSON object; `where` is its place, for messages."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise IndexDamagedError(f"{where}: not a JSON object; the index is damaged")
        self._fields: dict[str, object] = value
        self.where = where

    def text(self, key: str, longest: int = 4096) -> str:
        """A string of at most so many characters."""
        value = self._fields.get(key)
        if not isinstance(value, str) or len(value) > longest:
            raise self.damaged(key, f"a text of at most {longest} characters")
        return value

    def count(self, key: str, limit: int = 1 << 40) -> int:
        """A whole number from 0 to `limit`."""
        value = self._fields.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
            raise self.damaged(key, f"a whole number from 0 to {limit}")
        return value

    def items(self, key: str) -> list[object]:
        """A list."""
        value = self._fields.get(key)
        if not isinstance(value, list):
            raise self.damaged(key, "a list")
        return value

    def each(self, key: str) -> Iterable[Fields]:
        """A list of objects."""
        for number, value in enumerate(self.items(key)):
            yield Fields(value, f"{self.where}, {key}[{number}]")

    def counts(self, key: str, limit: int = 1 << 40) -> tuple[int, ...]:
        """A list of whole numbers from 0 to `limit`."""
        values = self.items(key)
        if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= limit for n in values):
            raise self.damaged(key, f"whole numbers from 0 to {limit}")
        return tuple(n for n in values if isinstance(n, int))

    def inside(self, key: str) -> Fields:
        """An object."""
        return Fields(self._fields.get(key), f"{self.where}, {key}")

    def optional(self, key: str) -> Fields | None:
        """An object, or None where the value is null or absent."""
        return None if self._fields.get(key) is None else self.inside(key)

    def scalars(self, key: str) -> dict[str, str | int | float]:
        """An object of texts and numbers."""
        value = self._fields.get(key)
        if not isinstance(value, dict) or not all(
            isinstance(each, str | int | float) for each in value.values()
        ):
            raise self.damaged(key, "an object of texts and numbers")
        return dict(value)

    def damaged(self, key: str, expected: str) -> IndexDamagedError:
        """The error for a field that is not what it should be."""
        return IndexDamagedError(f"{self.where}: {key} is not {expected}; the index is damaged")
