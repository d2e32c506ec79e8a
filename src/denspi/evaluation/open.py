"""The open setting, the paper's Table 2: every question is put to a whole index, not to its own paragraph.

Owns the sums. An evenly spread sample of the questions is asked one by one, as people ask them, and timed
from text to answers; the others are asked in batches, which give the same answers. What each stage has found
is looked at afterwards, off the clock. Opens no file.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from denspi.corpus.squad import SquadArticle, SquadQuestion
from denspi.errors import InputError
from denspi.evaluation.outcomes import Outcome, fingerprint
from denspi.evaluation.recall import RecallOfStages
from denspi.search.asked import AskedQuestion
from denspi.search.batch import QUESTIONS_AT_ONCE
from denspi.search.candidates import REACHES, Limits
from denspi.search.questions import is_refused
from denspi.search.searcher import DEFAULT_STRATEGY, Reply, Searcher
from denspi.text.answers import exact_match, f1

DEFAULT_K = 5
TIMED_QUESTIONS = 200
"""How many are asked one by one, about; of fewer questions, all of them."""


@dataclass(frozen=True, slots=True)
class OpenSettings:
    """What is evaluated."""

    strategy: str = DEFAULT_STRATEGY
    k: int = DEFAULT_K
    sparse_weight: float | None = None  # the model's own where None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question, where its answer stands, and whether it is asked by itself."""

    title: str
    context: str  # the text of the paragraph
    question: SquadQuestion
    is_alone: bool


@dataclass(frozen=True, slots=True)
class OpenResult:
    """Means over questions: exact match, F1 and recall in percent."""

    em: float
    f1: float
    top_k_em: float  # the right answer is one of the k
    k: int
    strategy: str
    questions: int
    seconds_per_question: float  # asked one by one
    batch_seconds_per_question: float | None  # asked in batches; None where none was
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
    """Ask every question that has a reference answer; those in `known`, by their ids, are not asked again.

    A question that no search takes, such as a blank one, counts as not answered.
    """
    settings, asked = settings or OpenSettings(), asked_questions(articles)
    ids = Counter(question.question_id for _, _, question in asked)
    if twice := next((name for name, count in ids.items() if count > 1), None):
        raise InputError(f"question id {twice!r} stands there twice; give every question an id of its own")
    alone_every = max(1, len(asked) // TIMED_QUESTIONS)
    found, open_questions = dict(known or {}), []
    for number, (title, context, question) in enumerate(asked):
        if question.question_id in found:
            continue
        if is_refused(question.text):
            found[question.question_id] = _unanswered(question)
            on_outcome(found[question.question_id])
        else:
            open_questions.append(OpenQuestion(title, context, question, number % alone_every == 0))
    if open_questions:
        recall = RecallOfStages(searcher.view, articles)
        _ask(searcher, [open_questions[0]], settings)  # the first one loads what all of them use
        size = QUESTIONS_AT_ONCE * searcher.threads
        for first in range(0, len(open_questions), size):
            part = open_questions[first : first + size]
            for outcome in _outcomes(searcher, recall, part, settings, clock):
                found[outcome.question_id] = outcome
                on_outcome(outcome)
    return summarize([found[question.question_id] for _, _, question in asked], settings)


def evaluated(searcher: Searcher, settings: OpenSettings) -> dict[str, str | float]:
    """What an evaluation is about: outcomes of another one must not be mixed with its own."""
    snapshot, weight = searcher.view.snapshot, settings.sparse_weight
    return {
        "strategy": settings.strategy,
        "sparse_weight": searcher.sparse_weight if weight is None else weight,
        "k": settings.k,
        # Another version has other defaults, and finds others.
        "limits": f"{settings.limits or Limits()}, {REACHES.get(settings.strategy)}",
        "model": snapshot.model.fingerprint,
        "generation": snapshot.generation,
        "index": snapshot.manifest.fingerprint,
    }


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

    timed = [outcome for outcome in outcomes if outcome.seconds]  # not what was refused
    alone = [outcome.seconds for outcome in timed if outcome.is_alone]
    together = [outcome.seconds for outcome in timed if not outcome.is_alone]
    stages = dict.fromkeys(stage for outcome in outcomes for stage in outcome.recall)
    return OpenResult(
        em=100 * mean(outcome.em for outcome in outcomes),
        f1=100 * mean(outcome.f1 for outcome in outcomes),
        top_k_em=100 * mean(outcome.top_k_em for outcome in outcomes),
        k=settings.k,
        strategy=settings.strategy,
        questions=len(outcomes),
        seconds_per_question=sum(alone) / max(1, len(alone)),
        batch_seconds_per_question=sum(together) / len(together) if together else None,
        documents_per_question=mean(outcome.documents for outcome in outcomes),
        recall={
            stage: {
                part: 100 * mean(getattr(outcome.recall.get(stage), part, False) for outcome in outcomes)
                for part in ("document", "paragraph", "answer")
            }
            for stage in stages
        },
    )


def _outcomes(
    searcher: Searcher,
    recall: RecallOfStages,
    part: Sequence[OpenQuestion],
    settings: OpenSettings,
    clock: Callable[[], float],
) -> Iterator[Outcome]:
    """In the order of the questions."""
    replies: dict[str, tuple[Reply, float]] = {}  # with the seconds it took
    together = [each for each in part if not each.is_alone]
    for some in [[each] for each in part if each.is_alone] + ([together] if together else []):
        started = clock()
        answered = _ask(searcher, some, settings)
        seconds = (clock() - started) / len(some)
        for each, reply in zip(some, answered, strict=True):
            replies[each.question.question_id] = reply, seconds
    texts = [each.question.text for each in part]
    asked = searcher.asked_batch(texts, settings.strategy, settings.sparse_weight)
    for each, again in zip(part, asked, strict=True):
        yield _outcome(each, *replies[each.question.question_id], again, recall, settings)


def _outcome(
    asked: OpenQuestion,
    reply: Reply,
    seconds: float,
    again: AskedQuestion,
    recall: RecallOfStages,
    settings: OpenSettings,
) -> Outcome:
    references = [answer.text for answer in asked.question.answers]
    prediction = reply.answers[0].text if reply.answers else ""
    limits, gold = settings.limits or Limits(), (asked.title, asked.context)
    return Outcome(
        question_id=asked.question.question_id,
        asked=fingerprint(asked.question),
        prediction=prediction,
        em=exact_match(prediction, references),
        f1=f1(prediction, references),
        top_k_em=any(exact_match(answer.text, references) for answer in reply.answers),
        seconds=seconds,
        is_alone=asked.is_alone,
        documents=reply.documents_visited,
        recall=recall.trace(again, reply.answers, settings.strategy, limits, gold, references),
    )


def _unanswered(question: SquadQuestion) -> Outcome:
    return Outcome(question.question_id, fingerprint(question), "", False, 0.0, False, 0.0, False, 0, {})


def _ask(searcher: Searcher, questions: Sequence[OpenQuestion], settings: OpenSettings) -> list[Reply]:
    return searcher.ask_batch(
        [each.question.text for each in questions],
        settings.k,
        settings.strategy,
        sparse_weight=settings.sparse_weight,
        limits=settings.limits,
    )
