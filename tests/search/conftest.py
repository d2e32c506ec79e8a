"""A small index of several segments with deleted documents, random rows, and questions for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.index.made import COMPACT, MODEL, WORDS, make
from tests.search.compact_codes import compact_quantizer
from tests.search.test_kernels import quantizer

from denspi.index import IndexWriter, ModelRecord, Snapshot, directory
from denspi.search.asked import AskedQuestion
from denspi.search.fixed_point import fix_questions
from denspi.search.kernel_choice import kernels_of
from denspi.search.view import SearchView
from denspi.sparse import weigh_question
from denspi.vectors import QuestionVectors

CODES = quantizer(MODEL.coherency_dim, seed=5, dim=MODEL.vector_dim)
COMPACT_CODES = compact_quantizer(MODEL.vector_dim, MODEL.coherency_dim, wides=(1, 0))
COMPACT_MODEL = replace(COMPACT, quantizer=COMPACT_CODES.fingerprint)
SPARSE_WEIGHT = 0.7


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of precision int8."""
    return build_segments(tmp_path_factory.mktemp("search") / "index", MODEL)


@pytest.fixture(scope="session")
def compact_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same texts in an index of precision compact."""
    return build_segments(tmp_path_factory.mktemp("search") / "index", COMPACT_MODEL)


def build_segments(path: Path, model: ModelRecord, first: int = 0) -> Path:
    """Three segments; two documents are deleted, one is replaced. `first` numbers the documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        with IndexWriter.create(path, model) as writer:
            for number in range(first, first + 12):
                writer.add(*make(number, 1 + number % 4, 3 + 5 * (number % 7), model=model))
            writer.commit()
            for number in range(first + 12, first + 20):
                writer.add(*make(number, paragraphs=2, words=30, model=model))
            writer.commit()
            writer.delete(f"d{first + 3}")
            writer.delete(f"d{first + 14}")
            writer.update(*make(first + 5, paragraphs=3, words=25, version=1, model=model))
            writer.commit()
    return path


@pytest.fixture(scope="session", params=["numpy", "compiled", "compact, numpy", "compact, compiled"])
def view(folder: Path, compact_folder: Path, request: pytest.FixtureRequest) -> SearchView:
    is_compact = "compact" in request.param
    snapshot = Snapshot.open(compact_folder if is_compact else folder)
    kernels = kernels_of(snapshot.model, compiled="compiled" in request.param)
    found = SearchView.of(snapshot, COMPACT_CODES if is_compact else CODES, kernels)
    assert len(found.segments) == 3
    return found


def ask(
    view: SearchView, seed: int, sparse_weight: float = SPARSE_WEIGHT, size: float = 1.0
) -> AskedQuestion:
    """A random question; with a small `size` its words decide."""
    random = np.random.default_rng(seed)
    vectors = QuestionVectors(
        *((size * random.standard_normal((1, MODEL.vector_dim))).astype(np.float32) for _ in range(2)),
        np.array([random.choice([size, -size, 0.0])], np.float32),
    )
    text = " ".join(random.choice(WORDS, 4))
    sparse = weigh_question(text, view.snapshot.frequencies)
    fixed = fix_questions(vectors, view.codec, view.tables)[0]
    return AskedQuestion(fixed, sparse, sparse_weight, view.kernels.add_up)
