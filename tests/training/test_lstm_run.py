"""The LSTM baseline goes through the same runs: it learns, is reproducible, and its folder loads."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.tiny import save_tokenizer

from denspi.dense.lstm import LstmBackbone, LstmSettings
from denspi.dense.model_folder import load_phrase_model
from denspi.errors import SettingsError
from denspi.settings import from_table
from denspi.training.run import Run
from denspi.training.settings import RunSettings


def settings(tiny: Path, folder: Path, **more: Any) -> RunSettings:
    """A folder with a tokenizer.json and nothing else is enough."""
    (folder / "words").mkdir(exist_ok=True)
    save_tokenizer(folder / "words" / "tokenizer.json")
    table: dict[str, Any] = {
        "data": str(tiny / "facts.json"),
        "encoder": str(folder / "words"),
        "held_out_share": 0.2,
        "limits": {"paragraph_pieces": 64, "question_pieces": 16},
        "lstm": {"embedding_dim": 24, "hidden_dim": 32, "layers": 1, "heads": 2},
        "model": {"coherency_dim": 4},
    }
    return from_table(RunSettings, table | more)


def test_a_phrase_model_over_it_learns(tiny: Path, tmp_path: Path) -> None:
    stage = {"batch": 4, "loop": {"epochs": 6, "learning_rate": 1e-2}}
    Run(settings(tiny, tmp_path, phrase=stage), tmp_path / "run").run()
    scores = json.loads((tmp_path / "run" / "phrase" / "scores.json").read_text())
    assert scores["held_out"]["em"] > 60  # a guess is right in one of nine
    assert isinstance(load_phrase_model(tmp_path / "run" / "phrase").backbone, LstmBackbone)


def test_the_same_seed_gives_the_same_weights(tiny: Path, tmp_path: Path) -> None:
    stage = {"loop": {"epochs": 1}}
    both = {"coherency_dim": 4, "independent_encoders": True}
    for name in ("one", "two"):
        Run(settings(tiny, tmp_path, phrase=stage, model=both), tmp_path / name).run()
    one, two = (load_file(tmp_path / name / "phrase" / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert all((one[name] == two[name]).all() for name in one)


def test_embeddings_of_an_encoder_stay_as_they_are(tiny: Path, tmp_path: Path) -> None:
    table = load_file(tiny / "encoder" / "model.safetensors")["embeddings.word_embeddings.weight"]
    lstm = {
        "embeddings": "encoder",
        "embedding_dim": table.shape[1],
        "hidden_dim": 32,
        "layers": 1,
        "heads": 2,
    }
    stage = {"loop": {"epochs": 1, "learning_rate": 1e-2}}
    given = settings(tiny, tmp_path, phrase=stage, lstm=lstm, encoder=str(tiny / "encoder"))
    Run(given, tmp_path / "run").run()
    kept = load_file(tmp_path / "run" / "phrase" / "model.safetensors")["backbone.pieces.weight"]
    torch.testing.assert_close(kept / kept.std(), table / table.std())
    wrong = replace(given, lstm=LstmSettings(embeddings="encoder", embedding_dim=7))
    with pytest.raises(SettingsError, match=rf"set it to {table.shape[1]}"):
        Run(wrong, tmp_path / "wrong").run()


def test_one_encoder_at_a_time(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="lstm and start both say where the encoder comes from"):
        settings(tiny, tmp_path, start=str(tmp_path))
