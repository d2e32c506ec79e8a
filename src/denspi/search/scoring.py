"""The dense part of Equation 2, pure: start + end + coherency for every phrase of a paragraph.

Phrases are laid out as a band ``[word, length]``: entry (w, k) is the phrase from word w to word w + k. What
is not a phrase (a border that cannot be cut, an end beyond the paragraph) scores minus infinity.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from denspi.vectors import MAX_PHRASE_WORDS, Floats, ParagraphVectors, QuestionVectors


def phrase_scores(
    questions: QuestionVectors, paragraph: ParagraphVectors, max_words: int = MAX_PHRASE_WORDS
) -> Floats:
    """Scores ``[question, word, length]`` of all phrases of the paragraph."""
    start = questions.starts @ paragraph.starts.T  # [question, word]
    end = questions.ends @ paragraph.ends.T
    start[:, ~paragraph.can_start] = -np.inf
    end[:, ~paragraph.can_end] = -np.inf
    keys = _band(paragraph.end_keys.T, max_words, 0.0)  # [coherency_dim, word, length]
    coherency = np.einsum("wc,cwk->wk", paragraph.start_keys, keys)
    scores = start[:, :, None] + _band(end, max_words, -np.inf)
    scores += questions.coherency[:, None, None] * coherency
    return scores


def best_phrases(scores: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """First word, last word and score of each question's best phrase in ``[question, word, length]``."""
    flat = scores.reshape(len(scores), scores.shape[1] * scores.shape[2])  # there may be no question
    best = flat.argmax(axis=1)
    first, length = np.divmod(best, scores.shape[2])
    return first, first + length, flat[np.arange(len(flat)), best]


def _band(rows: Floats, width: int, fill: float) -> Floats:
    """``[n, word]`` -> ``[n, word, width]``: the value at each word and at the `width` - 1 words after it."""
    padded = np.pad(rows, ((0, 0), (0, width - 1)), constant_values=np.float32(fill))
    return sliding_window_view(padded, width, axis=1)
