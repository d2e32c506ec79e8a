"""Batches: orders are permutations, and every number in a tensor points at what it says."""

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.text.tokens import Tokenizer
from denspi.training.batches import (
    Teacher,
    epoch_order,
    gold_band,
    phrase_batch,
    reader_batch,
)
from denspi.training.examples import Example, Limits, make_examples

CONTEXTS = [
    ("ada lives in new york and works as a judge .", [("which town ?", "new york"), ("what job ?", "judge")]),
    ("bram lives in new york , far from york .", [("who is it ?", "bram"), ("which town ?", "york")]),
    ("cleo is a judge in oslo", [("what job ?", "judge"), ("what ?", "not in the text")]),
]


@pytest.fixture
def batch_examples(tokenizer: Tokenizer) -> list[Example]:
    paragraphs = tuple(
        SquadParagraph(
            context,
            tuple(
                SquadQuestion(f"{n}-{m}", question, (SquadAnswer(answer, 0),))
                for m, (question, answer) in enumerate(questions)
            ),
        )
        for n, (context, questions) in enumerate(CONTEXTS)
    )
    return make_examples([SquadArticle("A", paragraphs)], tokenizer, Limits())


def text_of(example: Example, first_word: int, length: int) -> str:
    tokens = example.tokens
    return example.text[tokens.word_starts[first_word] : tokens.word_ends[first_word + length]]


@given(
    items=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 50)), min_size=1, max_size=40),
    size=st.integers(1, 8),
    group=st.integers(1, 5),
    epoch=st.integers(0, 3),
)
def test_an_epoch_is_a_permutation_in_runs_of_a_group(
    items: list[tuple[int, int]], size: int, group: int, epoch: int
) -> None:
    groups, lengths = [group for group, _ in items], [length for _, length in items]
    batches = epoch_order(groups, lengths, size, group, seed=3, epoch=epoch)
    assert batches == epoch_order(groups, lengths, size, group, seed=3, epoch=epoch)
    assert sorted(item for batch in batches for item in batch) == list(range(len(groups)))
    assert sorted(map(len, batches))[1:] == [size] * (len(batches) - 1)
    # As few runs as whole runs of `group` items leave, but for those that the end of a batch cuts;
    # neighbouring runs of one group may only merge.
    runs = sum(len(list(groupby(groups[item] for item in batch))) for batch in batches)
    assert runs <= sum(-(-count // group) for count in Counter(groups).values()) + len(batches) - 1


def test_another_epoch_or_seed_is_another_order() -> None:
    lengths = [n % 7 for n in range(50)]
    orders = {
        str(epoch_order(range(50), lengths, 5, 1, seed, epoch))
        for seed, epoch in ((1, 0), (1, 1), (2, 0), (2, 1))
    }
    assert len(orders) == 4


def test_runs_are_not_cut_where_the_batch_is_a_multiple() -> None:
    groups = [n // 8 for n in range(64)]
    for batch in epoch_order(groups, groups, 8, 4, seed=1, epoch=0):
        assert sorted(Counter(groups[item] for item in batch).values()) in ([4, 4], [8])


@pytest.mark.parametrize("group", [1, 4])
def test_batches_of_similar_lengths_save_padding(group: int) -> None:
    random = np.random.default_rng(0)
    groups, lengths = random.integers(0, 40, 2000).tolist(), random.integers(30, 400, 2000).tolist()
    batches = epoch_order(groups, lengths, 8, group, seed=1, epoch=0)

    def padded(chosen: list[list[int]]) -> int:
        return sum(len(batch) * max(lengths[item] for item in batch) for batch in chosen)

    by_chance = random.permutation(2000).reshape(-1, 8).tolist()
    assert padded(batches) < 1.2 * sum(lengths) < 0.75 * padded(by_chance)
    longest = [max(lengths[item] for item in batch) for batch in batches]
    assert longest != sorted(longest)  # the batches themselves come in random order


def test_who_stands_together_differs_from_epoch_to_epoch() -> None:
    lengths = np.random.default_rng(0).integers(30, 400, 40).tolist()
    runs = [
        {frozenset(batch) for batch in epoch_order([0] * 40, lengths, 4, 4, seed=1, epoch=epoch)}
        for epoch in range(3)
    ]
    assert not runs[0] & runs[1] & runs[2]


def test_phrase_batch_points_at_the_answers(batch_examples: list[Example], tokenizer: Tokenizer) -> None:
    batch = phrase_batch(batch_examples, tokenizer)
    asked = [(n, q) for n, e in enumerate(batch_examples) for q in e.questions if q.gold]
    assert batch.asked == len(asked) == 5  # the question without an answer in its paragraph is left out
    assert batch.own.tolist() == [n for n, _ in asked]
    assert {row for row, _, _ in batch.gold.tolist()} == set(range(5))
    for row, word, length in batch.gold.tolist():
        number, question = asked[row]
        assert text_of(batch_examples[number], word, length) in question.answers
    # "york" is right twice in its own paragraph
    assert [gold[1:] for gold in batch.gold.tolist() if gold[0] == 3] == [[4, 0], [8, 0]]


def test_phrase_batch_frames_and_pads(batch_examples: list[Example], tokenizer: Tokenizer) -> None:
    batch = phrase_batch(batch_examples, tokenizer)
    for number, example in enumerate(batch_examples):
        length = len(example.tokens) + 2
        ids = batch.paragraph_ids[number].tolist()
        assert ids[:length] == [tokenizer.cls_id, *example.tokens.ids.tolist(), tokenizer.sep_id]
        assert set(ids[length:]) <= {tokenizer.pad_id}
        assert batch.paragraph_mask[number].tolist() == [1] * length + [0] * (len(ids) - length)
        words = len(example.tokens.word_starts)
        assert (batch.first_piece[number, words:] == -1).all()
        for word, (first, last) in enumerate(
            zip(batch.first_piece[number, :words], batch.last_piece[number, :words], strict=True)
        ):
            # one special token before the text
            assert example.tokens.starts[first - 1] == example.tokens.word_starts[word]
            assert example.tokens.ends[last - 1] == example.tokens.word_ends[word]


def test_the_same_answer_elsewhere_is_marked(batch_examples: list[Example], tokenizer: Tokenizer) -> None:
    batch = phrase_batch(batch_examples, tokenizer)
    marked = {
        (row, other, text_of(batch_examples[other], word, length))
        for row, other, word, length in batch.same_answer.tolist()
    }
    assert marked == {
        (0, 1, "new york"),
        (1, 2, "judge"),
        (3, 0, "york"),
        (4, 0, "judge"),
    }


def test_strangers_and_intruders_come_after_the_rest(
    batch_examples: list[Example], tokenizer: Tokenizer
) -> None:
    own, stranger = batch_examples[:2], batch_examples[2]
    intruder = stranger.questions[0]
    batch = phrase_batch(own, tokenizer, None, [stranger], [(0, intruder), (2, own[0].questions[0])])
    assert batch.asked == 4
    assert batch.own.tolist() == [0, 0, 1, 1, 0, 2]
    assert len(batch.paragraph_ids) == 3
    assert batch.question_ids[4, 1 : 1 + len(intruder.ids)].tolist() == intruder.ids.tolist()
    assert batch.gold[:, 0].max() < batch.asked
    assert (1, 2) in {(row, other) for row, other, _, _ in batch.same_answer.tolist()}  # strangers count


def test_teacher_logits_are_padded_with_minus_infinity(
    batch_examples: list[Example], tokenizer: Tokenizer
) -> None:
    teacher: dict[str, Teacher] = {}
    for example in batch_examples:
        for number, question in enumerate(example.questions):
            words = len(example.tokens.word_starts)
            rows = np.arange(words, dtype=np.float16) + number
            teacher[question.question_id] = (rows, -rows)
    batch = phrase_batch(batch_examples, tokenizer, teacher, [], [(2, batch_examples[0].questions[0])])
    assert batch.teacher_start is not None
    assert batch.teacher_end is not None
    assert batch.teacher_start.shape == (batch.asked, batch.first_piece.shape[1])
    words = len(batch_examples[2].tokens.word_starts)
    assert batch.teacher_start[4, :words].tolist() == list(range(words))
    assert (batch.teacher_start[4, words:] == -torch.inf).all()
    assert (batch.teacher_end[4, :words] == -batch.teacher_start[4, :words]).all()


@pytest.mark.parametrize("has_types", [True, False])
def test_reader_batch(batch_examples: list[Example], tokenizer: Tokenizer, has_types: bool) -> None:
    pairs = [(e, q) for e in batch_examples for q in e.questions]
    batch = reader_batch(pairs, tokenizer, has_types)
    for row, (example, question) in enumerate(pairs):
        head = [tokenizer.cls_id, *question.ids.tolist(), *[tokenizer.sep_id] * (1 if has_types else 2)]
        body = [*example.tokens.ids.tolist(), tokenizer.sep_id]
        length = len(head) + len(body)
        assert batch.ids[row, :length].tolist() == head + body
        assert batch.mask[row].tolist() == [1] * length + [0] * (batch.ids.shape[1] - length)
        assert batch.types[row, :length].tolist() == [0] * len(head) + [1] * len(body)
        for word, piece in enumerate(example.tokens.first_piece.tolist()):
            assert batch.ids[row, batch.first_piece[row, word]] == example.tokens.ids[piece]
        for word, piece in enumerate(example.tokens.last_piece.tolist()):
            assert batch.ids[row, batch.last_piece[row, word]] == example.tokens.ids[piece]
    for row, word, length in batch.gold.tolist():
        example, question = pairs[row]
        assert text_of(example, word, length) in question.answers
    assert len(pairs) - 1 not in batch.gold[:, 0].tolist()  # no gold: "not in the text"


def test_moving_a_batch_moves_tensors_and_keeps_the_rest(
    batch_examples: list[Example], tokenizer: Tokenizer
) -> None:
    moved = phrase_batch(batch_examples, tokenizer).to(torch.device("meta"))
    assert moved.gold.is_meta
    assert moved.asked == 5
    assert moved.teacher_start is None


def test_gold_band_marks_exactly_the_listed_places() -> None:
    marks = gold_band(torch.tensor([[0, 1, 2], [1, 0, 0]]), (2, 3, 4))
    assert marks.nonzero().tolist() == [[0, 1, 2], [1, 0, 0]]
    assert not gold_band(torch.zeros((0, 3), dtype=torch.long), (2, 3, 4)).any()
