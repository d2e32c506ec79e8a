"""Questions for paragraphs that do not answer them, pure: question vectors in, numbers out.

Questions are numbered paragraph by paragraph. What is chosen for a paragraph follows from the vectors and
(seed, epoch, paragraph) alone: not from the batch that it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.vectors import Floats

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The questions most similar to each question, by inner product; -1 where there is none."""

    paragraphs: Numbers  # [question] the paragraph that it is asked of, ascending
    elsewhere: Numbers  # [question] the most similar question of another article
    nearby: Numbers  # [question] the most similar one of another paragraph of the same article
    closest: Numbers  # [question] the more similar of the two

    def pick(self, paragraph: int, seed: int, epoch: int) -> int:
        """A question of the paragraph, another one in each epoch; the paragraph must have one."""
        low, high = np.searchsorted(self.paragraphs, [paragraph, paragraph + 1])
        return int(np.random.default_rng([seed, epoch, paragraph]).integers(low, high))


@dataclass(frozen=True, slots=True)
class Intruders:
    """For a batch of paragraphs: (row, question that has no answer there), and which paragraphs to append."""

    pairs: tuple[tuple[int, int], ...]
    strangers: tuple[int, ...] = ()  # their rows follow those of the batch


def find_neighbours(vectors: Floats, paragraphs: Numbers, articles: Numbers, block: int = 512) -> Neighbours:
    """Search every question ``[question, dim]`` against all others, `block` rows of scores at a time."""
    count = len(vectors)
    elsewhere, nearby = np.full(count, -1), np.full(count, -1)
    elsewhere_score, nearby_score = (np.full(count, -np.inf, np.float32) for _ in range(2))
    for low in range(0, count, block):
        rows = np.arange(low, min(low + block, count))
        scores = vectors[rows] @ vectors.T
        scores[articles[rows, None] == articles] = -np.inf
        elsewhere[rows], elsewhere_score[rows] = _best(scores)
    for members in _groups(articles):
        scores = vectors[members] @ vectors[members].T
        scores[paragraphs[members, None] == paragraphs[members]] = -np.inf
        best, nearby_score[members] = _best(scores)
        nearby[members] = np.where(best >= 0, members[best], -1)
    closest = np.where(nearby_score >= elsewhere_score, nearby, elsewhere)
    return Neighbours(paragraphs, elsewhere, nearby, closest)


def similar_paragraphs(neighbours: Neighbours) -> Numbers:
    """For each question the paragraph of the most similar question of any other paragraph; -1 for none."""
    closest = neighbours.closest
    return np.where(closest >= 0, neighbours.paragraphs[closest], -1)


def paper_intruders(neighbours: Neighbours, batch: Sequence[int], seed: int, epoch: int) -> Intruders:
    """The paper's two negatives of each paragraph (section 5.1, "No-Answer Bias").

    One question of another article and one of the same article but another paragraph, each the most similar
    to a randomly picked question of the paragraph.
    """
    picked = [neighbours.pick(paragraph, seed, epoch) for paragraph in batch]
    pairs = (
        (row, int(side[question]))
        for row, question in enumerate(picked)
        for side in (neighbours.elsewhere, neighbours.nearby)
    )
    return Intruders(tuple(pair for pair in pairs if pair[1] >= 0))


def similar_question_intruders(
    neighbours: Neighbours, batch: Sequence[int], seed: int, epoch: int
) -> Intruders:
    """The original code's variant: a question meets the paragraph of the question most similar to it.

    The original reads one such paragraph for every question. Here a paragraph is read once for all its
    questions, so one of them is picked at random and brings its paragraph into the batch.
    """
    rows = {paragraph: row for row, paragraph in enumerate(batch)}
    pairs = []
    for paragraph in batch:
        question = neighbours.pick(paragraph, seed, epoch)
        closest = int(neighbours.closest[question])
        if closest >= 0:
            pairs.append((rows.setdefault(int(neighbours.paragraphs[closest]), len(rows)), question))
    return Intruders(tuple(pairs), tuple(rows)[len(batch) :])


INTRUDERS: dict[str, Callable[[Neighbours, Sequence[int], int, int], Intruders]] = {
    "paper": paper_intruders,
    "similar_question": similar_question_intruders,
}


def _best(scores: Floats) -> tuple[Numbers, Floats]:
    """Place and value of each row's maximum; -1 where the row has nothing but minus infinity."""
    place = scores.argmax(axis=1)
    value = scores[np.arange(len(scores)), place]
    return np.where(value > -np.inf, place, -1), value


def _groups(keys: Numbers) -> list[Numbers]:
    """The places of each value, ascending."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(keys) else []
