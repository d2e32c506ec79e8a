"""Reading, the paper's Table 1: every question is put to its own paragraph, and the best phrase counts.

Owns the scores and the sums; what answers, a phrase model or a reader, is an `Answerer`. A few dozen
paragraphs are held at a time. Opens no file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from denspi.corpus.squad import SquadArticle, SquadParagraph
from denspi.evaluation.answering import Answerer
from denspi.text.answers import exact_match, f1

_GROUP = 64  # paragraphs that are handed over together


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an evaluation is, and what it has found so far."""

    questions: int
    words: int
    em: float
    words_per_second: float


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """Mean exact match and F1 in percent, what was read, and how fast.

    Words are runs between white space, as `denspi corpus` counts them, and count as often as they were read.
    Of a phrase model, `words_per_second` is the encoding of paragraphs alone and `questions_per_second` that
    of questions with the search for their best phrases. A reader does both at once.
    """

    em: float
    f1: float
    questions: int
    paragraphs: int
    words: int
    words_per_second: float
    questions_per_second: float
    seconds: float
    predictions: dict[str, str]  # question id -> answer


def evaluate_reading(
    answerer: Answerer,
    articles: Iterable[SquadArticle],
    on_progress: Callable[[Progress], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> ReadingResult:
    """Answer every question that has a reference answer from its own paragraph.

    A question without one (SQuAD v2) is left out: reading always gives a phrase.
    """
    began = clock()
    predictions: dict[str, str] = {}
    paragraphs = words = questions = 0
    reading_s = asking_s = em_sum = f1_sum = 0.0
    for group in _groups(p for article in articles for p in article.paragraphs):
        asked = [[q for q in p.questions if q.answers] for p in group]
        texts = [p.context for p in group]
        answered = answerer.answer(texts, [[q.text for q in each] for each in asked], clock)
        reading_s, asking_s = reading_s + answered.reading_s, asking_s + answered.asking_s
        for paragraph, each, found in zip(group, asked, answered.spans, strict=True):
            for question, span in zip(each, found, strict=True):
                prediction = span.of(paragraph.context)
                references = [answer.text for answer in question.answers]
                em_sum += exact_match(prediction, references)
                f1_sum += f1(prediction, references)
                predictions[question.question_id] = prediction
            questions += len(each)
        paragraphs += len(group)
        words += answered.words
        on_progress(Progress(questions, words, _percent(em_sum, questions), _rate(words, reading_s)))
    return ReadingResult(
        em=_percent(em_sum, questions),
        f1=_percent(f1_sum, questions),
        questions=questions,
        paragraphs=paragraphs,
        words=words,
        words_per_second=_rate(words, reading_s),
        questions_per_second=_rate(questions, asking_s),
        seconds=clock() - began,
        predictions=predictions,
    )


def first_questions(articles: Iterable[SquadArticle], limit: int) -> Iterator[SquadArticle]:
    """The articles up to the question number `limit`, without the questions after it."""
    left = limit
    for article in articles:
        kept = []
        for paragraph in article.paragraphs:
            if left <= 0:
                break
            kept.append(SquadParagraph(paragraph.context, paragraph.questions[:left]))
            left -= len(paragraph.questions)
        if kept:
            yield SquadArticle(article.title, tuple(kept))


def _groups(paragraphs: Iterable[SquadParagraph]) -> Iterator[list[SquadParagraph]]:
    source = iter(paragraphs)
    while group := list(islice(source, _GROUP)):
        yield group


def _percent(total: float, count: int) -> float:
    return 100 * total / max(1, count)


def _rate(count: int, seconds: float) -> float:
    return count / max(seconds, 1e-9)
