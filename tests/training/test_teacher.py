"""The teacher's logits: kept whole or not at all, and read back only where they fit."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import save_encoder

from denspi.corpus.squad import SquadArticle, read_squad
from denspi.dense.backbone import load_backbone
from denspi.dense.model import ReaderModel
from denspi.dense.model_folder import save_model
from denspi.errors import ModelError, SettingsError
from denspi.training.batches import Teacher
from denspi.training.examples import Example, Limits
from denspi.training.teacher import teacher_logits

LIMITS = Limits(64, 16)


@pytest.fixture(scope="module")
def articles(tiny: Path) -> list[SquadArticle]:
    return read_squad(tiny / "facts.json")


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    save_encoder(tmp_path / "encoder")
    model = ReaderModel(load_backbone(str(tmp_path / "encoder")))
    save_model(model, tmp_path / "encoder" / "tokenizer.json", tmp_path / "teacher")
    return tmp_path / "teacher"


def ask(
    teacher: Path, articles: list[SquadArticle], examples: list[Example], limits: Limits = LIMITS
) -> dict[str, Teacher]:
    return teacher_logits(teacher, "all", articles, examples, limits, torch.device("cpu"))


def test_logits_are_computed_once(
    teacher: Path, articles: list[SquadArticle], examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask(teacher, articles, examples)
    monkeypatch.setattr("denspi.training.teacher.ask_teacher", None)
    second = ask(teacher, articles, examples)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_broken_file_is_one_line(
    teacher: Path, articles: list[SquadArticle], examples: list[Example], content: bytes
) -> None:
    (teacher / "teacher-all.npz").write_bytes(content)
    with pytest.raises(ModelError, match=r"teacher-all\.npz: was made for other data; remove it"):
        ask(teacher, articles, examples)


@pytest.mark.parametrize(
    "arrays", [{"x": np.zeros(3)}, {"start": np.zeros(3), "end": np.zeros(3)}, {"start": np.zeros(3)}]
)
def test_other_arrays_are_one_line(
    teacher: Path, articles: list[SquadArticle], examples: list[Example], arrays: dict[str, np.ndarray]
) -> None:
    np.savez(teacher / "teacher-all.npz", **arrays)
    with pytest.raises(ModelError, match=r"teacher-all\.npz: was made for other data; remove it"):
        ask(teacher, articles, examples)


def test_limits_beyond_the_teacher_are_refused(
    teacher: Path, articles: list[SquadArticle], examples: list[Example]
) -> None:
    with pytest.raises(SettingsError, match=r"limits: 136 pieces do not fit .*teacher's 128"):
        ask(teacher, articles, examples, Limits(100, 32))


def test_a_full_disk_leaves_nothing_half_written(
    teacher: Path, articles: list[SquadArticle], examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    before = set(teacher.iterdir())
    with pytest.raises(OSError, match="No space left"):
        ask(teacher, articles, examples)
    assert set(teacher.iterdir()) == before
