"""A teacher with a tokenizer of its own: its logits are of the words of the model that it teaches."""

import errno
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import LETTERS
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import BertProcessing
from transformers import BertConfig, BertModel

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.dense.backbone import Backbone, load_backbone
from denspi.dense.model import PhraseModel, PhraseSettings, ReaderModel
from denspi.dense.model_folder import load_reader_model, save_model
from denspi.errors import ModelError, SettingsError
from denspi.text.tokens import Tokenizer
from denspi.training import teacher
from denspi.training.batches import Teacher
from denspi.training.examples import Example, Limits, make_examples
from denspi.training.phrase_task import PhraseTask
from denspi.training.processes import alone_in
from denspi.training.reader_task import read_pairs
from denspi.training.settings import PhraseLoss, PhraseStage
from denspi.training.teacher import teacher_logits

LIMITS = Limits(paragraph_pieces=20, question_pieces=16)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader of letters, for which what stands between spaces is one piece if it is more than letters."""
    folder = tmp_path_factory.mktemp("teacher")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{c}" for c in LETTERS)]
    backend = Backend(WordPiece({p: n for n, p in enumerate(pieces)}, unk_token="[UNK]"))
    backend.pre_tokenizer = WhitespaceSplit()
    backend.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    backend.save(str(folder / "tokenizer.json"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    encoder = BertModel(BertConfig(vocab_size=len(pieces), max_position_embeddings=64, **sizes))
    save_model(ReaderModel(Backbone(encoder)).eval(), folder / "tokenizer.json", folder)
    return folder


@pytest.fixture(scope="module")
def articles() -> list[SquadArticle]:
    def paragraph(person: str, town: str) -> SquadParagraph:
        asked = (("who is it ?", person), ("which town ?", town), ("what job ?", "baker"), ("what ?", "none"))
        questions = (SquadQuestion(f"{person} {q}", q, (SquadAnswer(answer, 0),)) for q, answer in asked)
        return SquadParagraph(f"{person} lives in {town}, and works as a baker.", tuple(questions))

    return [SquadArticle("A", (paragraph("ada", "oslo"), paragraph("bram", "lima")))]


@pytest.fixture(scope="module")
def learner(tiny: Path, articles: list[SquadArticle]) -> tuple[Tokenizer, list[Example]]:
    tokenizer = Tokenizer(tiny / "still" / "tokenizer.json")
    return tokenizer, make_examples(articles, tokenizer, LIMITS)


@pytest.fixture(scope="module")
def logits(
    folder: Path, articles: list[SquadArticle], learner: tuple[Tokenizer, list[Example]]
) -> dict[str, Teacher]:
    return teacher_logits(folder, "0.05", articles, learner[1], LIMITS, CPU)


def test_logits_are_of_the_learners_words(
    folder: Path,
    articles: list[SquadArticle],
    learner: tuple[Tokenizer, list[Example]],
    logits: dict[str, Teacher],
) -> None:
    tokenizer = Tokenizer(folder / "tokenizer.json")
    theirs = make_examples(articles, tokenizer, LIMITS)
    pairs = [(e, q) for e in theirs for q in e.questions]
    found_alone = read_pairs(load_reader_model(folder), tokenizer, pairs)
    read = {q.question_id: pair for (_, q), pair in zip(pairs, found_alone, strict=True)}
    for ours, other in zip(learner[1], theirs, strict=True):
        assert len(other.tokens.word_starts) < len(ours.tokens.word_starts)  # it reads less far
        assert (other.tokens.last_piece == -1).any()  # and cannot part "oslo" from its comma
        for question in ours.questions:
            assert (question.question_id in logits) == bool(question.gold)
            if question.gold:
                for found, right in zip(
                    logits[question.question_id], read[question.question_id], strict=True
                ):
                    assert len(found) == len(ours.tokens.word_starts)
                    np.testing.assert_allclose(found[: len(right)], right, atol=1e-2)
                    assert (found[len(right) :] == -np.inf).all()


def test_a_loss_is_a_number_where_the_teacher_cannot_cut(
    tiny: Path, learner: tuple[Tokenizer, list[Example]], logits: dict[str, Teacher]
) -> None:
    tokenizer, examples = learner
    model = PhraseModel(load_backbone(str(tiny / "still")), PhraseSettings(4))
    stage = PhraseStage(loss=PhraseLoss(distillation=1.0))
    task = PhraseTask(model, tokenizer, examples, [], stage, 1, logits)
    total, parts = task.loss(task.collate([0, 1], 0))
    assert parts["distillation"] > 0
    total.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    assert total.isfinite()


def test_it_is_asked_once(
    folder: Path,
    articles: list[SquadArticle],
    learner: tuple[Tokenizer, list[Example]],
    logits: dict[str, Teacher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(teacher, "ask_teacher", None)
    again = teacher_logits(folder, "0.05", articles, learner[1], LIMITS, CPU)
    assert again.keys() == logits.keys()
    assert all(np.array_equal(again[name], logits[name]) for name in logits)


def test_of_runs_that_begin_together_one_asks(
    folder: Path,
    articles: list[SquadArticle],
    learner: tuple[Tokenizer, list[Example]],
    logits: dict[str, Teacher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(teacher, "say", said.append)
    monkeypatch.setattr(teacher, "ask_teacher", None)
    with ThreadPoolExecutor() as threads:
        with alone_in(folder, doing="asking"):
            late = threads.submit(teacher_logits, folder, "late", articles, learner[1], LIMITS, CPU)
            while not said:
                assert not late.done()
                time.sleep(0.01)
            shutil.copy(folder / "teacher-0.05.npz", folder / "teacher-late.npz")
        assert late.result().keys() == logits.keys()
    assert said[0].startswith(f"teacher: waiting for process {os.getpid()} on ")
    assert not (folder / ".lock").exists()


@pytest.mark.parametrize("damage", ["half", "other", "empty"])
def test_logits_that_are_not_of_these_questions_are_refused(
    folder: Path,
    articles: list[SquadArticle],
    learner: tuple[Tokenizer, list[Example]],
    logits: dict[str, Teacher],
    damage: str,
) -> None:
    path = folder / f"teacher-{damage}.npz"
    whole = (folder / "teacher-0.05.npz").read_bytes()
    path.write_bytes(whole[: {"half": len(whole) // 2, "other": len(whole), "empty": 0}[damage]])
    given = learner[1][:1] if damage == "other" else learner[1]
    with pytest.raises(ModelError) as caught:
        teacher_logits(folder, damage, articles, given, LIMITS, CPU)
    assert str(caught.value) == f"{path}: was made for other data; remove it to make it again"


def test_a_teacher_that_reads_too_little_is_refused(
    folder: Path, articles: list[SquadArticle], learner: tuple[Tokenizer, list[Example]]
) -> None:
    with pytest.raises(SettingsError, match=f"limits: 68 pieces do not fit the 64 of the teacher {folder}"):
        teacher_logits(folder, "short", articles, learner[1], Limits(48, 16), CPU)
    assert not list(folder.glob("*short*"))


def test_a_full_disk_leaves_nothing_half_written(
    folder: Path,
    articles: list[SquadArticle],
    learner: tuple[Tokenizer, list[Example]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    before = set(folder.iterdir())
    with pytest.raises(OSError, match="No space left"):
        teacher_logits(folder, "full", articles, learner[1], LIMITS, CPU)
    assert set(folder.iterdir()) == before
