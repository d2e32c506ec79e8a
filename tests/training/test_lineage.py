"""A stage goes on from the weights of another: where those are made anew, what was made of them is stale."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.tiny import settings
from tests.training.commands import LOOP, interrupt

from denspi.errors import ModelError
from denspi.settings import from_table
from denspi.training.filter_task import FilterTask
from denspi.training.run import Run
from denspi.training.settings import RunSettings

PHRASE = {"batch": 36, "loop": {**LOOP, "epochs": 1}}
FILTER: dict[str, Any] = {"batch": 8, "loop": {"epochs": 1, "checkpoint_every_seconds": 0}}


def train(table: dict[str, Any], output: Path) -> None:
    Run(from_table(RunSettings, table), output).run()


def change(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({name: weight + 0.001 for name, weight in weights.items()}, folder / "model.safetensors")


def test_stages_after_one_that_was_made_anew_are_refused_until_they_are_removed(
    tiny: Path, tmp_path: Path
) -> None:
    table = settings(tiny, phrase=PHRASE, negatives=PHRASE, filter=FILTER, calibrate={})
    train(table, tmp_path)
    train(table, tmp_path)  # nothing has changed
    change(tmp_path / "phrase")
    for name, before in (("negatives", "phrase"), ("filter", "negatives"), ("calibrate", "filter")):
        old = load_file(tmp_path / name / "model.safetensors")
        with pytest.raises(ModelError) as refused:
            train(table, tmp_path)
        made = f"{tmp_path / name}: was made from other weights than {tmp_path / before} holds now"
        assert str(refused.value) == f"{made}; remove it to make it again"
        assert all(
            torch.equal(old[key], w) for key, w in load_file(tmp_path / name / "model.safetensors").items()
        )
        shutil.rmtree(tmp_path / name)
    train(table, tmp_path)


def test_a_checkpoint_of_other_weights_is_refused(tiny: Path, tmp_path: Path) -> None:
    train(settings(tiny, phrase=PHRASE), tmp_path)
    table = settings(tiny, phrase=PHRASE, filter=FILTER)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, FilterTask, 2)
        with pytest.raises(KeyboardInterrupt):
            train(table, tmp_path)
    change(tmp_path / "phrase")
    with pytest.raises(
        ModelError, match=r"checkpoint\.pt: was made with the model before = '\w{16}', now '\w{16}'"
    ):
        train(table, tmp_path)
    shutil.rmtree(tmp_path / "filter")
    train(table, tmp_path)


def test_a_model_that_the_settings_name_may_be_gone_but_not_another(tiny: Path, tmp_path: Path) -> None:
    train(settings(tiny, phrase=PHRASE), tmp_path / "first")
    given = tmp_path / "first" / "phrase"
    table = settings(tiny, filter=FILTER | {"model": str(given)})
    train(table, tmp_path / "second")
    change(given)
    with pytest.raises(
        ModelError, match=f"second/filter: was made from other weights than {given} holds now"
    ):
        train(table, tmp_path / "second")
    shutil.rmtree(given)
    train(table, tmp_path / "second")
