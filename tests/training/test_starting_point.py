"""What a stage starts from fits the tokenizer and the limits of the run, or one line says so."""

import json
from pathlib import Path

import pytest
import torch
from tests.tiny import save_encoder, settings

from denspi.dense.backbone import load_backbone
from denspi.dense.model import PhraseModel, PhraseSettings, ReaderModel
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.errors import ModelError, SettingsError
from denspi.settings import from_table
from denspi.text.tokens import Tokenizer
from denspi.training.run import Run
from denspi.training.settings import RunSettings
from denspi.training.starting_point import starting_backbone


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


def test_dropout_is_the_encoders_own_or_what_is_set(tiny: Path, tmp_path: Path) -> None:
    """In every stage: a later one loads what the one before has saved."""
    tokenizer = Tokenizer(tiny / "encoder" / "tokenizer.json")
    for given, expected in (({}, 0.1), ({"dropout": 0}, 0.0), ({"dropout": 0.3}, 0.3)):
        run = from_table(RunSettings, settings(tiny, phrase={}) | given)
        model = PhraseModel(starting_backbone(run, tokenizer, torch.device("cpu")), PhraseSettings(4))
        folder = tmp_path / str(expected)
        save_model(model, tiny / "encoder" / "tokenizer.json", folder)
        for each in (model, load_phrase_model(folder)):
            found = {module.p for module in each.modules() if isinstance(module, torch.nn.Dropout)}
            assert found == {expected}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"dropout": 1.0}, r"dropout lies in \[0, 1\)"),
        ({"dropout": 0.0, "lstm": {}}, "dropout is of the encoder's weights, which lstm"),
        ({"dropout": 0.0, "start": "reader"}, "dropout is of the encoder's weights, which lstm"),
    ],
)
def test_dropout_that_would_not_be_used_is_refused(tiny: Path, given: dict[str, object], line: str) -> None:
    with pytest.raises(SettingsError, match=line):
        from_table(RunSettings, settings(tiny, phrase={}) | given)


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
