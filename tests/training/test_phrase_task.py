"""The phrase task with negatives: they enter the loss where they should, and are learned from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tiny import PEOPLE, TOWNS
from torch._dynamo.testing import CompileCounterWithBackend

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.dense.backbone import load_backbone
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.dense.phrases import phrase_logits, word_parts
from denspi.dense.torch_encoder import torch_encoder
from denspi.search.scoring import phrase_scores
from denspi.text.tokens import Tokenizer
from denspi.training.batches import phrase_batch
from denspi.training.examples import Example, Limits, make_examples
from denspi.training.loop import LoopSettings, fit
from denspi.training.negatives import INTRUDERS
from denspi.training.phrase_task import PhraseTask, phrase_losses
from denspi.training.settings import PhraseLoss, PhraseStage
from denspi.vectors import MAX_PHRASE_WORDS


@pytest.mark.parametrize("negatives", ["paper", "similar_question"])
def test_questions_without_an_answer_enter_the_reading_loss_alone(
    tiny: Path, examples: list[Example], tokenizer: Tokenizer, negatives: Any
) -> None:
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4))
    loss = PhraseLoss(in_batch=1.0, distillation=1.0, no_answer=True)
    words = {q.question_id: len(e.tokens.word_starts) for e in examples for q in e.questions}
    teacher = {
        name: (torch.zeros(n).half().numpy(), torch.zeros(n).half().numpy()) for name, n in words.items()
    }
    rivals = different_questions(examples)
    stage = PhraseStage(loss=loss, batch=4, negatives=negatives)
    task = PhraseTask(model, tokenizer, rivals, [], stage, 1, teacher)
    plain = PhraseTask(model, tokenizer, rivals, [], PhraseStage(loss=loss, batch=4), 1, teacher)
    seen = 0
    for items in task.order(0)[:5]:
        batch = task.collate(items, 0)
        own = plain.collate(items, 0)
        assert batch.asked == len(own.own) == own.asked
        assert torch.equal(batch.gold, own.gold)
        seen += len(batch.own) - batch.asked
        _, parts = task.loss(batch)
        _, without = plain.loss(own)
        assert all(part.isfinite() for part in parts.values())
        assert torch.allclose(parts["distillation"], without["distillation"], atol=1e-4)
        if negatives == "paper":  # no further paragraph: the in-batch loss is the same
            assert torch.allclose(parts["in_batch"], without["in_batch"], atol=1e-4)
            assert len(batch.paragraph_ids) == len(items)
        again = task.collate(items, 0)
        assert torch.equal(again.question_ids, batch.question_ids)
    assert seen > 5


def test_the_loss_has_the_weights_and_the_temperature_of_the_settings(
    tiny: Path, examples: list[Example], tokenizer: Tokenizer
) -> None:
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4)).eval()
    words = {q.question_id: len(e.tokens.word_starts) for e in examples for q in e.questions}
    teacher = {name: (np.arange(n, dtype=np.float16), np.zeros(n, np.float16)) for name, n in words.items()}
    told = []
    for temperature in (1.0, 3.0):
        loss = PhraseLoss(reading=2.0, in_batch=0.5, distillation=0.25, temperature=temperature)
        task = PhraseTask(model, tokenizer, examples, [], PhraseStage(loss=loss), 1, teacher)
        total, parts = task.loss(task.collate([0, 1, 2], 0))
        expected = 2 * parts["reading"] + 0.5 * parts["in_batch"] + 0.25 * parts["distillation"]
        torch.testing.assert_close(total, expected)
        told.append(parts)
    assert torch.equal(told[0]["reading"], told[1]["reading"])
    assert not torch.allclose(told[0]["distillation"], told[1]["distillation"], rtol=0.05)


def test_asked_paragraphs_are_drawn_anew_beside_all_written_ones(
    tiny: Path, examples: list[Example], tokenizer: Tokenizer
) -> None:
    written, asked = examples[:7], examples[7:37]
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4))
    task = PhraseTask(model, tokenizer, written, [], PhraseStage(batch=4, asked=10), 1, None, asked)
    epochs = [{n for batch in task.order(epoch) for n in batch} for epoch in range(3)]
    for numbers in epochs:
        assert set(range(7)) < numbers
        assert len(numbers) == 17
    assert len(set.union(*epochs)) > 27
    assert task.order(1) == task.order(1)


def test_the_loss_is_traced_whole_for_all_sizes(
    tiny: Path, examples: list[Example], tokenizer: Tokenizer
) -> None:
    """What a GPU compiles gives the same numbers and gradients; here no code is made of the trace."""
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4))
    loss = PhraseLoss(in_batch=1.0, distillation=1.0, no_answer=True)
    flat = {
        q.question_id: np.zeros(len(e.tokens.word_starts), np.float16) for e in examples for q in e.questions
    }
    stage = PhraseStage(loss=loss, batch=4, negatives="paper")
    teacher = {name: (row, row) for name, row in flat.items()}
    task = PhraseTask(model, tokenizer, different_questions(examples), [], stage, 1, teacher)
    traces = CompileCounterWithBackend("aot_eager")
    traced = torch.compile(phrase_losses, dynamic=True, fullgraph=True, backend=traces)
    for size in (4, 3, 7, 5):
        batch = task.collate(list(range(size)), 0)
        seen = []
        for task.losses in (phrase_losses, traced):
            model.zero_grad()
            total, parts = task.loss(batch)
            total.backward()  # type: ignore[no-untyped-call]
            gradients = [p.grad for p in model.parameters() if p.grad is not None]
            seen.append([*parts.values(), *gradients])
        for plain, other in zip(*seen, strict=True):
            assert torch.allclose(plain, other, atol=1e-5)
    assert traces.frame_count <= 2  # with questions that have no answer, and without


def test_what_is_trained_is_what_is_searched(tiny: Path, tokenizer: Tokenizer) -> None:
    """Every phrase has the score that a search gives it: words of several pieces, and borders within one."""
    contexts = ["zoe42 lives in qx9 , 42nd street", "\u200bada\u200blives in oslo", "who"]
    paragraphs = tuple(
        SquadParagraph(context, (SquadQuestion(context, f"who is {context} ?", (SquadAnswer(answer, 0),)),))
        for context, answer in zip(contexts, ("qx9", "oslo", "who"), strict=True)
    )
    batch = phrase_batch(make_examples([SquadArticle("A", paragraphs)], tokenizer, Limits()), tokenizer)
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4, "product")).eval()
    with torch.no_grad():
        _, _, trained = phrase_logits(
            model.questions(batch.question_ids, batch.question_mask),
            word_parts(
                model.paragraphs(batch.paragraph_ids, batch.paragraph_mask),
                batch.first_piece,
                batch.last_piece,
            ),
            batch.first_piece >= 0,
            batch.last_piece >= 0,
            MAX_PHRASE_WORDS,
        )
    encoder = torch_encoder(model, tokenizer)
    questions = encoder.encode_questions([f"who is {context} ?" for context in contexts])
    for number, paragraph in enumerate(encoder.encode_paragraphs(contexts)):
        words = len(paragraph)
        searched = phrase_scores(questions, paragraph)
        np.testing.assert_allclose(trained[:, number, :words].numpy(), searched, atol=1e-4)
        assert (trained[:, number, words:] == -torch.inf).all()
    assert (batch.first_piece[1] == -1).any()


def different_questions(examples: list[Example]) -> list[Example]:
    """The same paragraphs; each asks one kind of question only, so that others have no answer there."""
    kept = [replace(e, questions=(e.questions[n % 3],)) for n, e in enumerate(examples)]
    assert len({q.text for e in kept for q in e.questions}) == 3
    return kept


def one_fact_each(answers: list[str], tokenizer: Tokenizer) -> list[Example]:
    """Ten people in five articles: "where is ada ?" has an answer in ada's own paragraph only."""
    paragraphs = [
        SquadParagraph(
            f"{person} lives in {answer} .",
            (SquadQuestion(person, f"which town is {person} in ?", (SquadAnswer(answer, 0),)),),
        )
        for person, answer in zip(PEOPLE, answers, strict=True)
    ]
    articles = [SquadArticle(str(n), tuple(paragraphs[2 * n : 2 * n + 2])) for n in range(5)]
    return make_examples(articles, tokenizer, Limits())


@pytest.mark.parametrize("negatives", ["paper", "similar_question"])
def test_what_has_no_answer_is_learned(
    tiny: Path, tmp_path: Path, tokenizer: Tokenizer, negatives: Any
) -> None:
    """After training, the best phrase beats the bias for every asked question and for no intruder."""
    facts = one_fact_each(TOWNS, tokenizer)
    torch.manual_seed(1)
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4))
    stage = PhraseStage(loss=PhraseLoss(no_answer=True), batch=10, negatives=negatives)
    task = PhraseTask(model, tokenizer, facts, facts, stage, 1)
    loop = LoopSettings(epochs=80, learning_rate=5e-3, validate_every_epochs=80)
    assert fit(task, loop, 1, tmp_path, torch.device("cpu"))["em"] == 100
    batch = task.collate(list(range(10)), 0)
    assert len(batch.own) >= 2 * batch.asked == 20
    with torch.no_grad():
        parts = word_parts(
            model.paragraphs(batch.paragraph_ids, batch.paragraph_mask), batch.first_piece, batch.last_piece
        )
        questions = model.questions(batch.question_ids, batch.question_mask)
        _, _, phrases = phrase_logits(questions, parts, batch.first_piece >= 0, batch.last_piece >= 0, 20)
    best = phrases[torch.arange(len(batch.own)), batch.own].flatten(1).max(1).values
    has_answer = best > model.no_answer_bias
    assert has_answer[: batch.asked].all()
    assert not has_answer[batch.asked :].any()


@pytest.mark.parametrize("negatives", ["paper", "similar_question"])
def test_a_paragraph_that_reads_the_answer_is_no_negative(
    tiny: Path, tokenizer: Tokenizer, negatives: Any
) -> None:
    facts = one_fact_each([TOWNS[n // 5] for n in range(10)], tokenizer)  # two towns only
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4))
    stage = PhraseStage(loss=PhraseLoss(no_answer=True), batch=10, negatives=negatives)
    task = PhraseTask(model, tokenizer, facts, [], stage, 1)
    items = list(range(10))
    assert task.neighbours is not None
    found = INTRUDERS[negatives](task.neighbours, items, 1, 0)
    differs = [
        pair for pair in found.pairs if facts[pair[0]].text.split()[3] != facts[pair[1]].text.split()[3]
    ]
    assert 0 < len(differs) < len(found.pairs)
    batch = task.collate(items, 0)
    assert batch.own[batch.asked :].tolist() == [row for row, _ in differs]
