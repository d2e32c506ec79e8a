"""Flat search against enumeration."""

import numpy as np
import pytest

from denspi.search.flat import best_answers, flat_candidates, margins
from denspi.search.scoring import phrase_scores
from denspi.vectors import ParagraphVectors, QuestionVectors

DIM, KEYS = 4, 2


def paragraph(words: int, seed: int) -> ParagraphVectors:
    random = np.random.default_rng(seed)

    def floats(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    starts = np.arange(words, dtype=np.int32) * 3
    can = random.random((2, words)) < 0.8
    rows = (floats(words, DIM), floats(words, DIM), floats(words, KEYS), floats(words, KEYS))
    return ParagraphVectors(starts, starts + 2, *rows, can[0], can[1], floats(words), floats(words))


def questions(count: int) -> QuestionVectors:
    random = np.random.default_rng(9)
    rows = (random.normal(size=(count, DIM)).astype(np.float32) for _ in range(2))
    return QuestionVectors(*rows, np.ones(count, np.float32))


def test_each_paragraph_offers_its_two_best_phrases_that_do_not_overlap() -> None:
    asked, paragraphs = questions(5), [paragraph(n, n) for n in (30, 1, 0, 12)]
    found = flat_candidates(asked, paragraphs)
    assert found.scores.shape == (5, 4, 2)
    for number, each in enumerate(paragraphs):
        if not len(each):
            assert np.all(found.scores[:, number] == -np.inf)
            continue
        scores = phrase_scores(asked, each)
        for q in range(5):
            # the best end of every start, best start first
            ends = scores[q].argmax(1)
            phrases = sorted(((scores[q, w, k], w, w + k) for w, k in enumerate(ends)), reverse=True)
            best = phrases[0]
            assert found.scores[q, number, 0] == pytest.approx(best[0])
            apart = [p for p in phrases if p[0] > -np.inf and (p[1] > best[2] or p[2] < best[1])]
            second = apart[0][0] if apart else -np.inf
            assert found.scores[q, number, 1] == pytest.approx(second)
            if best[0] > -np.inf:
                span = found.span(q, number, 0)
                assert (span.start_char, span.end_char) == (3 * best[1], 3 * best[2] + 2)


def test_sparse_scores_are_added_to_whole_paragraphs() -> None:
    asked, paragraphs = questions(3), [paragraph(n, n) for n in (9, 11, 13)]
    found = flat_candidates(asked, paragraphs)
    sparse = np.random.default_rng(1).random((3, 3))
    order, scores = best_answers(found, sparse, 7.0, 4)
    everything = (found.scores + 7.0 * sparse[..., None]).reshape(3, -1)
    assert np.allclose(scores, -np.sort(-everything, axis=1)[:, :4])
    assert np.allclose(np.take_along_axis(everything, order, 1), scores)


def test_the_margin_is_to_the_next_answer_that_reads_differently() -> None:
    scores = np.array([[9.0, 8.0, 5.0], [9.0, 8.0, 5.0], [9.0, 8.0, 5.0]])
    assert margins([["a", "b", "a"], ["a", "a", "b"], ["a", "a", "a"]], scores).tolist() == [1.0, 4.0, 4.0]


def test_no_paragraph_at_all() -> None:
    assert flat_candidates(questions(2), []).scores.shape == (2, 0, 2)
