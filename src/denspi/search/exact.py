"""The best phrases of the whole index, proven: the true argmax of Equation 2.

Every start row is scored once. A paragraph's best start, the length of its longest end row and its greatest
product of keys, plus its sparse score, bound all its phrases. Those with the highest bounds are read first;
of the others that could still hold one of the best phrases, few as a rule, the end rows are scored too, for a
closer bound, and they are read from the highest down until no bound reaches the last phrase that is wanted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from denspi.search.asked import AskedQuestion
from denspi.search.candidates import (
    Candidates,
    Certificate,
    Limits,
    Numbers,
    Pool,
    Stopwatch,
    concatenated,
)
from denspi.search.kernels import NO_ROW
from denspi.search.view import SearchView, SegmentView

_FIRST_PARAGRAPHS = 32
_MOST_PARAGRAPHS = 1024
Doubles = NDArray[np.float64]


def exact(view: SearchView, question: AskedQuestion, limits: Limits) -> Candidates:
    """The best phrases, with a certificate."""
    watch = Stopwatch()
    with watch.stage("scan"):
        for segment in view.segments:
            question.maxima(view, segment)
    with watch.stage("sparse"):
        for segment in view.segments:
            question.sparse_parts(segment)
    with watch.stage("bounds"):
        bounds, segments, paragraphs = concatenated(
            [bounds_of(view, question, segment) for segment in view.segments]
        )
        findable = int((bounds > -np.inf).sum())
    with watch.stage("read"):
        pool, batch = Pool(view, question, limits.phrases), _FIRST_PARAGRAPHS

        def read(places: Numbers) -> None:
            for number, own in _by_segment(places, segments):
                pool.read_paragraphs(number, paragraphs[own])
            bounds[places] = -np.inf

        read(_highest(bounds, batch, pool.reached))
        for number, own in _by_segment(_highest(bounds, len(bounds), pool.reached), segments):
            bounds[own] = closer_bounds(view, question, view.segments[number], paragraphs[own])
        while (left := float(bounds.max(initial=-np.inf))) >= pool.reached and left > -np.inf:
            read(_highest(bounds, batch, pool.reached))
            batch = min(2 * batch, _MOST_PARAGRAPHS)
        found = pool.best()
    lowest = float(found.scores[-1]) if len(found) else -np.inf
    proof = Certificate(len(found), lowest, left, pool.paragraphs_read, findable)
    return replace(found, stages_ms=watch.stages_ms, certificate=proof)


def bounds_of(view: SearchView, question: AskedQuestion, segment: SegmentView) -> Doubles:
    """``[paragraph]`` a score that no phrase exceeds; minus infinity where there is none to be found."""
    fixed = question.fixed
    starts = question.maxima(view, segment)
    ends = (fixed.end_length * view.end_lengths(segment) + fixed.end_slack) + fixed.end_shift
    bounds = (fixed.step * starts + fixed.start_shift) + ends
    bounds += _coherency(view, question, segment)
    bounds += question.sparse_parts(segment)
    bounds[(starts == NO_ROW) | ~view.key_bounds(segment).has_phrase] = -np.inf
    return bounds


def closer_bounds(
    view: SearchView, question: AskedQuestion, segment: SegmentView, paragraphs: Numbers
) -> Doubles:
    """The same of some paragraphs, from their true best ends."""
    fixed = question.fixed
    known = question.known_end_maxima(segment)
    ends = _end_maxima(view, question, segment, paragraphs) if known is None else known[paragraphs]
    starts = question.maxima(view, segment)[paragraphs]
    bounds = (fixed.step * starts + fixed.start_shift) + (fixed.step * ends + fixed.end_shift)
    bounds += _coherency(view, question, segment)[paragraphs]
    return np.asarray(bounds + question.sparse_parts(segment, paragraphs))


def _end_maxima(
    view: SearchView, question: AskedQuestion, segment: SegmentView, paragraphs: Numbers
) -> NDArray[np.int32]:
    rows, is_wanted = segment.reader.ends, np.zeros(segment.reader.counts.paragraphs, np.bool_)
    is_wanted[paragraphs] = True
    codes = rows.codes.within(rows.offsets[paragraphs], rows.offsets[paragraphs + 1])
    weights = question.fixed.end_weights[None]
    found: NDArray[np.int32] = view.kernels.maxima(codes, rows.offsets, weights, is_wanted)[0, paragraphs]
    return found


def _coherency(view: SearchView, question: AskedQuestion, segment: SegmentView) -> Doubles:
    unit, keys = question.fixed.coherency_unit, view.key_bounds(segment)
    return unit * (keys.greatest if unit >= 0 else keys.least).astype(np.float64)


def _highest(bounds: Doubles, count: int, least: float) -> Numbers:
    """Places of the highest bounds that are at least `least`, ascending; the first so many."""
    places = np.flatnonzero(bounds >= least) if least > -np.inf else np.flatnonzero(bounds > -np.inf)
    if len(places) > count:
        places = np.sort(places[np.argpartition(-bounds[places], count)[:count]])
    return places.astype(np.int64)


def _by_segment(places: Numbers, segments: Numbers) -> list[tuple[int, Numbers]]:
    """The places of each segment that has any."""
    return [(each, places[segments[places] == each]) for each in np.unique(segments[places]).tolist()]
