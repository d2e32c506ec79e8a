"""Thresholds and quantizer travel with the model: saved, loaded, exported, and never another model's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.exported import TEXTS, save_trained

from denspi.dense.export import ExportSettings, Traced, trace_phrase_model, write_runtime
from denspi.dense.filter import FilterThresholds, kept_starts
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.dense.models import open_encoder
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.quantizer import Quantizer, fit_code, save_quantizer
from denspi.dense.runtime_folder import fingerprint, hash_files, read_record
from denspi.errors import ModelError

THRESHOLDS = FilterThresholds(float(np.float32(-0.1)), 0.25)
FLOAT = ExportSettings("float")


def some_quantizer(vector_dim: int = 12) -> Quantizer:
    random = np.random.default_rng(0)
    return Quantizer(
        *(fit_code(random.normal(size=(40, d)).astype(np.float32)) for d in (vector_dim, vector_dim, 4, 4))
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that no filter stage has seen."""
    return save_trained(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def trained(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with thresholds and quantizer."""
    folder = tmp_path_factory.mktemp("filter") / "trained"
    save_complete(plain, folder)
    return folder


def save_complete(plain: Path, folder: Path) -> None:
    model = load_phrase_model(plain)
    model.filter_thresholds, model.quantizer = THRESHOLDS, some_quantizer()
    save_model(model, plain / "tokenizer.json", folder)


@pytest.fixture(scope="module")
def traced(trained: Path) -> Traced:
    return trace_phrase_model(trained)


def test_a_folder_without_them_loads(plain: Path) -> None:
    model = load_phrase_model(plain)
    assert model.filter_thresholds is None
    assert model.quantizer is None
    assert not {"filter", "quantizer"} & json.loads((plain / "model.json").read_text()).keys()
    assert open_encoder(plain).quantizer is None


def test_saved_and_loaded_they_are_the_same(trained: Path) -> None:
    model = load_phrase_model(trained)
    assert model.filter_thresholds == THRESHOLDS
    assert model.quantizer is not None
    assert model.quantizer.fingerprint == some_quantizer().fingerprint
    encoder = open_encoder(trained)
    assert encoder.filter_thresholds == THRESHOLDS
    assert encoder.quantizer is not None


def test_saving_a_model_without_them_takes_the_old_ones_away(plain: Path, tmp_path: Path) -> None:
    save_complete(plain, tmp_path)
    save_model(load_phrase_model(plain), plain / "tokenizer.json", tmp_path)
    assert not (tmp_path / "quantizer.npz").exists()
    assert load_phrase_model(tmp_path).filter_thresholds is None


def test_another_models_quantizer_is_refused(plain: Path, tmp_path: Path) -> None:
    save_complete(plain, tmp_path)
    save_quantizer(some_quantizer(vector_dim=11), tmp_path / "quantizer.npz")
    with pytest.raises(ModelError, match=r"quantizer\.npz: not the quantizer of this model"):
        load_phrase_model(tmp_path)
    (tmp_path / "quantizer.npz").unlink()
    with pytest.raises(ModelError, match=r"quantizer\.npz: not a quantizer"):
        load_phrase_model(tmp_path)


def test_thresholds_that_are_none_are_refused(plain: Path, tmp_path: Path) -> None:
    save_complete(plain, tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**record, "filter": {"start": "low", "end": 0.0}}))
    with pytest.raises(ModelError, match=r"model\.json: not a phrase model's settings"):
        load_phrase_model(tmp_path)


def test_an_exported_model_has_them(trained: Path, traced: Traced, tmp_path: Path) -> None:
    write_runtime(traced, tmp_path, FLOAT)
    assert "quantizer.npz" in dict(read_record(tmp_path).files)
    encoder = load_encoder(tmp_path)
    assert encoder.filter_thresholds == THRESHOLDS
    assert encoder.quantizer is not None
    assert encoder.quantizer.fingerprint == some_quantizer().fingerprint
    theirs = list(open_encoder(trained).encode_paragraphs(TEXTS))
    for ours, other in zip(encoder.encode_paragraphs(TEXTS), theirs, strict=True):
        assert (kept_starts(ours, THRESHOLDS) == kept_starts(other, THRESHOLDS)).all()


def test_the_fingerprint_covers_them(traced: Traced, tmp_path: Path) -> None:
    others = {
        "same": traced,
        "again": traced,
        "unfiltered": replace(traced, filter=None),
        "other threshold": replace(traced, filter=FilterThresholds(THRESHOLDS.start, 0.5)),
        "unquantized": replace(traced, quantizer=None),
        "other quantizer": replace(
            traced, quantizer=replace(some_quantizer(), end=fit_code(np.ones((2, 12), np.float32)))
        ),
    }
    for name, each in others.items():
        write_runtime(each, tmp_path / name, FLOAT)
    found = {name: fingerprint(tmp_path / name) for name in others}
    assert found.pop("again") == found["same"]
    assert len(set(found.values())) == len(found)
    assert load_encoder(tmp_path / "unfiltered").filter_thresholds is None


def test_an_export_without_a_quantizer_takes_the_old_one_away(traced: Traced, tmp_path: Path) -> None:
    write_runtime(traced, tmp_path, FLOAT)
    write_runtime(replace(traced, quantizer=None), tmp_path, FLOAT)
    assert not (tmp_path / "quantizer.npz").exists()
    assert load_encoder(tmp_path).quantizer is None


def test_a_damaged_or_foreign_quantizer_is_one_line(traced: Traced, tmp_path: Path) -> None:
    write_runtime(traced, tmp_path, FLOAT)
    path = tmp_path / "quantizer.npz"
    save_quantizer(some_quantizer(vector_dim=11), path)
    with pytest.raises(ModelError, match=r"quantizer\.npz: not the file that model\.json describes"):
        load_encoder(tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    record["files"] |= dict(hash_files(tmp_path, ["quantizer.npz"]))
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(ModelError, match=r"quantizer\.npz: made for vectors of other sizes"):
        load_encoder(tmp_path)
    path.unlink()
    with pytest.raises(ModelError, match=r"incomplete, quantizer\.npz is missing"):
        load_encoder(tmp_path)
