"""A tiny exported phrase model with a filter and both codecs, trained by nobody, and documents to index."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.exported import CALIBRATION, QUESTIONS, TEXTS, save_trained
from tests.tiny import JOBS, PEOPLE, TOWNS

from denspi.build.model import IndexModel, model_for_new_index
from denspi.corpus import join_paragraphs
from denspi.dense.compact_fit import fit_compact_quantizer
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.export import ExportSettings, export_phrase_model
from denspi.dense.filter import FilterThresholds
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.dense.models import open_encoder
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.quantizer import Quantizer, fit_code
from denspi.types import Document

KEPT_SHARE = 0.35
COMPACT_BYTES = 8  # of 12 dimensions


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About a third of the words pass the filter, so that what is dropped shows."""
    return save_model_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def model(model_folder: Path) -> IndexModel:
    return model_for_new_index(str(model_folder), "int8")


@pytest.fixture(scope="session")
def compact_model(model_folder: Path) -> IndexModel:
    return model_for_new_index(str(model_folder), "compact")


@pytest.fixture(scope="session")
def other_model_folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with another filter: vectors alike, but another index."""
    folder = shutil.copytree(model_folder, tmp_path_factory.mktemp("other") / "exported")
    record = json.loads((folder / "model.json").read_text())
    record["filter"]["start"] += 0.125
    (folder / "model.json").write_text(json.dumps(record))
    return Path(folder)


@pytest.fixture(scope="session")
def encoder(model_folder: Path) -> PhraseEncoder:
    return load_encoder(model_folder)


def save_model_folder(folder: Path) -> Path:
    trained = save_trained(folder)
    encoder = open_encoder(trained)
    paragraphs = list(encoder.encode_paragraphs(TEXTS))

    def together(name: str) -> np.ndarray:
        return np.concatenate([getattr(each, name) for each in paragraphs])

    model = load_phrase_model(trained)
    model.filter_thresholds = FilterThresholds(
        *(float(np.quantile(together(f"{side}_logits"), 1 - KEPT_SHARE)) for side in ("start", "end"))
    )
    rows = [together(name) for name in ("starts", "ends", "start_keys", "end_keys")]
    model.quantizer = Quantizer(*(fit_code(each) for each in rows))
    model.compact = fit_compact_quantizer(*rows, encoder.encode_questions(QUESTIONS), COMPACT_BYTES)
    save_model(model, trained / "tokenizer.json", folder / "filtered")
    export_phrase_model(folder / "filtered", folder / "exported", ExportSettings("int8"), CALIBRATION)
    return folder / "exported"


def make_documents(count: int, seed: int = 0, paragraphs: int = 3) -> list[Document]:
    """Facts about people, in words that the tiny tokenizer knows; every document its own."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        texts = [
            f"{chance.choice(PEOPLE)} lives in {chance.choice(TOWNS)} and works as a {chance.choice(JOBS)} . "
            f"that was in {chance.randrange(1000, 2000)} ."
            for _ in range(chance.randint(1, paragraphs))
        ]
        text, spans = join_paragraphs(texts)
        found.append(Document(f"d{number}", f"Document {number}", text, spans, f"docs.jsonl:{number + 1}"))
    return found
