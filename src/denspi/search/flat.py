"""Exact search over paragraphs held in memory, in floats: no index, no filter, no approximation.

For calibration and as the oracle of everything faster. Each paragraph offers its two best phrases that do not
overlap; the sparse score is the same for all phrases of a paragraph, so it can be added afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.search.scoring import phrase_scores
from denspi.types import Span
from denspi.vectors import Floats, ParagraphVectors, QuestionVectors

PER_PARAGRAPH = 2


@dataclass(frozen=True, slots=True)
class FlatCandidates:
    """The best phrases of every paragraph for every question; minus infinity where there is none left."""

    scores: Floats  # [question, paragraph, PER_PARAGRAPH] dense scores
    starts: NDArray[np.int32]  # the same shape: first character in the paragraph
    ends: NDArray[np.int32]  # one past the last

    def span(self, question: int, paragraph: int, nth: int) -> Span:
        """Where a candidate stands in its paragraph."""
        place = question, paragraph, nth
        return Span(int(self.starts[place]), int(self.ends[place]))


def flat_candidates(questions: QuestionVectors, paragraphs: Iterable[ParagraphVectors]) -> FlatCandidates:
    """Put every question to every paragraph."""
    found = [_best_two(questions, paragraph) for paragraph in paragraphs]
    shape = (len(questions), len(found), PER_PARAGRAPH)
    scores, starts, ends = np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(shape, np.int32)
    for place, parts in enumerate(found):
        scores[:, place], starts[:, place], ends[:, place] = parts
    return FlatCandidates(scores, starts, ends)


def _best_two(
    questions: QuestionVectors, paragraph: ParagraphVectors
) -> tuple[Floats, NDArray[np.int32], NDArray[np.int32]]:
    rows = np.arange(len(questions))
    scores = np.full((len(rows), PER_PARAGRAPH), -np.inf, np.float32)
    starts, ends = np.zeros(scores.shape, np.int32), np.zeros(scores.shape, np.int32)
    if len(paragraph):
        band = phrase_scores(questions, paragraph)
        last = band.argmax(2)  # the best end of each start, as a length
        best = np.take_along_axis(band, last[..., None], 2)[..., 0]  # [question, word]
        last += np.arange(len(paragraph))
        for nth in range(PER_PARAGRAPH):
            first = best.argmax(1)
            scores[:, nth] = best[rows, first]
            final = last[rows, first]
            starts[:, nth], ends[:, nth] = paragraph.word_starts[first], paragraph.word_ends[final]
            overlaps = (np.arange(len(paragraph)) <= final[:, None]) & (last >= first[:, None])
            best[overlaps] = -np.inf
    return scores, starts, ends


def best_answers(
    candidates: FlatCandidates, sparse: NDArray[np.floating], sparse_weight: float, k: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The k best candidates of each question as flat numbers ``paragraph * PER_PARAGRAPH + nth``, and scores.

    `sparse` is ``[question, paragraph]``: the sum of the paragraph's and its document's sparse score.
    """
    total = candidates.scores.astype(np.float64) + sparse_weight * sparse[..., None]
    flat = total.reshape(len(total), -1)
    k = min(k, flat.shape[1])
    order = np.argsort(-flat, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(flat, order, 1)


def margins(answers: Sequence[Sequence[str]], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each question's best answer is ahead of the next one that reads differently.

    `answers` are the normalised texts of the k best candidates, best first. Where all read the same, the last
    of them stands for what is unknown.
    """
    ahead = np.zeros(len(answers))
    for row, texts in enumerate(answers):
        rival = next((n for n, text in enumerate(texts) if text != texts[0]), len(texts) - 1)
        ahead[row] = scores[row, 0] - scores[row, rival]
    return ahead
