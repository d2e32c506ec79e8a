"""Reading, the paper's Table 1: every question is put to its own paragraph, and the best phrase counts.

A paragraph is encoded once, whatever is asked about it. A few dozen paragraphs are held at a time. Needs an
encoder and articles; opens no file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from denspi.corpus.squad import SquadArticle, SquadParagraph
from denspi.dense.encoder import Encoder
from denspi.search.reading import read_paragraph, rows_of
from denspi.text.answers import exact_match, f1

_GROUP = 64  # paragraphs that are encoded before their questions are asked


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

    Words are runs between white space, as `denspi corpus` counts them. `words_per_second` is the encoding of
    paragraphs alone, `questions_per_second` the encoding of questions and the search for their best phrases.
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
    encoder: Encoder,
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
    encoding_s = asking_s = em_sum = f1_sum = 0.0
    for group in _groups(p for article in articles for p in article.paragraphs):
        started = clock()
        vectors = list(encoder.encode_paragraphs(p.context for p in group))
        encoded = clock()
        asked = [[q for q in p.questions if q.answers] for p in group]
        question_vectors = encoder.encode_questions([q.text for each in asked for q in each])
        runs = rows_of(question_vectors, [len(each) for each in asked])
        spans = [read_paragraph(run, paragraph) for run, paragraph in zip(runs, vectors, strict=True)]
        encoding_s, asking_s = encoding_s + encoded - started, asking_s + clock() - encoded
        for paragraph, each, found in zip(group, asked, spans, strict=True):
            for question, span in zip(each, found, strict=True):
                prediction = span.of(paragraph.context)
                references = [answer.text for answer in question.answers]
                em_sum += exact_match(prediction, references)
                f1_sum += f1(prediction, references)
                predictions[question.question_id] = prediction
            questions += len(each)
        paragraphs += len(group)
        words += sum(len(p.context.split()) for p in group)
        on_progress(Progress(questions, words, _percent(em_sum, questions), _rate(words, encoding_s)))
    return ReadingResult(
        em=_percent(em_sum, questions),
        f1=_percent(f1_sum, questions),
        questions=questions,
        paragraphs=paragraphs,
        words=words,
        words_per_second=_rate(words, encoding_s),
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
