"""The constants of measured.json as records: what English articles cost beside their vectors, at many sizes.

experiments/tables/plan_constants.py measures them and writes the file; it holds that command, the machine and
the collection. Words are runs between white space.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What a model's filter kept of the collection and of the sample corpus, in rows a word."""

    name: str
    fingerprint: str
    file_bytes: int  # of its graph, which every process holds
    starts_per_word: float
    ends_per_word: float
    sample_starts_per_word: float
    sample_ends_per_word: float


@dataclass(frozen=True, slots=True)
class TextPoint:
    """An index of so many words without any row: bytes by component, named as `denspi info` does."""

    words: int
    bytes_by_component: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that no file stands behind."""

    worker_bytes: int  # a process that encodes
    parent_bytes: int  # the one that writes
    segment_bytes: int  # what it collects beside that until a segment is full
    search_bytes: int  # a process that has answered questions, whatever the size
    search_bytes_per_word: float  # and what it holds for each word beside


@dataclass(frozen=True, slots=True)
class Pace:
    """Time beside encoding."""

    startup_seconds: float  # until every process encodes, and what else a build of any size takes
    share_of_encoding_rate: float  # that a whole build reaches: the rest goes into writing
    collection_to_sample_rate: float  # articles are encoded so many times as fast as the sample corpus
    list_seconds_per_start: float  # of one core, for the vector index


@dataclass(frozen=True, slots=True)
class Measured:
    """All of them."""

    command: str
    collection: str
    signs_per_word: float  # words and signs to a word
    model: KeptRows
    points: tuple[TextPoint, ...]  # ascending
    memory: Memory
    pace: Pace


def measured_constants() -> Measured:
    """Those that come with the package."""
    return parse_measured(json.loads(files(__package__).joinpath("measured.json").read_text("utf-8")))


def parse_measured(content: Mapping[str, Any]) -> Measured:
    """From the file's object; it may hold more, for people."""
    points = [TextPoint(int(each["words"]), dict(each["bytes_by_component"])) for each in content["points"]]
    return Measured(
        command=content["command"],
        collection=content["collection"],
        signs_per_word=content["signs_per_word"],
        model=KeptRows(**_own_fields(KeptRows, content["model"])),
        points=tuple(sorted(points, key=lambda point: point.words)),
        memory=Memory(**_own_fields(Memory, content["memory"])),
        pace=Pace(**_own_fields(Pace, content["pace"])),
    )


def _own_fields(record: type, content: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: content[each.name] for each in fields(record)}
