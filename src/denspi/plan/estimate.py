"""The arithmetic of a plan: rows are counted, texts and postings follow measured curves. Pure.

A curve is a straight line between measured sizes in logarithms, and goes on beyond the last with the slope it
has there: a vocabulary that grows as a power of the text (Heaps' law), not in proportion to it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from denspi.build.index import SEGMENT_WORDS
from denspi.index.lists import FEWEST_STARTS, list_count
from denspi.index.merge import MOST_AT_ONCE
from denspi.index.merge_policy import MergePolicy, next_group
from denspi.index.rows import CodeLayout
from denspi.plan.measured import Measured
from denspi.sparse.ngrams import BUCKET_BITS

_PLACE_BYTES = 4  # of a row: its word and its character in two bytes each
_LIST_ENTRY_BYTES = 4
_CHECKSUM_SHARE = 8 / 32768  # eight digits for each block
_FULL_TABLE_BYTES = 2 * (1 << BUCKET_BITS) + 12 * (1 << BUCKET_BITS - 8)  # every n-gram id occurs
_CHECKSUMS, _FREQUENCIES = "manifest and checksums", "n-gram frequencies"


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be indexed, with what."""

    words: int  # runs between white space
    layout: CodeLayout  # of the stored rows
    starts_per_word: float
    ends_per_word: float
    words_per_second: float  # encoded on all processes together
    processes: int
    model_bytes: int  # of the graph


@dataclass(frozen=True, slots=True)
class Plan:
    """What it will take."""

    words: int
    segments: int
    bytes_by_component: Mapping[str, int]  # largest first
    building_disk_bytes: int  # at most, while segments are merged
    build_memory_bytes: int
    search_memory_bytes: int  # beside mapped files, which the system keeps in memory as far as there is room
    build_seconds: float

    @property
    def disk_bytes(self) -> int:
        """Of the finished index."""
        return sum(self.bytes_by_component.values())


def estimate(load: Load, measured: Measured, policy: MergePolicy | None = None) -> Plan:
    """The cost of a first build; one that grows has more segments until they are merged."""
    policy = policy or MergePolicy()
    largest_words = policy.largest_words / measured.signs_per_word
    segments = max(1, math.ceil(load.words / largest_words))
    sizes = _row_bytes(load, segments)
    for name in measured.points[0].bytes_by_component:
        curve = [(point.words, point.bytes_by_component[name]) for point in measured.points]
        if name == _FREQUENCIES:  # one table for all segments
            sizes[name] = min(along(curve, load.words), _FULL_TABLE_BYTES)
        else:
            sizes[name] = segments * along(curve, load.words / segments)
    sizes[_CHECKSUMS] = sizes.get(_CHECKSUMS, 0.0) + _CHECKSUM_SHARE * sum(sizes.values())
    in_all = sum(sizes.values())
    by_size = sorted(sizes.items(), key=lambda item: -item[1])
    starts = load.words * load.starts_per_word
    pace, memory = measured.pace, measured.memory
    worker_bytes = max(0, memory.worker_bytes + load.model_bytes - measured.model.file_bytes)
    return Plan(
        words=load.words,
        segments=segments,
        bytes_by_component={name: round(size) for name, size in by_size if round(size)},
        building_disk_bytes=round(_while_building(in_all, load.words * measured.signs_per_word, policy)),
        build_memory_bytes=round(
            memory.parent_bytes
            + load.processes * worker_bytes
            + memory.segment_bytes * min(1.0, load.words * measured.signs_per_word / SEGMENT_WORDS)
        ),
        search_memory_bytes=round(
            memory.search_bytes
            + load.model_bytes
            - measured.model.file_bytes
            + memory.search_bytes_per_word * load.words
        ),
        build_seconds=pace.startup_seconds
        + load.words / (load.words_per_second * pace.share_of_encoding_rate)
        + (starts * pace.list_seconds_per_start if _has_lists(starts / segments) else 0.0),
    )


def along(curve: Sequence[tuple[int, float]], words: float) -> float:
    """The curve at so many words; `curve` has at least two points, ascending."""
    if words <= 0:
        return 0.0
    right = min(max(1, bisect_left([each for each, _ in curve], words)), len(curve) - 1)
    (x0, y0), (x1, y1) = curve[right - 1], curve[right]
    if y0 <= 0 or y1 <= 0:
        return max(0.0, y0 + (y1 - y0) * (words - x0) / (x1 - x0))
    slope = math.log(y1 / y0) / math.log(x1 / x0)
    return float(y0 * (words / x0) ** slope)


def _while_building(in_all: float, signs: float, policy: MergePolicy) -> float:
    """What is flushed and what it becomes stay until the commit; what leads there, until it is merged."""
    count = math.ceil(min(signs, policy.largest_words) / SEGMENT_WORDS)
    if count <= 1:
        return in_all
    return in_all * (2 + _on_the_way(count) / max(count, signs / SEGMENT_WORDS))


def _on_the_way(count: int) -> int:
    """Flushed segments of a run that are on the disk once more when the run is merged at last."""
    sizes = [1] * count
    while len(sizes) > MOST_AT_ONCE:
        group = next_group(sizes, MOST_AT_ONCE)
        sizes[group.start : group.stop] = [sum(sizes[group.start : group.stop])]
    return sum(each for each in sizes if each > 1) if count > MOST_AT_ONCE else 0


def _row_bytes(load: Load, segments: int) -> dict[str, float]:
    starts, ends = load.words * load.starts_per_word, load.words * load.ends_per_word
    lists = list_count(round(starts / segments)) * segments if _has_lists(starts / segments) else 0
    sizes = {
        "start vectors": starts * load.layout.vector_bytes,
        "end vectors": ends * load.layout.vector_bytes,
        "coherency keys": (starts + ends) * load.layout.key_bytes,
        "places of rows": (starts + ends) * _PLACE_BYTES,
    }
    if lists:
        entry = load.layout.vector_bytes + _LIST_ENTRY_BYTES
        sizes["vector index"] = starts * _LIST_ENTRY_BYTES + lists * entry
    return sizes


def _has_lists(starts: float) -> bool:
    return starts >= FEWEST_STARTS
