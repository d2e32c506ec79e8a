"""Reading with an encoder whose best phrase is known: the arithmetic of exact match, F1 and speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import numpy as np
import pytest

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.dense.encoder import Layout
from denspi.dense.reader import ReaderAnswer
from denspi.evaluation.answering import PhraseAnswerer, RereadingAnswerer
from denspi.evaluation.reading import Progress, evaluate_reading, first_questions
from denspi.text.tokens import word_spans
from denspi.types import Span
from denspi.vectors import ParagraphVectors, QuestionVectors


class KnownEncoder:
    """Answers the question "2 4" with the words two to four of any paragraph."""

    layout = Layout(vector_dim=64, coherency_dim=1)

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode_questions(self, questions: Sequence[str]) -> QuestionVectors:
        borders = np.array([question.split() for question in questions], int).reshape(-1, 2)
        rows = np.eye(64, dtype=np.float32)
        return QuestionVectors(rows[borders[:, 0]], rows[borders[:, 1]], np.ones(len(borders), np.float32))

    def encode_paragraphs(self, paragraphs: Iterable[str]) -> Iterator[ParagraphVectors]:
        for text in paragraphs:
            self.encoded.append(text)
            starts, ends = word_spans(text)
            rows, all_words = np.eye(64, dtype=np.float32)[: len(starts)], np.ones(len(starts), bool)
            nothing = np.zeros((len(starts), 1), np.float32)
            yield ParagraphVectors(
                *(starts, ends, rows, rows, nothing, nothing, all_words, all_words),
                *(nothing[:, 0], nothing[:, 0]),
            )


def question(question_id: str, text: str, *answers: str) -> SquadQuestion:
    return SquadQuestion(question_id, text, tuple(SquadAnswer(answer, 0) for answer in answers))


TEXT = "In 1928 Alexander Fleming saw a mould, and kept it."
ARTICLES = [
    SquadArticle(
        "Penicillin",
        (
            SquadParagraph(
                TEXT,
                (
                    question("right", "2 3", "Fleming", "alexander fleming"),
                    question("half", "5 6", "the mould"),
                    question("wrong", "1 1", "1929"),
                    question("impossible", "0 0"),
                ),
            ),
            SquadParagraph("Nothing is asked here.", ()),
        ),
    ),
    SquadArticle("Empty", (SquadParagraph("", (question("no word", "0 0", "no word"),)),)),
]


def test_scores_are_the_means_of_the_best_reference() -> None:
    result = evaluate_reading(PhraseAnswerer(KnownEncoder()), ARTICLES)
    assert result.predictions == {
        "right": "Alexander Fleming",
        "half": "a mould",
        "wrong": "1928",
        "no word": "",
    }
    assert result.questions == 4
    assert result.em == pytest.approx(100 * 2 / 4)  # articles do not count: "a mould" is "the mould"
    assert result.f1 == pytest.approx(100 * 2 / 4)


def test_f1_counts_words_in_common() -> None:
    paragraph = SquadParagraph(TEXT, (question("q", "2 4", "Alexander Fleming", "someone"),))
    result = evaluate_reading(PhraseAnswerer(KnownEncoder()), [SquadArticle("t", (paragraph,))])
    assert (result.em, result.f1) == (0, pytest.approx(100 * 2 * (2 / 3) / (2 / 3 + 1)))


def test_a_paragraph_is_encoded_once_and_in_order() -> None:
    encoder = KnownEncoder()
    many = [
        SquadArticle(str(n), (SquadParagraph(f"{TEXT} {n}", ARTICLES[0].paragraphs[0].questions),))
        for n in range(70)
    ]
    seen: list[Progress] = []
    result = evaluate_reading(PhraseAnswerer(encoder), many, seen.append)
    assert encoder.encoded == [article.paragraphs[0].context for article in many]
    assert [progress.questions for progress in seen] == [3 * 64, 3 * 70]
    assert seen[-1].em == result.em


def test_rates_come_from_the_clock() -> None:
    ticks = count()
    result = evaluate_reading(PhraseAnswerer(KnownEncoder()), ARTICLES, clock=lambda: float(next(ticks)))
    # One group: began, started, encoded, asked, ended.
    assert (result.words, result.paragraphs) == (len(TEXT.split()) + 4, 3)
    assert result.words_per_second == result.words
    assert result.questions_per_second == result.questions
    assert result.seconds == 4


def test_a_reader_reads_a_paragraph_anew_for_each_question() -> None:
    class KnownReader:
        """Answers any question with the first word."""

        def read(self, question: str, paragraphs: Sequence[str]) -> list[ReaderAnswer]:
            return [ReaderAnswer(Span(0, len(text.split(" ")[0])), 0.0) for text in paragraphs]

    ticks = count()
    result = evaluate_reading(
        RereadingAnswerer(KnownReader()), ARTICLES, clock=lambda: 2.0 * float(next(ticks))
    )
    assert result.predictions == {"right": "In", "half": "In", "wrong": "In", "no word": ""}
    assert (result.words, result.questions, result.paragraphs) == (3 * len(TEXT.split()), 4, 3)
    # One group: began, started, ended, all ended.
    assert result.words_per_second == result.words / 2
    assert result.questions_per_second == result.questions / 2
    assert result.seconds == 6


def test_a_limit_counts_questions() -> None:
    kept = list(first_questions(ARTICLES, 2))
    assert [[q.question_id for q in p.questions] for a in kept for p in a.paragraphs] == [["right", "half"]]
    assert len(list(first_questions(ARTICLES, 99))) == 2
    assert list(first_questions(ARTICLES, 0)) == []
