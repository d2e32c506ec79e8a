"""Models on disk: loaded whole, or refused in one line."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.tiny import save_encoder

from denspi.dense.backbone import load_backbone
from denspi.dense.model import PhraseModel, PhraseSettings, ReaderModel
from denspi.dense.model_folder import load_phrase_model, load_reader_model, save_model
from denspi.errors import ModelError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_encoder(tmp_path / "encoder")
    model = PhraseModel(load_backbone(str(tmp_path / "encoder")), PhraseSettings(4))
    save_model(model, tmp_path / "encoder" / "tokenizer.json", tmp_path / "model")
    return tmp_path / "model"


def refused(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_phrase_model(folder)
    message = str(caught.value)
    assert str(folder) in message
    assert "\n" not in message
    return message


def change_record(folder: Path, **values: object) -> None:
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**record, **values}))


def test_readers_and_half_precision(tmp_path: Path) -> None:
    save_encoder(tmp_path / "encoder")
    reader = ReaderModel(load_backbone(str(tmp_path / "encoder")))
    for half, tolerance in ((False, 0.0), (True, 1e-3)):
        folder = tmp_path / f"reader-{half}"
        save_model(reader, tmp_path / "encoder" / "tokenizer.json", folder, half)
        loaded = load_reader_model(folder)
        for name, weight in reader.state_dict().items():
            assert loaded.state_dict()[name].dtype == torch.float32
            assert torch.allclose(loaded.state_dict()[name], weight, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "tokenizer.json"])
def test_a_file_is_missing(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert refused(saved).endswith(f"not a trained model folder, {name} is missing")


def test_a_model_of_another_kind_or_layout(saved: Path) -> None:
    with pytest.raises(ModelError, match="holds a phrase model of layout 1; expected a reader model"):
        load_reader_model(saved)
    change_record(saved, layout_version=7)
    assert "of layout 7; expected a phrase model of layout 1" in refused(saved)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"layout_version": 1, "kind": "phrase"}'])
def test_a_record_that_is_none(saved: Path, text: str) -> None:
    (saved / "model.json").write_text(text)
    assert "not a model record" in refused(saved)


def test_settings_and_configs_that_do_not_exist(saved: Path) -> None:
    change_record(saved, phrase={"coherency_dims": 4})
    assert "did you mean 'coherency_dim'?" in refused(saved)
    change_record(saved, phrase={"coherency_dim": 4}, encoder={"model_type": "no-such-encoder"})
    assert "not an encoder's config" in refused(saved)


def test_a_record_with_values_of_other_types_or_sizes(saved: Path) -> None:
    encoder = json.loads((saved / "model.json").read_text())["encoder"]
    change_record(saved, encoder=encoder | {"hidden_size": "wide"})
    assert "not an encoder's config" in refused(saved)
    change_record(saved, encoder=encoder, phrase={"coherency_dim": 999})
    assert "not a phrase model's settings (model.coherency_dim: 999 leaves nothing" in refused(saved)


def test_weights_that_do_not_fit(saved: Path) -> None:
    path = saved / "model.safetensors"
    weights = load_file(path)

    def refused_with(changed: dict[str, torch.Tensor]) -> str:
        save_file(changed, path)
        message = refused(saved)
        assert "weights do not fit model.json (1 missing, unknown or of another shape:" in message
        return message

    assert "start_filter.bias" in refused_with({k: v for k, v in weights.items() if k != "start_filter.bias"})
    assert "one_too_many" in refused_with({**weights, "one_too_many": torch.zeros(1)})
    name = "start_filter.weight"
    assert name in refused_with({**weights, name: weights[name][:, :-1].contiguous()})
    path.write_bytes(path.read_bytes()[:1000])
    assert "cannot be read" in refused(saved)


def test_a_tokenizer_with_more_pieces_than_the_weights(saved: Path) -> None:
    table = json.loads((saved / "tokenizer.json").read_text())
    table["model"]["vocab"]["oxen"] = 4000
    (saved / "tokenizer.json").write_text(json.dumps(table))
    assert "tokenizer.json: not the tokenizer of this model, it has 4001 pieces where" in refused(saved)


def test_encoder_folders(tmp_path: Path) -> None:
    def message(name: str) -> str:
        with pytest.raises(ModelError) as caught:
            load_backbone(name)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    save_encoder(tmp_path / "encoder")
    weights = load_file(tmp_path / "encoder" / "model.safetensors")
    folder = str(tmp_path / "encoder")
    path = tmp_path / "encoder" / "model.safetensors"
    name = "encoder.layer.1.output.dense.weight"
    save_file({k: v for k, v in weights.items() if k != name}, path, {"format": "pt"})
    expected = f"{folder}: weights do not fit the config (missing or of another shape: {name})"
    assert message(folder) == expected
    save_file({**weights, name: torch.zeros(3, 3)}, path, {"format": "pt"})
    assert message(folder) == expected
    path.write_bytes(b"nothing")
    assert "cannot be loaded as an encoder" in message(folder)
    path.unlink()
    assert message(folder) == f"{folder}: not an encoder folder, model.safetensors is missing"
    assert message(str(tmp_path / "no-such")).endswith("config.json is missing")
