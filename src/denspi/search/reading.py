"""Reading: the best phrase of a given paragraph for each question, by dense vectors alone (Table 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from denspi.search.scoring import best_phrases, phrase_scores
from denspi.types import Span
from denspi.vectors import ParagraphVectors, QuestionVectors


def read_paragraph(questions: QuestionVectors, paragraph: ParagraphVectors) -> list[Span]:
    """The best phrase for each question, as a span of the paragraph's text; empty where there is no word."""
    if not len(paragraph):
        return [Span(0, 0)] * len(questions)
    first, last, _ = best_phrases(phrase_scores(questions, paragraph))
    return [
        Span(int(paragraph.word_starts[i]), int(paragraph.word_ends[j]))
        for i, j in zip(first, last, strict=True)
    ]


def rows_of(questions: QuestionVectors, counts: Sequence[int]) -> Iterator[QuestionVectors]:
    """Consecutive runs of questions: the first ``counts[0]`` rows, then the next ``counts[1]``, ..."""
    at = 0
    for count in counts:
        part = slice(at, at + count)
        yield QuestionVectors(questions.starts[part], questions.ends[part], questions.coherency[part])
        at += count
