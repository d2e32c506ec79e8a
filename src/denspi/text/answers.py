"""SQuAD's official answer normalisation, exact match and F1, for one prediction against its references.

Pure functions; the definitions are those of the official evaluation (articles, punctuation and extra spaces
do not count, case does not count).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower case, ASCII punctuation and articles removed, white space folded, in that order."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, references: Iterable[str]) -> bool:
    """Whether the prediction equals any reference after normalisation."""
    normalized = normalize_answer(prediction)
    return any(normalize_answer(reference) == normalized for reference in references)


def f1(prediction: str, references: Iterable[str]) -> float:
    """The best word-overlap F1 over the references."""
    predicted = normalize_answer(prediction).split()
    return max((_overlap_f1(predicted, normalize_answer(r).split()) for r in references), default=0.0)


def _overlap_f1(predicted: list[str], reference: list[str]) -> float:
    shared = sum((Counter(predicted) & Counter(reference)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(reference)
    return 2 * precision * recall / (precision + recall)


def mean_scores(predictions: Iterable[str], references: Iterable[Iterable[str]]) -> tuple[float, float]:
    """Mean exact match and mean F1 over questions, in percent.

    A question without a reference (SQuAD v2) is left out: reading always gives a phrase.
    """
    given = ((prediction, tuple(each)) for prediction, each in zip(predictions, references, strict=True))
    pairs = [(prediction, answers) for prediction, answers in given if answers]
    em = sum(exact_match(prediction, answers) for prediction, answers in pairs)
    overlap = sum(f1(prediction, answers) for prediction, answers in pairs)
    return 100 * em / max(1, len(pairs)), 100 * overlap / max(1, len(pairs))
