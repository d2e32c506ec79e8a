"""The open setting, the paper's Table 2: every question is put to a whole index, not to its own paragraph.

Owns the sums. Questions are asked one by one, as people ask them, and timed from text to answers; what each
stage has found is looked at afterwards, off the clock. Opens no file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from denspi.corpus.squad import SquadArticle, SquadQuestion
from denspi.evaluation.outcomes import Outcome
from denspi.evaluation.recall import RecallOfStages
from denspi.search.candidates import Limits
from denspi.search.searcher import DEFAULT_STRATEGY, Reply, Searcher
from denspi.text.answers import exact_match, f1

DEFAULT_K = 5


@dataclass(frozen=True, slots=True)
class OpenSettings:
    """What is evaluated."""

    strategy: str = DEFAULT_STRATEGY
    k: int = DEFAULT_K
    sparse_weight: float | None = None  # the model's own where None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class OpenResult:
    """Means over questions: exact match, F1 and recall in percent."""

    em: float
    f1: float
    top_k_em: float  # the right answer is one of the k
    k: int
    strategy: str
    questions: int
    seconds_per_question: float
    documents_per_question: float
    recall: dict[str, dict[str, float]]  # stage -> document, paragraph, answer


def evaluate_open(
    searcher: Searcher,
    articles: Sequence[SquadArticle],
    settings: OpenSettings | None = None,
    known: Mapping[str, Outcome] | None = None,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> OpenResult:
    """Ask every question that has a reference answer; those in `known`, by their ids, are not asked again."""
    settings, known = settings or OpenSettings(), known or {}
    recall: RecallOfStages | None = None
    outcomes = []
    for article, context, question in asked_questions(articles):
        outcome = known.get(question.question_id)
        if outcome is None:
            if recall is None:
                recall = RecallOfStages(searcher.view, articles)
                _ask(searcher, question.text, settings)  # the first one loads what all of them use
            outcome = _outcome(searcher, recall, (article, context), question, settings, clock)
            on_outcome(outcome)
        outcomes.append(outcome)
    return summarize(outcomes, settings)


def asked_questions(articles: Iterable[SquadArticle]) -> list[tuple[str, str, SquadQuestion]]:
    """Title, paragraph and question, of all that have a reference answer."""
    return [
        (article.title, paragraph.context, question)
        for article in articles
        for paragraph in article.paragraphs
        for question in paragraph.questions
        if question.answers
    ]


def summarize(outcomes: Sequence[Outcome], settings: OpenSettings) -> OpenResult:
    """The means."""

    def mean(values: Iterable[float]) -> float:
        return sum(values) / max(1, len(outcomes))

    stages = dict.fromkeys(stage for outcome in outcomes for stage in outcome.recall)
    return OpenResult(
        em=100 * mean(outcome.em for outcome in outcomes),
        f1=100 * mean(outcome.f1 for outcome in outcomes),
        top_k_em=100 * mean(outcome.top_k_em for outcome in outcomes),
        k=settings.k,
        strategy=settings.strategy,
        questions=len(outcomes),
        seconds_per_question=mean(outcome.seconds for outcome in outcomes),
        documents_per_question=mean(outcome.documents for outcome in outcomes),
        recall={
            stage: {
                part: 100 * mean(getattr(outcome.recall[stage], part) for outcome in outcomes)
                for part in ("document", "paragraph", "answer")
            }
            for stage in stages
        },
    )


def _outcome(
    searcher: Searcher,
    recall: RecallOfStages,
    gold: tuple[str, str],
    question: SquadQuestion,
    settings: OpenSettings,
    clock: Callable[[], float],
) -> Outcome:
    started = clock()
    reply = _ask(searcher, question.text, settings)
    seconds = clock() - started
    references = [answer.text for answer in question.answers]
    prediction = reply.answers[0].text if reply.answers else ""
    return Outcome(
        question_id=question.question_id,
        prediction=prediction,
        em=exact_match(prediction, references),
        f1=f1(prediction, references),
        top_k_em=any(exact_match(answer.text, references) for answer in reply.answers),
        seconds=seconds,
        documents=reply.documents_visited,
        recall=recall.trace(
            searcher.asked(question.text, settings.sparse_weight),
            reply.answers,
            settings.strategy,
            settings.limits or Limits(),
            gold,
            references,
        ),
    )


def _ask(searcher: Searcher, text: str, settings: OpenSettings) -> Reply:
    return searcher.ask(
        text,
        settings.k,
        settings.strategy,
        sparse_weight=settings.sparse_weight,
        limits=settings.limits,
    )
