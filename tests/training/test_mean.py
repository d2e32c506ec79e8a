"""The mean of several models: its weights, what goes on from it, and what has none."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.tiny import save_encoder, settings
from tests.training.commands import LOOP, interrupt, run_command, save_toml

from denspi.dense.backbone import load_backbone
from denspi.dense.filter import FilterThresholds
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.dense.onnx_encoder import load_encoder
from denspi.errors import ModelError, SettingsError
from denspi.settings import from_table
from denspi.training.filter_task import FilterTask
from denspi.training.run import Run
from denspi.training.settings import RunSettings
from denspi.training.thresholds import border_logits, choose_thresholds


def mean_settings(tiny: Path, models: list[str], **stages: Any) -> dict[str, Any]:
    """A run that begins with the mean of these models, whose own settings count."""
    table = settings(tiny, mean={"models": models}, **stages)
    del table["model"]
    return table


def save_phrase_model(folder: Path, encoder: Path, seed: int, coherency_dim: int = 4) -> Path:
    """The encoder, each weight a little off."""
    model = PhraseModel(load_backbone(str(encoder)), PhraseSettings(coherency_dim))
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in model.parameters():
            weights += 0.01 * torch.randn(weights.shape, generator=chance)
    model.filter_thresholds = FilterThresholds(0.1, 0.2)  # fits this one and no mean
    save_model(model, encoder / "tokenizer.json", folder)
    return folder


@pytest.fixture
def models(tiny: Path, tmp_path: Path) -> list[str]:
    return [str(save_phrase_model(tmp_path / f"model-{n}", tiny / "encoder", seed=n)) for n in range(3)]


def test_each_weight_is_the_mean_of_theirs_and_training_goes_on_from_it(
    tiny: Path, tmp_path: Path, models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    still = {**LOOP, "epochs": 1, "learning_rate": 1e-12}
    table = mean_settings(tiny, models, report=str(tiny / "facts.json"), phrase={"batch": 4, "loop": still})
    Run(from_table(RunSettings, table), tmp_path / "run").run()
    theirs = [load_file(Path(folder) / "model.safetensors") for folder in models]
    for stage in ("mean", "phrase"):
        mean = load_file(tmp_path / "run" / stage / "model.safetensors")
        for name, weights in mean.items():
            expected = torch.stack([each[name] for each in theirs]).double().mean(0)
            assert torch.allclose(weights.double(), expected, atol=1e-6), name
    assert load_phrase_model(tmp_path / "run" / "mean").filter_thresholds is None
    scores = json.loads((tmp_path / "run" / "mean" / "scores.json").read_text())
    trained = json.loads((tmp_path / "run" / "phrase" / "scores.json").read_text())
    assert scores["held_out"] == trained["held_out"]  # the same weights, read in the same way
    assert scores["report"] == trained["report"]
    capsys.readouterr()
    Run(from_table(RunSettings, table), tmp_path / "run").run()
    assert "mean: done before; remove" in capsys.readouterr().err


def test_filter_calibration_and_export_go_on_from_it(tiny: Path, tmp_path: Path, models: list[str]) -> None:
    loop = {"epochs": 1, "checkpoint_every_seconds": 0}
    stages = {"filter": {"batch": 8, "recall": 0.9, "loop": loop}, "calibrate": {}, "export": {}}
    table, output = mean_settings(tiny, models, **stages), tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, FilterTask, 2)
        with pytest.raises(KeyboardInterrupt):
            Run(from_table(RunSettings, table), output).run()
    for folder in models:
        shutil.rmtree(folder)  # what is done needs them no more
    run = Run(from_table(RunSettings, table), output)
    run.run()
    mean, last = (load_file(output / name / "model.safetensors") for name in ("mean", "calibrate"))
    assert all(torch.equal(mean[name], last[name]) for name in mean if "filter" not in name)
    table["filter"]["recall"] = 0.5  # too late: the filter is done, and stays as it is
    Run(from_table(RunSettings, table), output).run()
    exported = load_encoder(output / "export")
    assert exported.calibration == load_phrase_model(output / "calibrate").calibration
    texts = [each.text for each in run.held_out]
    logits = border_logits(run.held_out, exported.encode_paragraphs(texts))
    assert exported.filter_thresholds == choose_thresholds(logits, 0.9)


def test_other_models_are_not_taken_for_those_of_before(
    tiny: Path, tmp_path: Path, models: list[str]
) -> None:
    Run(from_table(RunSettings, mean_settings(tiny, models)), tmp_path / "run").run()
    turned = mean_settings(tiny, models[::-1])
    Run(from_table(RunSettings, turned), tmp_path / "run").run()  # it is the same mean
    with pytest.raises(
        ModelError, match=r"run/mean: was not made from the weights that .*model-0 and 1 more hold now"
    ):
        Run(from_table(RunSettings, mean_settings(tiny, models[:2])), tmp_path / "run").run()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, f: t["mean"]["models"].pop(), "mean: models names at least two folders"),
        (lambda t, f: t.update(dropout=0.1), "mean goes on with models as they are"),
        (lambda t, f: t.update(model={"linear_layer": True}), "leave out model, lstm, start and dropout"),
        (lambda t, f: t["mean"]["models"].append(str(f / "none")), "none: not a trained model folder"),
        (
            lambda t, f: t["mean"]["models"].append(str(shutil.copytree(t["mean"]["models"][0], f / "copy"))),
            "mean.models: two of them have the same weights",
        ),
        (
            lambda t, f: t["mean"]["models"].append(str(other_config(t, f))),
            "a mean needs models of one architecture",
        ),
        (
            lambda t, f: t["mean"]["models"].append(str(other_split(t, f))),
            "a mean needs models of one architecture",
        ),
        (
            lambda t, f: t["mean"]["models"].append(str(other_size(f))),
            "a mean needs models of one architecture",
        ),
    ],
)
def test_what_has_no_mean_is_one_line(
    tiny: Path,
    tmp_path: Path,
    models: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: Any,
    message: str,
) -> None:
    table = mean_settings(tiny, models[:2])
    change(table, tmp_path)
    config = save_toml(tmp_path / "run.toml", table)
    assert run_command(monkeypatch, config, "--output", tmp_path / "out") == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("denspi: ")]
    assert len(said) == 1
    assert message in said[0]
    assert not (tmp_path / "out" / "mean" / "scores.json").exists()


def test_models_that_are_missing_are_named_before_anything_is_trained(tiny: Path, tmp_path: Path) -> None:
    table = mean_settings(tiny, [str(tmp_path / "a"), str(tmp_path / "b")], reader={"loop": {"epochs": 1}})
    with pytest.raises(ModelError, match="a: not a trained model folder"):
        Run(from_table(RunSettings, table), tmp_path / "out")


def test_an_lstm_has_a_mean_and_no_export(tiny: Path, tmp_path: Path) -> None:
    lstm = {"embedding_dim": 8, "hidden_dim": 32, "layers": 1, "heads": 2}
    phrase = {"batch": 36, "loop": {**LOOP, "epochs": 1}}
    for seed in (1, 2):
        table = settings(tiny, lstm=lstm, phrase=phrase, seed=seed)
        Run(from_table(RunSettings, table), tmp_path / str(seed)).run()
    models = [str(tmp_path / str(seed) / "phrase") for seed in (1, 2)]
    Run(from_table(RunSettings, mean_settings(tiny, models)), tmp_path / "run").run()
    with pytest.raises(SettingsError, match="1/phrase: an LSTM runs in torch only"):
        Run(from_table(RunSettings, mean_settings(tiny, models, export={})), tmp_path / "other")


def other_config(table: dict[str, Any], folder: Path) -> Path:
    """All shapes are the same, and what is computed is not."""
    made = save_phrase_model(folder / "other", Path(table["encoder"]), seed=9)
    record = json.loads((made / "model.json").read_text())
    record["encoder"]["hidden_act"] = "relu"
    (made / "model.json").write_text(json.dumps(record))
    return made


def other_split(table: dict[str, Any], folder: Path) -> Path:
    return save_phrase_model(folder / "other", Path(table["encoder"]), seed=9, coherency_dim=2)


def other_size(folder: Path) -> Path:
    save_encoder(folder / "wide", hidden_size=48)
    return save_phrase_model(folder / "other", folder / "wide", seed=9)
