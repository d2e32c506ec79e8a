"""Scores of all phrases against a slow oracle that enumerates them, and against the training code's own."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denspi.dense.model import PhraseParts, Questions
from denspi.dense.phrases import phrase_logits
from denspi.search.reading import read_paragraph, rows_of
from denspi.search.scoring import best_phrases, phrase_scores
from denspi.types import Span
from denspi.vectors import ParagraphVectors, QuestionVectors


def random_vectors(
    seed: int, words: int, questions: int, keys: int, dim: int = 5
) -> tuple[QuestionVectors, ParagraphVectors]:
    random = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    paragraph = ParagraphVectors(
        np.arange(words, dtype=np.int32) * 4,
        np.arange(words, dtype=np.int32) * 4 + 3,
        *(rows(words, dim), rows(words, dim), rows(words, keys), rows(words, keys)),
        *(random.random(words) < 0.8, random.random(words) < 0.8),
        *(rows(words), rows(words)),
    )
    return QuestionVectors(rows(questions, dim), rows(questions, dim), rows(questions)), paragraph


def enumerated(
    questions: QuestionVectors, paragraph: ParagraphVectors, q: int, max_words: int
) -> dict[tuple[int, int], float]:
    """Every phrase (first word, last word) with its score, by Equation 2."""
    scores = {}
    for i in np.flatnonzero(paragraph.can_start).tolist():
        for j in np.flatnonzero(paragraph.can_end).tolist():
            if i <= j < i + max_words:
                coherency = float(paragraph.start_keys[i] @ paragraph.end_keys[j])
                scores[i, j] = (
                    float(questions.starts[q] @ paragraph.starts[i])
                    + float(questions.ends[q] @ paragraph.ends[j])
                    + float(questions.coherency[q]) * coherency
                )
    return scores


@given(
    seed=st.integers(0, 1000),
    words=st.integers(1, 12),
    questions=st.integers(1, 3),
    keys=st.integers(0, 3),
    max_words=st.integers(1, 15),
)
def test_every_phrase_has_the_score_of_the_definition(
    seed: int, words: int, questions: int, keys: int, max_words: int
) -> None:
    vectors, paragraph = random_vectors(seed, words, questions, keys)
    scores = phrase_scores(vectors, paragraph, max_words)
    assert scores.shape == (questions, words, max_words)
    first, last, best = best_phrases(scores)
    for q in range(questions):
        slow = enumerated(vectors, paragraph, q, max_words)
        for i in range(words):
            for k in range(max_words):
                assert scores[q, i, k] == pytest.approx(slow.get((i, i + k), -math.inf), abs=1e-4)
        if slow:
            assert best[q] == pytest.approx(max(slow.values()), abs=1e-4)
            assert slow[int(first[q]), int(last[q])] == pytest.approx(float(best[q]), abs=1e-4)
        else:
            assert best[q] == -math.inf


@pytest.mark.parametrize("keys", [0, 4])
def test_search_and_training_score_alike(keys: int) -> None:
    vectors, paragraph = random_vectors(7, words=30, questions=4, keys=keys)
    _, _, logits = phrase_logits(
        Questions(*map(torch.from_numpy, (vectors.starts, vectors.ends, vectors.coherency))),
        PhraseParts(
            *(
                torch.from_numpy(rows)[None]
                for rows in (paragraph.starts, paragraph.ends, paragraph.start_keys, paragraph.end_keys)
            )
        ),
        torch.from_numpy(paragraph.can_start)[None],
        torch.from_numpy(paragraph.can_end)[None],
        20,
    )
    np.testing.assert_allclose(logits[:, 0].numpy(), phrase_scores(vectors, paragraph), atol=1e-5)


def test_scoring_leaves_its_inputs_alone() -> None:
    vectors, paragraph = random_vectors(1, words=6, questions=2, keys=2)
    before = paragraph.starts.copy(), vectors.starts.copy()
    phrase_scores(vectors, paragraph)
    assert np.array_equal(before[0], paragraph.starts)
    assert np.array_equal(before[1], vectors.starts)


def test_reading_gives_spans_of_the_text() -> None:
    vectors, paragraph = random_vectors(5, words=9, questions=3, keys=2)
    for q, span in enumerate(read_paragraph(vectors, paragraph)):
        slow = enumerated(vectors, paragraph, q, 20)
        first, last = max(slow, key=lambda pair: slow[pair])
        assert span == Span(4 * first, 4 * last + 3)
    nothing = random_vectors(5, words=0, questions=3, keys=2)[1]
    assert read_paragraph(vectors, nothing) == [Span(0, 0)] * 3


def test_rows_of_cuts_consecutive_runs() -> None:
    vectors, _ = random_vectors(0, words=1, questions=5, keys=1)
    runs = list(rows_of(vectors, [2, 0, 3]))
    assert [len(run) for run in runs] == [2, 0, 3]
    assert np.array_equal(np.concatenate([run.ends for run in runs]), vectors.ends)
