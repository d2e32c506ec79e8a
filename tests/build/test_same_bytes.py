"""The shipped model: however a build was interrupted, cut into tasks and shared out, the same bytes.

The tiny model of the other tests pads and batches as this one does, but its numbers could hide a last bit.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.build.test_interruptions import start, wait_for
from tests.index.made import contents

from denspi import Document, Index
from denspi.build import index as build_index
from denspi.build.workers import WorkerSettings
from denspi.corpus import read_corpus
from denspi.dense.models import packaged_models
from denspi.index.leftovers import BUILDING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("small" not in packaged_models(), reason="the package has no model"),
]
SAMPLE = Path(__file__).parents[2] / "src" / "denspi" / "sample"
LOCKS = {"lock", "merge.lock"}
SEGMENT_WORDS = 2000


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """The sample corpus: paragraphs of all lengths, some 10,000 words."""
    found = [item for item in read_corpus(SAMPLE) if isinstance(item, Document)]
    assert sum(len(each.text.split()) for each in found) > 4 * SEGMENT_WORDS
    return found


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_index, "SEGMENT_WORDS", SEGMENT_WORDS)


def built(
    folder: Path, documents: list[Document], workers: WorkerSettings, precision: str = "int8"
) -> dict[str, bytes]:
    with Index.create(folder, "small", precision=precision, workers=workers) as index:
        index.add(documents)
        index.commit()
    return stored(folder)


def stored(folder: Path) -> dict[str, bytes]:
    assert not Index.open(folder).verify().problems
    return {name: content for name, content in contents(folder).items() if name not in LOCKS}


@pytest.fixture(scope="module")
def straight(
    documents: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[str, bytes]]]:
    """Built in one go, right here, by precision."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_index, "SEGMENT_WORDS", SEGMENT_WORDS)
        folder = tmp_path_factory.mktemp("straight")
        here = WorkerSettings(processes=0)
        yield {each: built(folder / each, documents, here, each) for each in ("int8", "compact")}


class StoppedHereError(Exception):
    """In the place of whatever may end a build."""


@pytest.mark.parametrize("precision", ["int8", "compact"])
@pytest.mark.parametrize(
    "workers",
    [
        WorkerSettings(processes=0),
        WorkerSettings(processes=1, task_chars=700),
        WorkerSettings(processes=2, task_chars=9_000),
        WorkerSettings(processes=3, task_chars=1, tasks_ahead=1),
    ],
    ids=lambda each: f"{each.processes}-{each.task_chars}",
)
def test_interrupted_and_shared_out(
    documents: list[Document],
    straight: dict[str, dict[str, bytes]],
    tmp_path: Path,
    workers: WorkerSettings,
    precision: str,
) -> None:
    """Stopped twice, each time after a segment was written, then finished by the given processes."""
    folder, stops = tmp_path / "index", 2
    for stop in range(1, stops + 1):

        def until_written(stop: int = stop) -> Iterator[Document]:
            for document in documents:
                if len(list(folder.glob("*-segment"))) >= 2 * stop:
                    raise StoppedHereError
                yield document

        with (
            pytest.raises(StoppedHereError),
            Index.create(folder, "small", precision=precision, workers=WorkerSettings(processes=0)) as index,
        ):
            index.add(until_written())
        assert (folder / BUILDING).read_bytes().count(b"\n") > stop
    with Index.create(folder, "small", precision=precision, workers=workers) as index:
        changes = index.add(documents)
        assert changes.unchanged.documents
        assert changes.encoded.documents
        index.commit()
    assert stored(folder) == straight[precision]


def test_ctrl_c_on_the_command(documents: list[Document], tmp_path: Path) -> None:
    """With segments of the usual size, so the corpus is given several times over."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for copy in range(16):
        for number, document in enumerate(documents):
            (corpus / f"{copy}-{number}.txt").write_text(document.text, encoding="utf-8")
    folders = tmp_path / "straight", tmp_path / "interrupted"
    stopped = start(corpus, folders[1], packaged_models()["small"])
    wait_for((folders[1] / BUILDING).exists, stopped)
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait() == 130
    assert (folders[1] / BUILDING).exists()
    for folder in folders:
        finished = start(corpus, folder, packaged_models()["small"])
        printed, problems = finished.communicate()
        assert finished.returncode == 0, problems
        assert (" already there" in printed) == (folder == folders[1])
    assert stored(folders[0]) == stored(folders[1])
