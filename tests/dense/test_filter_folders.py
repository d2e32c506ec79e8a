"""Thresholds and codecs travel with the model: saved, loaded, exported, and never another model's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.exported import TEXTS, save_trained

from denspi.dense.compact import CompactQuantizer, save_compact
from denspi.dense.compact_fit import fit_compact_quantizer
from denspi.dense.export import ExportSettings, Traced, trace_phrase_model, write_runtime
from denspi.dense.filter import FilterThresholds, kept_starts
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.dense.models import open_encoder
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.quantizer import Quantizer, fit_code, save_quantizer
from denspi.dense.runtime_folder import fingerprint, hash_files, read_record
from denspi.errors import ModelError
from denspi.vectors import QuestionVectors

THRESHOLDS = FilterThresholds(float(np.float32(-0.1)), 0.25)
FLOAT = ExportSettings("float")


def some_quantizer(vector_dim: int = 12) -> Quantizer:
    random = np.random.default_rng(0)
    return Quantizer(
        *(fit_code(random.normal(size=(40, d)).astype(np.float32)) for d in (vector_dim, vector_dim, 4, 4))
    )


def some_compact(vector_dim: int = 12, seed: int = 0) -> CompactQuantizer:
    random = np.random.default_rng(seed)
    rows = [random.normal(size=(40, d)).astype(np.float32) for d in (vector_dim, vector_dim, 4, 4)]
    asked = random.normal(size=(20, vector_dim)).astype(np.float32)
    return fit_compact_quantizer(*rows, QuestionVectors(asked, asked, asked[:, 0]), vector_bytes=8)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that no filter stage has seen."""
    return save_trained(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def trained(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with thresholds and codecs."""
    folder = tmp_path_factory.mktemp("filter") / "trained"
    save_complete(plain, folder)
    return folder


def save_complete(plain: Path, folder: Path) -> None:
    model = load_phrase_model(plain)
    model.filter_thresholds, model.quantizer = THRESHOLDS, some_quantizer()
    model.compact = some_compact()
    save_model(model, plain / "tokenizer.json", folder)


@pytest.fixture(scope="module")
def traced(trained: Path) -> Traced:
    return trace_phrase_model(trained)


def test_a_folder_without_them_loads(plain: Path) -> None:
    model = load_phrase_model(plain)
    assert model.filter_thresholds is None
    assert model.quantizer is None
    assert model.compact is None
    assert not {"filter", "quantizer", "compact"} & json.loads((plain / "model.json").read_text()).keys()
    assert open_encoder(plain).quantizer is None


def test_saved_and_loaded_they_are_the_same(trained: Path) -> None:
    model = load_phrase_model(trained)
    assert model.filter_thresholds == THRESHOLDS
    assert model.quantizer is not None
    assert model.quantizer.fingerprint == some_quantizer().fingerprint
    assert model.compact is not None
    assert model.compact.fingerprint == some_compact().fingerprint
    encoder = open_encoder(trained)
    assert encoder.filter_thresholds == THRESHOLDS
    assert encoder.quantizer is not None
    assert encoder.compact is not None
    assert encoder.codec("compact").fingerprint == some_compact().fingerprint


def test_saving_a_model_without_them_takes_the_old_ones_away(plain: Path, tmp_path: Path) -> None:
    save_complete(plain, tmp_path)
    save_model(load_phrase_model(plain), plain / "tokenizer.json", tmp_path)
    assert not (tmp_path / "quantizer.npz").exists()
    assert not (tmp_path / "compact.npz").exists()
    assert load_phrase_model(tmp_path).filter_thresholds is None


def test_a_model_with_a_quantizer_alone_loads(plain: Path, traced: Traced, tmp_path: Path) -> None:
    model = load_phrase_model(plain)
    model.filter_thresholds, model.quantizer = THRESHOLDS, some_quantizer()
    save_model(model, plain / "tokenizer.json", tmp_path / "trained")
    assert load_phrase_model(tmp_path / "trained").compact is None
    write_runtime(replace(traced, compact=None), tmp_path / "exported", FLOAT)
    encoder = load_encoder(tmp_path / "exported")
    assert encoder.quantizer is not None
    assert encoder.compact is None


def test_another_models_compact_code_is_refused(plain: Path, tmp_path: Path) -> None:
    save_complete(plain, tmp_path)
    save_compact(some_compact(seed=1), tmp_path / "compact.npz")
    with pytest.raises(ModelError, match=r"compact\.npz: not the compact code of this model"):
        load_phrase_model(tmp_path)
    save_compact(some_compact(vector_dim=11), tmp_path / "compact.npz")
    record = json.loads((tmp_path / "model.json").read_text())
    record["compact"] = some_compact(vector_dim=11).fingerprint
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(ModelError, match=r"compact\.npz: not the compact code of this model"):
        load_phrase_model(tmp_path)
    (tmp_path / "compact.npz").unlink()
    with pytest.raises(ModelError, match=r"compact\.npz: not a compact code"):
        load_phrase_model(tmp_path)


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
    assert {"quantizer.npz", "compact.npz"} <= dict(read_record(tmp_path).files).keys()
    encoder = load_encoder(tmp_path)
    assert encoder.filter_thresholds == THRESHOLDS
    assert encoder.quantizer is not None
    assert encoder.quantizer.fingerprint == some_quantizer().fingerprint
    assert encoder.compact is not None
    assert encoder.compact.fingerprint == some_compact().fingerprint
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
        "not compact": replace(traced, compact=None),
        "other compact": replace(traced, compact=some_compact(seed=1)),
        "other quantizer": replace(
            traced, quantizer=replace(some_quantizer(), end=fit_code(np.ones((2, 12), np.float32)))
        ),
    }
    for name, each in others.items():
        write_runtime(each, tmp_path / name, FLOAT)
    found = {name: fingerprint(tmp_path / name) for name in others}
    for name in ("again", "not compact", "other compact"):  # an index of compact rows names its code itself
        assert found.pop(name) == found["same"]
    assert len(set(found.values())) == len(found)
    assert load_encoder(tmp_path / "unfiltered").filter_thresholds is None


def test_an_export_without_codecs_takes_the_old_ones_away(traced: Traced, tmp_path: Path) -> None:
    write_runtime(traced, tmp_path, FLOAT)
    write_runtime(replace(traced, quantizer=None, compact=None), tmp_path, FLOAT)
    assert not (tmp_path / "quantizer.npz").exists()
    assert not (tmp_path / "compact.npz").exists()
    assert load_encoder(tmp_path).quantizer is None


@pytest.mark.parametrize("name", ["quantizer.npz", "compact.npz"])
def test_a_damaged_or_foreign_codec_is_one_line(traced: Traced, tmp_path: Path, name: str) -> None:
    write_runtime(traced, tmp_path, FLOAT)
    path = tmp_path / name
    if name == "quantizer.npz":
        save_quantizer(some_quantizer(vector_dim=11), path)
    else:
        save_compact(some_compact(vector_dim=11), path)
    with pytest.raises(ModelError, match=rf"{name}: not the file that model\.json describes"):
        load_encoder(tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    record["files"] |= dict(hash_files(tmp_path, [name]))
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(ModelError, match=rf"{name}: made for vectors of other sizes"):
        load_encoder(tmp_path)
    path.unlink()
    with pytest.raises(ModelError, match=rf"incomplete, {name} is missing"):
        load_encoder(tmp_path)
