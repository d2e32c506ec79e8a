"""The model of an index is found by its record, and another one is refused with a line that says so."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.build.conftest import make_documents

from denspi.build import model as model_module
from denspi.build.index import Index
from denspi.build.model import model_for_new_index
from denspi.build.workers import WorkerSettings
from denspi.dense import models
from denspi.errors import IndexDamagedError, ModelError
from denspi.index.writer import IndexWriter

HERE = WorkerSettings(processes=0)


@pytest.fixture
def own_model(model_folder: Path, tmp_path: Path) -> Path:
    """A copy that a test may move."""
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


@pytest.fixture
def index(own_model: Path, tmp_path: Path) -> Path:
    with Index.create(tmp_path / "index", str(own_model), workers=HERE) as index:
        index.add(make_documents(2))
        index.commit()
    return tmp_path / "index"


def add_one(index: Path, model: str | None = None) -> None:
    with Index.open(index, model=model, workers=HERE) as opened:
        opened.update(make_documents(3))
        opened.commit()


def test_found_where_it_was(index: Path) -> None:
    add_one(index)


def test_moved_away_it_must_be_named(index: Path, own_model: Path, tmp_path: Path) -> None:
    own_model.rename(tmp_path / "moved")
    with pytest.raises(ModelError, match=r"index: built with model '.*model' \(fingerprint .*--model"):
        add_one(index)
    Index.open(index).info()  # what needs no model goes on working
    add_one(index, str(tmp_path / "moved"))


def test_another_in_its_place_is_not_taken(index: Path, own_model: Path, other_model_folder: Path) -> None:
    shutil.rmtree(own_model)
    shutil.copytree(other_model_folder, own_model)
    with pytest.raises(ModelError, match="which is not there; name its folder with --model"):
        add_one(index)


def test_another_that_is_named_is_refused(index: Path, other_model_folder: Path) -> None:
    with pytest.raises(ModelError, match=r"built with model .*, but .*exported is [0-9a-f]{12}; pass"):
        Index.open(index, model=str(other_model_folder))


def test_who_holds_an_index_does_not_write_into_another_at_its_place(
    index: Path, other_model_folder: Path
) -> None:
    held = Index.open(index, workers=HERE)
    held.encoder()
    shutil.rmtree(index)
    with Index.create(index, str(other_model_folder), workers=HERE) as another:
        another.commit()
    for change in (lambda: held.update(make_documents(1)), lambda: held.delete("x"), held.refit):
        with pytest.raises(ModelError, match="built anew with another model; open it again"):
            change()
    add_one(index)  # nobody holds the lock


def test_an_unfinished_build_is_gone_on_with_by_its_own_model_only(
    model_folder: Path, other_model_folder: Path, tmp_path: Path
) -> None:
    with Index.create(tmp_path / "index", str(model_folder), workers=HERE) as index:
        index.add(make_documents(2))
        index._writing()[0].flush()
    with pytest.raises(Exception, match="the unfinished build is with model"):
        Index.create(tmp_path / "index", str(other_model_folder))


def test_a_packaged_model_is_recorded_by_name_and_found_anywhere(
    index: Path, own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = {"tiny": own_model.rename(tmp_path / "denspi-tiny")}
    for module in (models, model_module):
        monkeypatch.setattr(module, "packaged_models", lambda: packaged)
    assert model_for_new_index("tiny", "int8").record.name == "tiny"
    add_one(index)  # recorded by its old folder, found by its fingerprint


def test_a_model_that_cannot_index_is_refused(own_model: Path) -> None:
    whole = (own_model / "model.json").read_text()
    record = json.loads(whole)
    del record["files"]["quantizer.npz"]
    (own_model / "model.json").write_text(json.dumps(record))
    with pytest.raises(ModelError, match="has no quantizer, which an index needs"):
        model_for_new_index(str(own_model), "int8")
    (own_model / "model.json").write_text(whole)
    (own_model / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"not the file that model\.json describes"):
        model_for_new_index(str(own_model), "int8")
    with pytest.raises(ModelError, match="there is no such model"):
        model_for_new_index("nowhere", "int8")


@pytest.mark.parametrize(
    "settings",
    [
        {"window_pieces": "abc"},
        {"window_pieces": -1},
        {"window_pieces": 0},
        {"window_pieces": 1.5},
        {"window_overlap_pieces": -1},
    ],
)
def test_windows_that_nobody_recorded_are_a_damaged_index(
    settings: dict[str, str | int | float], model_folder: Path, tmp_path: Path
) -> None:
    record = replace(model_for_new_index(str(model_folder), "int8").record, settings=settings)
    with IndexWriter.create(tmp_path / "index", record) as writer:
        writer.commit()
    with pytest.raises(IndexDamagedError, match=r"index: its model record has windows of .*damaged$"):
        add_one(tmp_path / "index")
    with pytest.raises(IndexDamagedError, match=r"damaged$"):
        Index.open(tmp_path / "index", model=str(model_folder))
    Index.open(tmp_path / "index").info()


def test_a_name_that_no_system_takes_is_one_line(model_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be a model folder") as refused:
        model_for_new_index("x" * 4000, "int8")
    assert len(str(refused.value)) < 300
    known = model_for_new_index(str(model_folder), "int8").record
    record = replace(known, name="/" + "x" * 4000)
    with IndexWriter.create(tmp_path / "index", record) as writer:
        writer.commit()
    with pytest.raises(ModelError, match="which is not there; name its folder with --model") as missing:
        add_one(tmp_path / "index")
    assert len(str(missing.value)) < 600
    add_one(tmp_path / "index", str(model_folder))
