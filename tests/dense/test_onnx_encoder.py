"""A model folder is loaded whole or not at all, and the line says what is wrong with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.exported import QUESTIONS, save_exported

from denspi.dense import models
from denspi.dense.models import find_model, open_encoder
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.runtime_folder import fingerprint, hash_files
from denspi.errors import MissingExtraError, ModelError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_exported(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(whole, tmp_path / "model"))


def rewrite(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        record = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(record | changes))

    return change


def describe_damage(folder: Path) -> None:
    """A graph that is no graph, described correctly."""
    (folder / "model.onnx").write_bytes(b"nothing that onnx knows")
    rewrite(files=dict(hash_files(folder, ["model.onnx", "tokenizer.json"])))(folder)


@pytest.mark.parametrize(
    ("breaks", "line"),
    [
        (shutil.rmtree, "model: there is no such model folder"),
        (lambda f: (f / "model.json").unlink(), "model: not a model folder, model.json is missing"),
        (lambda f: (f / "model.json").write_text("{"), "model.json: not a model record"),
        (lambda f: (f / "model.json").write_text("[]"), "model.json: not a model record"),
        (
            rewrite(layout_version=2),
            "model.json: layout version 2, this denspi reads 1; export the model again",
        ),
        (rewrite(kind="reader-onnx"), "holds a model of kind 'reader-onnx', expected 'phrase-onnx'"),
        (rewrite(max_pieces="many"), "model.json: not a model record ('max_pieces' is 'many'; expected int)"),
        (rewrite(colour="red"), "model.json: not a model record (unknown key 'colour'"),
        (rewrite(layout=None), "model.json: not a model record"),
        (rewrite(files={}), "model.json: not a model record"),
        (lambda f: (f / "model.onnx").unlink(), "model: incomplete, model.onnx is missing"),
        (lambda f: (f / "tokenizer.json").unlink(), "model: incomplete, tokenizer.json is missing"),
        (
            lambda f: (f / "model.onnx").write_bytes(b"half"),
            "model.onnx: not the file that model.json describes",
        ),
        (describe_damage, "model.onnx: onnxruntime cannot load it"),
        (rewrite(layout={"vector_dim": 3, "coherency_dim": 4}), "model.onnx: rows of 34, model.json says 16"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, breaks: Callable[[Path], object], line: str) -> None:
    breaks(folder)
    with pytest.raises(ModelError) as caught:
        load_encoder(folder)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_fingerprint_follows_what_determines_the_vectors(whole: Path, folder: Path) -> None:
    (folder / "README.md").write_text("a model card")
    assert fingerprint(folder) == fingerprint(whole)
    rewrite(max_pieces=64)(folder)
    assert fingerprint(folder) != fingerprint(whole)


def test_loading_needs_neither_torch_nor_onnx(whole: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from denspi.dense.models import open_encoder\n"
        f"open_encoder(Path({str(whole)!r})).encode_questions(['who ?'])\n"
        "assert not {'torch', 'transformers', 'onnx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_folder_is_found_by_path_and_packaged_models_by_name(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_model(str(whole)) == whole
    (tmp_path / "models" / "denspi-small").mkdir(parents=True)
    monkeypatch.setattr(models, "files", lambda _: tmp_path)
    assert find_model("small") == tmp_path / "models" / "denspi-small"
    with pytest.raises(ModelError, match=r"^huge: there is no such model; packaged models: small; or pass"):
        find_model("huge")


def test_a_trained_folder_runs_in_torch(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = whole.parent / "trained"
    ours, theirs = open_encoder(whole), open_encoder(trained)
    difference = ours.encode_questions(QUESTIONS).starts - theirs.encode_questions(QUESTIONS).starts
    assert float(np.abs(difference).max()) < 0.15
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "denspi.dense.model_folder", raising=False)
    with pytest.raises(MissingExtraError, match="optional part 'train'"):
        open_encoder(trained)


def test_a_reader_is_no_encoder(folder: Path) -> None:
    rewrite(kind="reader-onnx")(folder)
    with pytest.raises(ModelError, match="kind 'reader-onnx'; expected 'phrase-onnx' or 'phrase'"):
        open_encoder(folder)
