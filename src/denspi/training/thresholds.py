"""How much of the filter's rows a recall of answers costs, and the thresholds that keep the fewest. Pure.

An answer survives where at least one of its occurrences has both borders kept. Start and end are chosen
together: of all pairs of thresholds under which enough answers survive, the one that keeps the fewest rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.dense.filter import FilterThresholds
from denspi.training.examples import Example
from denspi.vectors import Floats, ParagraphVectors

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BorderLogits:
    """The logits of all words of some paragraphs that can start (end) a phrase, and of their answers."""

    starts: Floats  # [start]
    ends: Floats  # [end]
    is_start: Mask  # [start] an answer starts here
    is_end: Mask  # [end]
    answer: NDArray[np.intp]  # [occurrence] which answer it is of, 0, 1, 2, ... in order
    answer_starts: Floats  # [occurrence]
    answer_ends: Floats  # [occurrence]

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return int(self.answer[-1]) + 1 if len(self.answer) else 0


@dataclass(frozen=True, slots=True)
class Survival:
    """What a pair of thresholds keeps, as shares of one."""

    recall: float  # answers with both borders kept
    kept_starts: float
    kept_ends: float


def border_labels(example: Example, words: int) -> tuple[Mask, Mask]:
    """Where any answer of any question starts, and ends, among the first `words` words."""
    is_start, is_end = np.zeros(words, np.bool_), np.zeros(words, np.bool_)
    for question in example.questions:
        for first, more in question.gold:
            is_start[first] = is_end[first + more] = True
    return is_start, is_end


def border_logits(examples: Sequence[Example], vectors: Iterable[ParagraphVectors]) -> BorderLogits:
    """Collect logits from paragraphs, as far as training reads them; beyond, answers were not looked for."""
    starts, ends, is_start, is_end, answer, answer_starts, answer_ends = ([] for _ in range(7))
    answers = 0
    for example, paragraph in zip(examples, vectors, strict=True):
        words = len(example.tokens.word_starts)
        labels = border_labels(example, words)
        can_start, can_end = paragraph.can_start[:words], paragraph.can_end[:words]
        starts.append(paragraph.start_logits[:words][can_start])
        ends.append(paragraph.end_logits[:words][can_end])
        is_start.append(labels[0][can_start])
        is_end.append(labels[1][can_end])
        for question in example.questions:
            first = [first for first, _ in question.gold]
            last = [first + more for first, more in question.gold]
            answer += [answers] * len(first)
            answer_starts.append(paragraph.start_logits[first])
            answer_ends.append(paragraph.end_logits[last])
            answers += bool(first)
    return BorderLogits(
        np.concatenate(starts),
        np.concatenate(ends),
        np.concatenate(is_start),
        np.concatenate(is_end),
        np.array(answer, np.intp),
        np.concatenate(answer_starts),
        np.concatenate(answer_ends),
    )


def choose_thresholds(logits: BorderLogits, recall: float) -> FilterThresholds:
    """The pair that keeps the fewest rows while at least a share `recall` of the answers survives.

    Exact: only logits of answers are worth trying as a start threshold, as long as it alone loses no more
    answers than may be lost, and each leaves one best end threshold. Both then move halfway down to the next
    logit below: that keeps the same rows, and spares the weakest answer from what runtimes differ by.
    """
    if not 0 < recall <= 1:
        raise ValueError("recall lies in (0, 1]")
    if not logits.answers:
        raise ValueError("no answer to choose thresholds by")
    may_lose = logits.answers - math.ceil(recall * logits.answers - 1e-9)
    starts, ends = np.sort(logits.starts), np.sort(logits.ends)
    borders = np.flatnonzero(np.diff(logits.answer, prepend=-1))  # the first occurrence of each answer
    best_starts = np.maximum.reduceat(logits.answer_starts, borders)
    highest = np.partition(best_starts, may_lose)[may_lose]
    chosen, fewest = None, math.inf
    for start in np.unique(logits.answer_starts[logits.answer_starts <= highest]):
        # The best end that each answer still has; the answers with the worst ones are those that are lost.
        usable = np.where(logits.answer_starts >= start, logits.answer_ends, -np.inf)
        end = np.partition(np.maximum.reduceat(usable, borders), may_lose)[may_lose]
        kept = (len(starts) - np.searchsorted(starts, start)) + (len(ends) - np.searchsorted(ends, end))
        if kept < fewest:
            chosen, fewest = (start, end), kept
    assert chosen is not None
    return FilterThresholds(_halfway_down(starts, chosen[0]), _halfway_down(ends, chosen[1]))


def survival(logits: BorderLogits, thresholds: FilterThresholds) -> Survival:
    """What survives under `thresholds`."""
    start, end = np.float32(thresholds.start), np.float32(thresholds.end)
    survives = (logits.answer_starts >= start) & (logits.answer_ends >= end)
    return Survival(
        len(np.unique(logits.answer[survives])) / max(1, logits.answers),
        float(np.mean(logits.starts >= start)),
        float(np.mean(logits.ends >= end)),
    )


def _halfway_down(ordered: Floats, threshold: np.float32) -> float:
    below = int(np.searchsorted(ordered, threshold)) - 1
    halfway = np.float32((ordered[max(0, below)] + threshold) / 2)
    return float(halfway if below >= 0 and halfway > ordered[below] else threshold)


def area_under_curve(logits: Floats, is_right: Mask) -> float:
    """The chance that a random right place has a higher logit than a random other one (ties count half)."""
    right, other = logits[is_right], np.sort(logits[~is_right])
    if not len(right) or not len(other):
        return math.nan
    below = np.searchsorted(other, right, "left") + np.searchsorted(other, right, "right")
    return float(below.mean() / 2 / len(other))
