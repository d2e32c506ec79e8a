"""The open setting in small: every held-out question against every held-out paragraph, exactly.

Chooses the sparse weight by exact match and fits the confidence of the answers that it leads to. Uses
validation articles only; a flat float search over them is enough.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.corpus.paragraphs import join_paragraphs
from denspi.corpus.squad import SquadArticle
from denspi.dense.calibration import ModelCalibration
from denspi.dense.encoder import Encoder
from denspi.search.confidence import (
    ConfidenceBin,
    calibration_error,
    fit_confidence,
    reliability,
    risk_coverage,
)
from denspi.search.flat import PER_PARAGRAPH, FlatCandidates, best_answers, flat_candidates, margins
from denspi.sparse import SparseRetriever
from denspi.text.answers import f1, normalize_answer
from denspi.types import Document

_RIVALS = 10  # how many candidates are looked through for the next different answer
_FOLDS = 5
_COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True)
class WeightResult:
    """What one sparse weight leads to, in percent."""

    sparse_weight: float
    em: float
    f1: float
    paragraph: float  # how often the best phrase stands in the gold paragraph


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The choice, and what it was made from.

    `calibration_error` and `reliability` are of confidences fitted on other articles; `risk` is the share of
    wrong answers among the surest `coverage` of them.
    """

    chosen: ModelCalibration
    questions: int
    paragraphs: int
    weights: tuple[WeightResult, ...]
    calibration_error: float
    reliability: tuple[ConfidenceBin, ...]
    coverage: tuple[float, ...]
    risk: tuple[float, ...]


def calibrate(
    encoder: Encoder, articles: Sequence[SquadArticle], weights: Sequence[float]
) -> CalibrationResult:
    """Search the articles with all their questions, for each weight."""
    trial = _Trial(encoder, articles)
    outcomes = [trial.outcome(weight) for weight in weights]
    best = max(range(len(weights)), key=lambda n: outcomes[n].result.em)  # of equals, the lowest weight
    outcome = outcomes[best]
    fitted = fit_confidence(outcome.margin, outcome.is_right)
    unseen = np.zeros(len(outcome.margin))
    for fold in range(_FOLDS):
        test = trial.article % _FOLDS == fold
        if test.any() and not test.all():
            unseen[test] = fit_confidence(outcome.margin[~test], outcome.is_right[~test]).of(
                outcome.margin[test]
            )
    bins = reliability(unseen, outcome.is_right)
    risk = risk_coverage(unseen, outcome.is_right, np.array(_COVERAGES))
    return CalibrationResult(
        ModelCalibration(float(weights[best]), fitted.slope, fitted.intercept),
        len(trial.questions),
        len(trial.texts),
        tuple(each.result for each in outcomes),
        calibration_error(bins),
        bins,
        _COVERAGES,
        tuple(float(each) for each in risk),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    result: WeightResult
    margin: NDArray[np.float64]  # [question]
    is_right: NDArray[np.bool_]


class _Trial:
    """Everything about the articles that does not depend on the weight."""

    def __init__(self, encoder: Encoder, articles: Sequence[SquadArticle]) -> None:
        numbered = [
            (number, p)
            for number, article in enumerate(articles)
            for p in article.paragraphs
            if p.context.strip()  # a document has no empty paragraph
        ]
        asked = [
            (row, number, q) for row, (number, p) in enumerate(numbered) for q in p.questions if q.answers
        ]
        self.texts = [p.context for _, p in numbered]
        self.questions = [q.text for _, _, q in asked]
        self.answers = [[a.text for a in q.answers] for _, _, q in asked]
        self.gold = np.array([row for row, _, _ in asked])
        self.article = np.array([number for _, number, _ in asked])
        self.candidates: FlatCandidates = flat_candidates(
            encoder.encode_questions(self.questions), encoder.encode_paragraphs(self.texts)
        )
        with tempfile.TemporaryDirectory() as folder:
            self.sparse = _sparse_scores(articles, self.questions, Path(folder))

    def outcome(self, sparse_weight: float) -> _Outcome:
        """The best answers under one weight."""
        order, scores = best_answers(self.candidates, self.sparse, sparse_weight, _RIVALS)
        found = [[self._text(row, int(n)) for n in numbers] for row, numbers in enumerate(order)]
        normalized = [[normalize_answer(text) for text in texts] for texts in found]
        is_right = np.array(
            [
                texts[0] in {normalize_answer(answer) for answer in answers}
                for texts, answers in zip(normalized, self.answers, strict=True)
            ]
        )
        overlap = np.mean([f1(texts[0], answers) for texts, answers in zip(found, self.answers, strict=True)])
        in_gold = np.mean(order[:, 0] // PER_PARAGRAPH == self.gold)
        result = WeightResult(
            sparse_weight, float(100 * is_right.mean()), float(100 * overlap), float(100 * in_gold)
        )
        return _Outcome(result, margins(normalized, scores), is_right)

    def _text(self, question: int, number: int) -> str:
        paragraph, nth = divmod(number, PER_PARAGRAPH)
        return self.candidates.span(question, paragraph, nth).of(self.texts[paragraph])


def _sparse_scores(
    articles: Sequence[SquadArticle], questions: Sequence[str], folder: Path
) -> NDArray[np.float64]:
    """``[question, paragraph]``: the sum of paragraph and document scores."""
    documents = []
    for article in articles:
        text, spans = join_paragraphs(paragraph.context for paragraph in article.paragraphs)
        documents.append(Document(article.title, article.title.replace("_", " "), text, spans))
    postings = (retriever := SparseRetriever.build(documents, folder)).postings
    document_of = postings.documents_of_paragraphs()
    rows = []
    for question in questions:
        weighed = retriever.weigh(question)
        rows.append(postings.paragraph_scores(weighed) + postings.document_scores(weighed)[document_of])
    return np.stack(rows)
