"""The exported reader finds what the torch reader finds, in windows where it must, alone or among others."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.exported import CALIBRATION, QUESTIONS, TEXTS
from tests.tiny import save_encoder
from transformers import AutoModel, MPNetConfig

from denspi.corpus.squad import SquadArticle, SquadParagraph, SquadQuestion
from denspi.dense.backbone import Backbone, load_backbone
from denspi.dense.encoder import WindowSettings
from denspi.dense.export import ExportSettings, trace_reader_model, write_runtime
from denspi.dense.model import ReaderModel
from denspi.dense.model_folder import load_reader_model, save_model
from denspi.dense.reader import best_phrase, load_reader
from denspi.dense.runtime_folder import hash_files, read_record
from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer
from denspi.training.examples import Limits, make_examples
from denspi.training.reader_task import best_phrase as torch_best_phrase
from denspi.training.reader_task import read_pairs
from denspi.types import Span
from denspi.vectors import MAX_PHRASE_WORDS

LONG = " ".join(TEXTS * 12)  # several windows of the tiny encoder's 128 pieces


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A torch reader with random weights, spread enough to make logits differ."""
    folder = tmp_path_factory.mktemp("reader")
    save_encoder(folder / "encoder")
    torch.manual_seed(1)
    model = ReaderModel(load_backbone(str(folder / "encoder")))
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.1 * torch.randn_like(weights))
    save_model(model.eval(), folder / "encoder" / "tokenizer.json", folder / "trained")
    return folder / "trained"


@pytest.fixture(scope="module")
def exported(trained: Path) -> dict[str, Path]:
    traced = trace_reader_model(trained)
    folders = {route: trained.parent / route for route in ("float", "int8")}
    write_runtime(traced, folders["float"], ExportSettings("float"))
    write_runtime(traced, folders["int8"], ExportSettings("int8"), CALIBRATION)
    return folders


def test_answers_are_torchs(trained: Path, exported: dict[str, Path]) -> None:
    same_answers(trained, exported["float"])


def same_answers(trained: Path, exported: Path) -> None:
    tokenizer = Tokenizer(trained / "tokenizer.json")
    questions = tuple(SquadQuestion(text, text, ()) for text in QUESTIONS)
    article = SquadArticle("t", tuple(SquadParagraph(text, questions) for text in TEXTS))
    pairs = [(e, q) for e in make_examples([article], tokenizer, Limits(96, 24)) for q in e.questions]
    reader = load_reader(exported)
    logits = read_pairs(load_reader_model(trained), tokenizer, pairs)
    for (example, question), (start, end) in zip(pairs, logits, strict=True):
        (found,) = reader.read(question.text, [example.text])
        assert found.span.of(example.text) == torch_best_phrase(example, start, end)
        theirs = best_phrase(example.tokens, start, end)
        assert found.span == theirs.span
        assert found.score == pytest.approx(theirs.score, abs=1e-3)


def test_int8_is_close_and_does_not_depend_on_other_paragraphs(exported: dict[str, Path]) -> None:
    reader, exact = load_reader(exported["int8"]), load_reader(exported["float"])
    assert read_record(exported["int8"]).quantization.smoothed
    together = reader.read(QUESTIONS[0], [*TEXTS, LONG])
    assert together == [reader.read(QUESTIONS[0], [text])[0] for text in (*TEXTS, LONG)]
    for found, right in zip(together, exact.read(QUESTIONS[0], [*TEXTS, LONG]), strict=True):
        assert found.score == pytest.approx(right.score, abs=0.3)


def test_a_long_paragraph_is_read_to_its_end(exported: dict[str, Path]) -> None:
    reader = load_reader(exported["float"])
    tokens = reader.tokenizer.tokenize(LONG)
    question = reader.tokenizer.ids_batch([QUESTIONS[0]])[0]
    start, end = reader._word_logits(question, tokens)
    assert len(tokens) > 2 * reader.max_pieces
    assert len(start) == len(end) == len(tokens.word_starts)
    assert np.isfinite(start).all()
    assert np.isfinite(end).all()
    (found,) = reader.read(QUESTIONS[0], [LONG])
    # The slow oracle: every phrase, one by one.
    scores = {
        (i, j): start[i] + end[j]
        for i in range(len(start))
        for j in range(i, min(i + MAX_PHRASE_WORDS, len(end)))
    }
    i, j = max(scores, key=lambda phrase: scores[phrase])
    assert found.span == Span(int(tokens.word_starts[i]), int(tokens.word_ends[j]))
    assert found.score == pytest.approx(scores[i, j])


def test_a_window_is_the_text_alone(exported: dict[str, Path]) -> None:
    """The first words of a cut paragraph have the logits of the first window, read by itself."""
    reader = load_reader(exported["float"], settings=WindowSettings(size=20, overlap=8))
    question = reader.tokenizer.ids_batch([QUESTIONS[1]])[0]
    tokens = reader.tokenizer.tokenize(LONG)
    start, _ = reader._word_logits(question, tokens)
    first_window = LONG[: tokens.ends[19]]
    alone, _ = reader._word_logits(question, reader.tokenizer.tokenize(first_window))
    assert tokens.first_piece[7] < 14  # before the middle of what the first two windows share
    np.testing.assert_allclose(start[:7], alone[:7], atol=1e-5)


def test_what_has_no_phrase(exported: dict[str, Path]) -> None:
    reader = load_reader(exported["int8"])
    assert reader.read(QUESTIONS[0], []) == []
    empty, text, blank = reader.read(QUESTIONS[0], ["", TEXTS[0], " \n"])
    assert empty == blank
    assert (empty.span, empty.score) == (Span(0, 0), -np.inf)
    assert np.isfinite(text.score)
    assert len(reader.read("", [TEXTS[0]])[0].span)
    assert len(reader.read(LONG, [TEXTS[0]])[0].span)  # a question longer than the input is cut


@pytest.mark.slow  # traces one more
def test_without_types_there_are_two_separators(exported: dict[str, Path], tmp_path: Path) -> None:
    assert read_record(exported["float"]).separators == 1
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = MPNetConfig(vocab_size=200, max_position_embeddings=130, **sizes)
    torch.manual_seed(0)
    model = ReaderModel(Backbone(AutoModel.from_config(config)))  # type: ignore[no-untyped-call]
    save_model(model.eval(), exported["float"] / "tokenizer.json", tmp_path / "trained")
    traced = trace_reader_model(tmp_path / "trained")
    write_runtime(traced, tmp_path / "exported", ExportSettings("float"))
    assert read_record(tmp_path / "exported").separators == 2
    same_answers(tmp_path / "trained", tmp_path / "exported")


def rewrite(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        record = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(record | changes))

    return change


def damage(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"nothing that onnx knows")
    rewrite(files=dict(hash_files(folder, ["model.onnx", "tokenizer.json"])))(folder)


@pytest.mark.parametrize(
    ("breaks", "line"),
    [
        (shutil.rmtree, "there is no such model folder"),
        (rewrite(kind="phrase-onnx"), "holds a model of kind 'phrase-onnx', expected 'reader-onnx'"),
        (rewrite(separators=None), "does not say how pairs are separated; export the reader again"),
        (rewrite(files={}), "not a reader's record (the graph or the tokenizer lacks)"),
        (lambda f: (f / "model.onnx").unlink(), "incomplete, model.onnx is missing"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "not the file that model.json describes"),
        (damage, "onnxruntime cannot load it"),
    ],
)
def test_a_broken_folder_is_refused(
    exported: dict[str, Path], tmp_path: Path, breaks: Callable[[Path], None], line: str
) -> None:
    folder = Path(shutil.copytree(exported["float"], tmp_path / "model"))
    breaks(folder)
    with pytest.raises(ModelError) as caught:
        load_reader(folder)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_torch_is_not_loaded(exported: dict[str, Path]) -> None:
    code = (
        "import sys; from pathlib import Path; from denspi.dense.reader import load_reader\n"
        f"load_reader(Path({str(exported['float'])!r})).read('who ?', ['ada'])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
