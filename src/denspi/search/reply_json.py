"""Replies and documents as JSON: the same for `denspi ask --json`, the service and assistants. Pure.

Records become objects with the names of their fields. The text is always valid JSON and valid UTF-8, whatever
the documents hold. Loads nothing heavy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from denspi.search.searcher import Reply
    from denspi.types import Document


def reply_json(reply: Reply, **about: str) -> str:
    """Everything that a reply holds, after what is said about it; `latency_ms` is the sum of the stages."""
    fields: dict[str, Any] = {
        **about,
        "read_as": reply.read_as,
        "answers": reply.answers,
        "strategy": reply.strategy,
        "generation": reply.generation,
        "documents_visited": reply.documents_visited,
        "latency_ms": round(sum(reply.stages_ms.values()), 3),
        "stages_ms": {name: round(ms, 3) for name, ms in reply.stages_ms.items()},
        "certificate": _certificate(reply),
    }
    return to_json(fields)


def document_json(document: Document) -> str:
    """A document as the service and JSON Lines name its fields."""
    return to_json(
        {
            "id": document.document_id,
            "title": document.title,
            "text": document.text,
            "paragraphs": document.paragraphs,
            "source": document.source,
            "metadata": document.metadata,
        }
    )


def to_json(fields: Mapping[str, Any]) -> str:
    """One line of JSON; infinities are a bug, not JSON."""
    return encodable(json.dumps(fields, ensure_ascii=False, allow_nan=False, default=_fields_of))


def encodable(text: str) -> str:
    """Halves of surrogate pairs, which no output takes, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _certificate(reply: Reply) -> dict[str, float | None] | None:
    """JSON knows no infinity, which is the bound of what is left where nothing is."""
    if reply.certificate is None:
        return None
    fields = _fields_of(reply.certificate)
    return {name: value if math.isfinite(value) else None for name, value in fields.items()}


def _fields_of(record: Any) -> dict[str, Any]:
    """Of a dataclass with slots: `dataclasses.asdict` copies all values and takes ten times as long."""
    try:
        names = record.__slots__
    except AttributeError:
        raise TypeError(f"{type(record).__name__} is no record; make it one before it is written") from None
    return {name: getattr(record, name) for name in names}
