"""The mean of several models: its weights, what goes on from it, and what has none."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.tiny import save_encoder, settings
from tests.training.commands import LOOP, run_command, save_toml

from denspi.dense.backbone import load_backbone
from denspi.dense.filter import FilterThresholds
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.settings import from_table
from denspi.training.run import Run
from denspi.training.settings import RunSettings


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
    table: dict[str, Any] = settings(
        tiny, mean={"models": models}, report=str(tiny / "facts.json"), phrase={"batch": 4, "loop": still}
    )
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, f: t["mean"]["models"].pop(), "mean: models names at least two folders"),
        (lambda t, f: t.update(dropout=0.1), "mean goes on with models as they are"),
        (lambda t, f: t["mean"]["models"].append(str(f / "none")), "none: not a trained model folder"),
        (
            lambda t, f: t["mean"]["models"].append(str(other_split(t, f))),
            "other: not of the architecture of",
        ),
        (lambda t, f: t["mean"]["models"].append(str(other_size(f))), "other: not of the architecture of"),
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
    table = settings(tiny, mean={"models": models[:2]})
    change(table, tmp_path)
    config = save_toml(tmp_path / "run.toml", table)
    assert run_command(monkeypatch, config, "--output", tmp_path / "out") == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("denspi: ")]
    assert len(said) == 1
    assert message in said[0]
    assert not (tmp_path / "out" / "mean" / "scores.json").exists()


def other_split(table: dict[str, Any], folder: Path) -> Path:
    return save_phrase_model(folder / "other", Path(table["encoder"]), seed=9, coherency_dim=2)


def other_size(folder: Path) -> Path:
    save_encoder(folder / "wide", hidden_size=48)
    return save_phrase_model(folder / "other", folder / "wide", seed=9)
