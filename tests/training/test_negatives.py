"""Negatives against a brute-force search; and what they put into a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.training.negatives import (
    Neighbours,
    find_neighbours,
    paper_intruders,
    similar_paragraphs,
    similar_question_intruders,
)


def collection(seed: int, articles: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of small whole numbers (inner products are exact), paragraphs and articles of questions."""
    random = np.random.default_rng(seed)
    paragraphs, owners, number = [], [], 0
    for article in range(articles):
        for _ in range(random.integers(1, 4)):
            questions = int(random.integers(1, 4))
            paragraphs += [number] * questions
            owners += [article] * questions
            number += 1
    vectors = random.integers(-4, 5, (len(paragraphs), 6)).astype(np.float32)
    return vectors, np.array(paragraphs), np.array(owners)


def brute_force(vectors: np.ndarray, question: int, allowed: list[int]) -> int:
    best = -1
    for other in allowed:
        if best < 0 or vectors[question] @ vectors[other] > vectors[question] @ vectors[best]:
            best = other
    return best


@given(seed=st.integers(0, 300), articles=st.integers(1, 6), block=st.integers(1, 50))
def test_neighbours_are_those_of_a_full_search(seed: int, articles: int, block: int) -> None:
    vectors, paragraphs, owners = collection(seed, articles)
    found = find_neighbours(vectors, paragraphs, owners, block)
    similar = similar_paragraphs(found)
    numbers = range(len(vectors))
    for q in numbers:
        foreign = [o for o in numbers if owners[o] != owners[q]]
        sibling = [o for o in numbers if owners[o] == owners[q] and paragraphs[o] != paragraphs[q]]
        assert found.elsewhere[q] == brute_force(vectors, q, foreign)
        assert found.nearby[q] == brute_force(vectors, q, sibling)
        closest = int(found.closest[q])
        anywhere = brute_force(vectors, q, foreign + sibling)
        if anywhere < 0:
            assert closest == similar[q] == -1
        else:
            assert vectors[q] @ vectors[closest] == vectors[q] @ vectors[anywhere]
            assert similar[q] == paragraphs[closest] != paragraphs[q]


@pytest.fixture
def neighbours() -> Neighbours:
    return find_neighbours(*collection(4, articles=5))


def test_the_papers_two_negatives(neighbours: Neighbours) -> None:
    batch = [3, 0, 5]
    for epoch in range(5):
        found = paper_intruders(neighbours, batch, seed=1, epoch=epoch)
        assert found.strangers == ()
        expected = []
        for row, paragraph in enumerate(batch):
            question = neighbours.pick(paragraph, 1, epoch)
            assert neighbours.paragraphs[question] == paragraph
            expected += [(row, neighbours.elsewhere[question]), (row, neighbours.nearby[question])]
        assert list(found.pairs) == [pair for pair in expected if pair[1] >= 0]
        assert all(neighbours.paragraphs[question] != batch[row] for row, question in found.pairs)


def test_the_original_variant_brings_paragraphs_along(neighbours: Neighbours) -> None:
    similar = similar_paragraphs(neighbours)
    batch = [3, 0, 5, 1]
    for epoch in range(5):
        found = similar_question_intruders(neighbours, batch, seed=1, epoch=epoch)
        rows = [*batch, *found.strangers]
        assert len(set(rows)) == len(rows)  # a paragraph that is in the batch is not appended
        assert len(found.pairs) == len(batch)
        for paragraph, (row, question) in zip(batch, found.pairs, strict=True):
            assert neighbours.paragraphs[question] == paragraph
            assert rows[row] == similar[question]


def test_choices_depend_on_seed_epoch_and_paragraph_alone(neighbours: Neighbours) -> None:
    paragraphs = sorted(set(neighbours.paragraphs.tolist()))

    def picks(seed: int, epoch: int) -> list[int]:
        return [neighbours.pick(paragraph, seed, epoch) for paragraph in paragraphs]

    assert picks(1, 0) == picks(1, 0)
    assert len({tuple(picks(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4
    alone = paper_intruders(neighbours, [3], 1, 0).pairs
    together = paper_intruders(neighbours, [0, 3], 1, 0).pairs
    assert [q for _, q in alone] == [q for row, q in together if row == 1]


def test_one_article_of_one_paragraph_has_no_negatives() -> None:
    lonely = find_neighbours(np.ones((3, 2), np.float32), np.zeros(3, int), np.zeros(3, int))
    assert paper_intruders(lonely, [0], 1, 0).pairs == ()
    assert similar_question_intruders(lonely, [0], 1, 0).pairs == ()
