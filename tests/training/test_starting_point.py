"""What a stage starts from fits the tokenizer and the limits of the run, or one line says so."""

import json
from pathlib import Path

import pytest
from tests.tiny import save_encoder, settings

from denspi.dense.backbone import load_backbone
from denspi.dense.model import PhraseModel, PhraseSettings, ReaderModel
from denspi.dense.model_folder import save_model
from denspi.errors import ModelError, SettingsError
from denspi.settings import from_table
from denspi.training.run import Run
from denspi.training.settings import RunSettings


def other_tokenizer(encoder: Path, path: Path) -> Path:
    """As many pieces, two of them in each other's place: ids all fit, and mean something else."""
    table = json.loads((encoder / "tokenizer.json").read_text())
    pieces = table["model"]["vocab"]
    pieces["oslo"], pieces["lima"] = pieces["lima"], pieces["oslo"]
    path.write_text(json.dumps(table))
    return path


def test_a_reader_with_another_tokenizer_is_no_start(tiny: Path, tmp_path: Path) -> None:
    reader = ReaderModel(load_backbone(str(tiny / "encoder")))
    save_model(reader, other_tokenizer(tiny / "encoder", tmp_path / "other.json"), tmp_path / "reader")
    table = settings(tiny, start=str(tmp_path / "reader"), phrase={"loop": {"epochs": 1}})
    with pytest.raises(ModelError, match=r"reader: its tokenizer is not that of .*encoder; set encoder"):
        Run(from_table(RunSettings, table), tmp_path / "run").run()


@pytest.fixture
def half_done(tiny: Path, tmp_path: Path) -> Path:
    """A run whose phrase model is trained, and what follows is not."""
    model = PhraseModel(load_backbone(str(tiny / "encoder")), PhraseSettings(4))
    save_model(model, tiny / "encoder" / "tokenizer.json", tmp_path / "run" / "phrase")
    (tmp_path / "run" / "phrase" / "scores.json").write_text('{"settings": {}}')
    return tmp_path / "run"


def test_a_stage_does_not_go_on_with_another_tokenizer(tiny: Path, tmp_path: Path, half_done: Path) -> None:
    save_encoder(tmp_path / "encoder")
    other_tokenizer(tiny / "encoder", tmp_path / "encoder" / "tokenizer.json")
    table = settings(tiny, phrase={}, negatives={}) | {"encoder": str(tmp_path / "encoder")}
    with pytest.raises(ModelError, match="phrase: its tokenizer is not that of"):
        Run(from_table(RunSettings, table), half_done).run()


def test_a_stage_does_not_go_on_with_limits_beyond_its_model(tiny: Path, half_done: Path) -> None:
    table = settings(tiny, phrase={}, negatives={}) | {"limits": {"paragraph_pieces": 120}}
    with pytest.raises(SettingsError, match=r"172 pieces do not fit .*phrase's 128; lower them"):
        Run(from_table(RunSettings, table), half_done).run()


@pytest.mark.parametrize("text", ["", "[]", '{"held_out": {}}', '{"settings": 3}'])
def test_scores_that_are_none_are_named(tiny: Path, half_done: Path, text: str) -> None:
    (half_done / "phrase" / "scores.json").write_text(text)
    table = settings(tiny, phrase={})
    with pytest.raises(
        ModelError, match=r"scores\.json: not what a stage leaves; remove .*phrase to train it"
    ):
        Run(from_table(RunSettings, table), half_done).run()
