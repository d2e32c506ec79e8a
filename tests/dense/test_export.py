"""What onnxruntime computes from an exported folder is what torch computes from the trained one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.exported import CALIBRATION, QUESTIONS, TEXTS, save_trained

from denspi.dense.encoder import PhraseEncoder, WindowSettings
from denspi.dense.export import (
    ExportSettings,
    Traced,
    export_phrase_model,
    export_reader_model,
    trace_phrase_model,
    write_runtime,
)
from denspi.dense.model import PhraseSettings, ReaderModel
from denspi.dense.model_folder import load_phrase_model, load_reader_model, save_model
from denspi.dense.onnx_encoder import load_encoder, open_session
from denspi.dense.runtime_folder import READER_KIND, fingerprint, read_record
from denspi.dense.torch_encoder import torch_encoder
from denspi.text.tokens import Tokenizer

LONG = " ".join(TEXTS * 12)  # several windows of the tiny encoder's 128 pieces
PARAGRAPHS = (*TEXTS, "", LONG, "oslo")
# Largest difference of a vector's coordinate from torch's, of rows with a deviation of about one;
# docs/training.md states it.
TOLERANCE = {"float": 1e-4, "int8": 0.15, "int8 reduced": 0.25, "blocks8": 0.05}
SETTINGS = {
    "float": ExportSettings("float"),
    "int8": ExportSettings("int8"),
    "int8 reduced": ExportSettings("int8", reduced_range=True),
    "blocks8": ExportSettings("blocks8"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_trained(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def traced(trained: Path) -> Traced:
    return trace_phrase_model(trained)


@pytest.fixture(scope="module", params=SETTINGS)
def route(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def exported(traced: Traced, route: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    write_runtime(traced, folder, SETTINGS[route], CALIBRATION)
    return folder


def test_paragraphs_are_torchs(trained: Path, exported: Path, route: str) -> None:
    ours = list(load_encoder(exported).encode_paragraphs(PARAGRAPHS))
    theirs = list(_torch(trained).encode_paragraphs(PARAGRAPHS))
    assert [len(each) for each in ours] == [len(each) for each in theirs]
    assert len(ours[2]) == 0
    for name in ("starts", "ends", "start_keys", "end_keys", "start_logits", "end_logits"):
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(getattr(mine, name), getattr(other, name), atol=TOLERANCE[route])


def test_questions_are_torchs(trained: Path, exported: Path, route: str) -> None:
    ours, theirs = (
        load_encoder(exported).encode_questions(QUESTIONS),
        _torch(trained).encode_questions(QUESTIONS),
    )
    np.testing.assert_allclose(ours.starts, theirs.starts, atol=TOLERANCE[route])
    np.testing.assert_allclose(ours.ends, theirs.ends, atol=TOLERANCE[route])


def test_a_paragraph_does_not_depend_on_its_neighbours(exported: Path) -> None:
    together = list(load_encoder(exported).encode_paragraphs(PARAGRAPHS))
    for text, among in zip(PARAGRAPHS, together, strict=True):
        (alone,) = load_encoder(exported, WindowSettings(batch=1)).encode_paragraphs([text])
        np.testing.assert_array_equal(alone.starts, among.starts)
        np.testing.assert_array_equal(alone.end_keys, among.end_keys)


@pytest.mark.slow  # traces twice more
def test_the_same_export_twice_is_the_same_model(trained: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        export_phrase_model(trained, tmp_path / name, SETTINGS["int8"], CALIBRATION)
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")
    one, two = ((tmp_path / name / "model.onnx").read_bytes() for name in ("one", "two"))
    assert one == two


def test_the_record_says_what_it_is(exported: Path, route: str) -> None:
    record = read_record(exported)
    assert record.layout is not None
    assert (record.layout.vector_dim, record.layout.coherency_dim, record.max_pieces) == (12, 4, 128)
    assert record.quantization.route == route.split()[0]
    assert record.quantization.smoothed == route.startswith("int8")
    assert json.loads((exported / "model.json").read_text())["layout_version"] == 1


def test_the_graph_names_no_folder_of_this_machine(exported: Path) -> None:
    assert b"site-packages" not in (exported / "model.onnx").read_bytes()


def test_smoothing_brings_int8_closer(trained: Path, traced: Traced, tmp_path: Path) -> None:
    theirs = next(_torch(trained).encode_paragraphs([LONG]))
    errors = []
    for name, calibration in (("plain", ()), ("smoothed", (CALIBRATION,))):
        write_runtime(traced, tmp_path / name, SETTINGS["int8"], *calibration)
        ours = next(load_encoder(tmp_path / name).encode_paragraphs([LONG]))
        errors.append(float(np.square(ours.starts - theirs.starts).mean()))
    assert errors[1] < 1.1 * errors[0]


@pytest.mark.slow
def test_independent_encoders_are_two_graphs(tmp_path: Path) -> None:
    settings = PhraseSettings(coherency_dim=4, independent_encoders=True, question_pooling="mean")
    trained = save_trained(tmp_path, settings)
    export_phrase_model(trained, tmp_path / "exported", SETTINGS["float"])
    assert {path.name for path in (tmp_path / "exported").iterdir()} == {
        *("model.json", "paragraph.onnx", "question.onnx", "tokenizer.json")
    }
    ours, theirs = load_encoder(tmp_path / "exported"), _torch(trained)
    for mine, other in zip(ours.encode_paragraphs(TEXTS), theirs.encode_paragraphs(TEXTS), strict=True):
        np.testing.assert_allclose(mine.starts, other.starts, atol=1e-4)
    questions = ours.encode_questions(QUESTIONS), theirs.encode_questions(QUESTIONS)
    np.testing.assert_allclose(questions[0].starts, questions[1].starts, atol=1e-4)


def test_an_export_replaces_the_one_before_and_leaves_other_files(traced: Traced, tmp_path: Path) -> None:
    for name in ("question.onnx", "README.md"):
        (tmp_path / name).write_text("from before")
    write_runtime(traced, tmp_path, SETTINGS["float"])
    assert not (tmp_path / "question.onnx").exists()
    assert (tmp_path / "README.md").read_text() == "from before"


@pytest.mark.slow
def test_a_reader_gives_torchs_logits(trained: Path, tmp_path: Path) -> None:
    import torch

    torch.manual_seed(0)
    reader = ReaderModel(load_phrase_model(trained).backbone)
    save_model(reader, trained / "tokenizer.json", tmp_path / "reader")
    record = export_reader_model(tmp_path / "reader", tmp_path / "exported", SETTINGS["float"])
    assert (record.kind, record.layout) == (READER_KIND, None)
    ids = np.array([[2, 30, 31, 3, 32, 33, 34, 3]] * 2, np.int64)
    mask, types = np.ones_like(ids), np.array([[0, 0, 0, 0, 1, 1, 1, 1]] * 2, np.int64)
    mask[1, 6:] = 0
    session = open_session(tmp_path / "exported" / "model.onnx")
    (ours,) = session.run(None, {"ids": ids, "mask": mask, "types": types})
    theirs = load_reader_model(tmp_path / "reader")(*(torch.from_numpy(a) for a in (ids, mask, types)))
    np.testing.assert_allclose(ours[mask > 0], theirs.detach().numpy()[mask > 0], atol=1e-4)


def _torch(trained: Path) -> PhraseEncoder:
    return torch_encoder(load_phrase_model(trained), Tokenizer(trained / "tokenizer.json"))
