"""A stage goes on from the weights of another: where those are made anew, what was made of them is stale."""

import json
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
    old = load_file(tmp_path / "negatives" / "model.safetensors")
    with pytest.raises(ModelError) as refused:
        train(table, tmp_path)
    made = f"{tmp_path / 'negatives'}: was not made from the weights that {tmp_path / 'phrase'} holds now"
    assert str(refused.value) == f"{made}; remove it to make it again"
    now = load_file(tmp_path / "negatives" / "model.safetensors")
    assert all(torch.equal(old[name], now[name]) for name in old)
    shutil.rmtree(tmp_path / "negatives")
    before = [path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")]
    with pytest.raises(
        ModelError, match="negatives: has to be made before filter, calibrate, which are there"
    ):
        train(table, tmp_path)
    assert before == [path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")]
    shutil.rmtree(tmp_path / "filter")
    shutil.rmtree(tmp_path / "calibrate")
    train(table, tmp_path)


def test_a_stage_that_does_not_say_what_it_was_made_from_is_refused(tiny: Path, tmp_path: Path) -> None:
    table = settings(tiny, phrase=PHRASE, filter=FILTER)
    train(table, tmp_path)
    for name in ("phrase", "filter"):
        path = tmp_path / name / "scores.json"
        record = json.loads(path.read_text())
        del record["made_from"]
        path.write_text(json.dumps(record))
    with pytest.raises(ModelError, match=r"filter: was not made from the weights that .*phrase holds now"):
        train(table, tmp_path)


def test_a_stage_whose_model_the_settings_name_no_more_is_refused(tiny: Path, tmp_path: Path) -> None:
    train(settings(tiny, phrase=PHRASE, negatives=PHRASE), tmp_path)
    with pytest.raises(
        ModelError, match="negatives: was made from another model, and the settings name none now"
    ):
        train(settings(tiny, negatives=PHRASE), tmp_path)


def test_a_reader_to_start_from_counts_too(tiny: Path, tmp_path: Path) -> None:
    train(settings(tiny, reader=PHRASE), tmp_path / "first")
    table = settings(tiny, start=str(tmp_path / "first" / "reader"), phrase=PHRASE, negatives=PHRASE)
    train(table, tmp_path / "second")
    train(table, tmp_path / "second")
    change(tmp_path / "first" / "reader")
    with pytest.raises(
        ModelError, match=r"second/phrase: was not made from the weights that .*first/reader holds"
    ):
        train(table, tmp_path / "second")


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
        ModelError, match=f"second/filter: was not made from the weights that {given} holds now"
    ):
        train(table, tmp_path / "second")
    shutil.rmtree(given)
    train(table, tmp_path / "second")
