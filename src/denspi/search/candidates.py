"""What a strategy hands back: phrases with their scores, what it cost to find them, and what is proven.

Owns how phrases are gathered from segments and ranked: by score, then by segment, paragraph and start, so
that equal scores have one order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError
from denspi.index.rows import rows_of
from denspi.search.asked import AskedQuestion
from denspi.search.kernels import Chosen
from denspi.search.view import SearchView

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the vector search goes."""

    starts: int  # that it proposes
    probes: int  # lists of close starts that it looks into, over all segments that have lists, at least
    lists_per_probe: int = 0  # and at least one in so many of them; 0: `probes` and no more

    def probes_of(self, lists: int) -> int:
        """How many of so many lists."""
        return max(self.probes, lists // self.lists_per_probe if self.lists_per_probe else 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a strategy goes. Where None stands, a strategy has a number of its own (see `REACHES`).

    The paper has 5 documents, 1,000 starts and 64 probes (its `nprobe`).
    """

    phrases: int = 50  # candidates to hand back, at most; `exact` proves all of them
    top_documents: int = 5  # documents that sparse_first reads whole
    top_paragraphs: int = 50  # paragraphs that hybrid reads, by the sum of paragraph and document score
    top_starts: int | None = None  # starts that the vector search proposes
    probes: int | None = None  # lists of close starts that it looks into, however many there are
    prove: bool = False  # let hybrid look whether its bounds prove what it found; `exact` always does

    def __post_init__(self) -> None:
        for name in ("phrases", "top_documents", "top_paragraphs", "top_starts", "probes"):
            number, least = getattr(self, name), int(name == "phrases")
            is_given = not (number is None and name in ("top_starts", "probes"))
            if is_given and not (isinstance(number, int) and least <= number <= MOST):
                raise InputError(f"limits: {name} is {number!r}, not a whole number from {least} to {MOST:,}")

    def reach(self, strategy: str) -> Reach:
        """Of the vector search of a strategy."""
        own = REACHES[strategy]
        if self.top_starts is not None:
            own = replace(own, starts=self.top_starts)
        return own if self.probes is None else Reach(own.starts, self.probes)


MOST = 1 << 24
REACHES = {
    "dense_first": Reach(starts=1000, probes=256),  # the paper's starts: they are all that it looks at
    # Chosen for the best answer alone, with the paragraphs beside it.
    "hybrid": Reach(starts=100, probes=64, lists_per_probe=256),
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """Why there is no better phrase than the candidates: whatever was not read is bounded below them."""

    proven_phrases: int  # the first so many candidates are the best of the whole index, in order
    lowest_score: float  # of these
    highest_bound: float  # of all paragraphs that were not read; below `lowest_score`
    paragraphs_read: int
    paragraphs: int  # that may be found


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Best first. Rows are numbered within their segment, segments within the view."""

    scores: NDArray[np.float64]  # [candidate]
    segments: Numbers  # [candidate]
    paragraphs: Numbers  # [candidate]
    starts: Numbers  # [candidate] start row
    ends: Numbers  # [candidate] end row
    documents_visited: int = 0  # the paper's #D/Q: documents with a phrase that was scored in full
    stages_ms: dict[str, float] = field(default_factory=dict)
    certificate: Certificate | None = None
    is_cut: bool = False  # there are as many as were asked for, so there may be more

    def __len__(self) -> int:
        return len(self.scores)


class Stopwatch:
    """Time of each stage, by name; a stage that comes again is added up."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.stages_ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside."""
        started = self._clock()
        yield
        self.stages_ms[name] = self.stages_ms.get(name, 0.0) + 1000 * (self._clock() - started)


class Pool:
    """Phrases read so far, over all segments; only the `count` best are sure to be among them."""

    def __init__(self, view: SearchView, question: AskedQuestion, count: int) -> None:
        self._view, self._question = view, question
        self._tops = np.full(max(1, count), -np.inf)  # ascending
        self._found: list[tuple[NDArray[np.float64], Numbers, Numbers, Numbers, Numbers]] = []
        self._documents: list[Numbers] = []
        self.paragraphs_read = 0

    def read_paragraphs(self, segment: int, paragraphs: Numbers) -> None:
        """Score every phrase of these paragraphs, which ascend."""
        offsets = self._view.segments[segment].reader.starts.offsets
        counts = offsets[paragraphs + 1] - offsets[paragraphs]
        firsts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._read(segment, paragraphs, rows_of(offsets, paragraphs), firsts)

    def read_starts(self, segment: int, rows: Numbers) -> None:
        """Score every phrase that begins with one of these start rows, which ascend."""
        of_rows = self._view.segments[segment].reader.starts.paragraphs_of(rows)
        paragraphs, firsts = np.unique(of_rows, return_index=True)
        self._read(segment, paragraphs, rows, np.append(firsts, len(rows)).astype(np.int64))

    def _read(self, segment: int, paragraphs: Numbers, rows: Numbers, firsts: Numbers) -> None:
        view, within = self._view, self._view.segments[segment]
        sparse = self._question.sparse_parts(within, paragraphs)
        starts, ends = within.sides_within(paragraphs)
        found = view.kernels.best_phrases(
            *(self._question.fixed, view.tables, starts, ends),
            *(Chosen(paragraphs, rows, firsts, sparse), view.max_words, self._tops),
        )
        at, nth = np.nonzero(found.scores > -np.inf)
        numbers = np.full(len(at), segment, np.int64)
        self._found.append(
            (found.scores[at, nth], numbers, paragraphs[at], found.starts[at, nth], found.ends[at, nth])
        )
        self._documents.append(segment << 40 | within.documents[paragraphs])
        self.paragraphs_read += len(paragraphs)

    @property
    def reached(self) -> float:
        """The score of the last of the best phrases; minus infinity while there are fewer."""
        return float(self._tops[0])

    def best(self) -> Candidates:
        """The best phrases so far."""
        scores = np.concatenate([np.zeros(0), *(each[0] for each in self._found)])
        places = [
            np.concatenate([np.zeros(0, np.int64), *(each[n] for each in self._found)]) for n in range(1, 5)
        ]
        segments, paragraphs, starts, ends = places
        order = np.lexsort((starts, paragraphs, segments, -scores))[: len(self._tops)]
        documents = np.unique(np.concatenate([np.zeros(0, np.int64), *self._documents]))
        return Candidates(
            *(scores[order], segments[order], paragraphs[order], starts[order], ends[order]),
            documents_visited=len(documents),
            is_cut=len(order) == len(self._tops),
        )


Strategy = Callable[[SearchView, AskedQuestion, Limits], Candidates]
"""A plan of search."""


def split_by_segment(segments: Numbers, numbers: Numbers) -> list[tuple[int, Numbers]]:
    """Numbers of each segment that has any, ascending."""
    return [(int(each), np.sort(numbers[segments == each])) for each in np.unique(segments).tolist()]


def concatenated(parts: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], Numbers, Numbers]:
    """Values of all segments, one after another, with the segment and the place of each."""
    lengths = [len(each) for each in parts]
    segments = np.repeat(np.arange(len(parts)), lengths)
    places = np.concatenate([np.zeros(0, np.int64), *(np.arange(length) for length in lengths)])
    return np.concatenate([np.zeros(0), *parts]), segments, places
