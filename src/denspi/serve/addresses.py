"""Which part of the service an address belongs to, by its first words alone."""

from __future__ import annotations

_PARTS = (("/api/answers", "answers"), ("/api/documents", "documents"))
_WATCHING = ("/healthz", "/readyz", "/metrics", "/openapi.json")


def part_of(path: str) -> str:
    """``answers``, ``documents``, ``watch`` or ``page``: what it is counted and limited as."""
    if path in _WATCHING:
        return "watch"
    return next((name for start, name in _PARTS if path.startswith(start)), "page")
