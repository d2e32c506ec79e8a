"""A searcher that outlives what happens to its index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.build.conftest import make_documents, model_folder, other_model_folder

from denspi import Index
from denspi.build.workers import WorkerSettings
from denspi.errors import InputError
from denspi.search.newest import NewestSearcher

__all__ = ["model_folder", "other_model_folder"]
HERE = WorkerSettings(processes=0)


def build(folder: Path, model: Path, documents: int, precision: str = "int8") -> None:
    with Index.create(folder, str(model), precision=precision, workers=HERE) as index:
        index.add(make_documents(documents))
        index.commit()


def test_the_newest_that_can_be_opened(model_folder: Path, other_model_folder: Path, tmp_path: Path) -> None:
    folder, heard = tmp_path / "index", list[str]()
    build(folder, model_folder, 2)
    newest = NewestSearcher(folder, heard.append, compiled=False)

    def documents() -> int:
        found = newest.searcher()
        assert found.ask("what is it").generation == found.view.snapshot.generation
        return found.view.snapshot.live.documents

    assert documents() == 2
    with Index.open(folder, workers=HERE) as index:
        index.add(make_documents(3)[2:])
        index.commit()
    assert documents() == 3
    assert (newest.why_not, heard) == (None, [])
    shutil.rmtree(folder)
    assert [documents(), documents()] == [3, 3]
    line = f"{folder}: no such index; build one with: denspi index"
    assert (newest.why_not, heard) == (line, [f"serving generation 2: {line}"])  # said once
    build(folder, model_folder, 4, "compact")
    assert documents() == 4
    assert newest.why_not is None
    shutil.rmtree(folder)
    build(folder, other_model_folder, 5)
    assert documents() == 5
    assert len(heard) == 1


def test_none_to_begin_with_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such index"):
        NewestSearcher(tmp_path / "nowhere")
