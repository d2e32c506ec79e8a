"""What an encoder hands to everyone else: numpy rows per word of a paragraph, and per question.

A phrase is a pair of words (first, last) of one paragraph, at most `MAX_PHRASE_WORDS` long. Its vector is
never materialised: it is the start row of its first word, the end row of its last, the product of their keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MAX_PHRASE_WORDS = 20
"""The paper's J: longer spans are not phrases."""


@dataclass(frozen=True, slots=True)
class ParagraphVectors:
    """One row per word of a paragraph (see `denspi.text.tokens` for what a word is).

    A word whose border is hidden inside a word piece cannot start (or end) a phrase; its row is zero.
    """

    word_starts: NDArray[np.int32]  # [word] first character
    word_ends: NDArray[np.int32]  # [word] one past the last character
    starts: Floats  # [word, dim] the paper's a
    ends: Floats  # [word, dim] the paper's b
    start_keys: Floats  # [word, coherency_dim] the paper's h3
    end_keys: Floats  # [word, coherency_dim] the paper's h4
    can_start: NDArray[np.bool_]  # [word]
    can_end: NDArray[np.bool_]  # [word]
    start_logits: Floats  # [word] how likely an answer starts here, whatever the question
    end_logits: Floats  # [word]

    def __len__(self) -> int:
        return len(self.word_starts)


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """One row per question."""

    starts: Floats  # [question, dim] the paper's a'
    ends: Floats  # [question, dim] the paper's b'
    coherency: Floats  # [question] the paper's c'; all one where coherency does not depend on the question

    def __len__(self) -> int:
        return len(self.starts)
