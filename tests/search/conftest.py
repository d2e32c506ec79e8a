"""A small index of several segments with deleted documents, random rows, and questions for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.index.made import MODEL, WORDS, make
from tests.search.test_kernels import quantizer

from denspi.index import IndexWriter, Snapshot, directory
from denspi.search.asked import AskedQuestion
from denspi.search.fixed_point import fix_questions
from denspi.search.kernels import compiled_kernels, numpy_kernels
from denspi.search.view import SearchView
from denspi.sparse import weigh_question
from denspi.vectors import QuestionVectors

CODES = quantizer(MODEL.coherency_dim, seed=5, dim=MODEL.vector_dim)
SPARSE_WEIGHT = 0.7


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments; two documents are deleted, one is replaced."""
    path = tmp_path_factory.mktemp("search") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        with IndexWriter.create(path, MODEL) as writer:
            for number in range(12):
                writer.add(*make(number, paragraphs=1 + number % 4, words=3 + 5 * (number % 7)))
            writer.commit()
            for number in range(12, 20):
                writer.add(*make(number, paragraphs=2, words=30))
            writer.commit()
            writer.delete("d3")
            writer.delete("d14")
            writer.update(*make(5, paragraphs=3, words=25, version=1))
            writer.commit()
    return path


@pytest.fixture(scope="session", params=["numpy", "compiled"])
def view(folder: Path, request: pytest.FixtureRequest) -> SearchView:
    kernels = (
        numpy_kernels()
        if request.param == "numpy"
        else compiled_kernels(MODEL.vector_dim, MODEL.coherency_dim)
    )
    found = SearchView.of(Snapshot.open(folder), CODES, kernels)
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
    return AskedQuestion(fix_questions(vectors, view.quantizer, view.tables)[0], sparse, sparse_weight)
