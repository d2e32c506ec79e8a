"""The power fails at any step and the disk keeps what it likes of the unsynced: the last commit is whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.crash.life import Held, assert_whole, live
from tests.crash.power import Choose, PoweredDirectory, PowerLossError, at_random, losing, reordering
from tests.index.made import MODEL, make

from denspi.errors import InputError
from denspi.index import IndexWriter
from denspi.index.manifest import MANIFEST

COMMITS = 3
FIRST: Held = {1: 1, 2: 2}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "index"
    with IndexWriter.create(folder, MODEL) as writer:
        for number, version in FIRST.items():
            writer.add(*make(number, paragraphs=1, words=8, version=version))
        writer.commit()
    return folder


def fail(base: Path, scratch: Path, seed: int, step: int | None) -> tuple[PoweredDirectory, list[Held]]:
    """Live until the power fails; then the last committed state may be found, or the one on its way."""
    scratch.mkdir()
    shutil.copytree(base, scratch / "index")
    directory = PoweredDirectory(scratch / "index", scratch / "graveyard", step)
    allowed = [dict(FIRST)]

    def say(what: str, held: Held) -> None:
        if what == "done":
            allowed.clear()
        allowed.append(dict(held))

    try:
        live(directory, FIRST, np.random.default_rng(seed), COMMITS, say)
    except PowerLossError:
        assert step is not None
    return directory, allowed


def check(base: Path, tmp_path: Path, seed: int, steps: range) -> None:
    others: list[Choose] = [reordering, at_random(seed), at_random(seed + 1)]
    for step in steps:
        directory, allowed = fail(base, tmp_path / f"{step}", seed, step)
        for number, choose in enumerate([losing, others[step % len(others)]]):
            survived = tmp_path / f"{step}-{number}"
            directory.survives(survived, choose)
            assert_whole(survived, *allowed)
            shutil.rmtree(survived)
        shutil.rmtree(tmp_path / f"{step}")


def steps_of(base: Path, tmp_path: Path, seed: int) -> int:
    directory, _ = fail(base, tmp_path / "all", seed, None)
    return directory.steps


def test_some_steps(base: Path, tmp_path: Path) -> None:
    total = steps_of(base, tmp_path, seed=0)
    check(base, tmp_path, 0, range(3, total, 67))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "stride"), [(0, 1), (1, 11), (2, 11)])
def test_every_step(base: Path, tmp_path: Path, seed: int, stride: int) -> None:
    total = steps_of(base, tmp_path, seed)
    assert total > 100
    check(base, tmp_path, seed, range(0, total + 1, stride))


class Careless(PoweredDirectory):
    """Says that it has synced, and has not."""

    def __init__(self, skipped: str, path: Path, graveyard: Path, fails_at: int | None) -> None:
        super().__init__(path, graveyard, fails_at)
        self._skipped = skipped

    def fsync_file(self, path: Path) -> None:
        if self._skipped != ("manifest" if path.parent == self.path else "files"):
            super().fsync_file(path)

    def fsync_folder(self, path: Path) -> None:
        if self._skipped != "folders":
            super().fsync_folder(path)


@pytest.mark.parametrize("skipped", ["files", "manifest", "folders"])
def test_a_missing_fsync_is_noticed(base: Path, tmp_path: Path, skipped: str) -> None:
    """The test of the tests: leave any kind of fsync out, and a commit is lost or broken."""
    shutil.copytree(base, tmp_path / "index")
    directory = Careless(skipped, tmp_path / "index", tmp_path / "graveyard", None)
    with IndexWriter.open(tmp_path / "index", directory=directory) as writer:
        writer.add(*make(5, paragraphs=1, words=8, version=5))
        writer.commit()
    broken = 0
    for number, choose in enumerate([losing, reordering, at_random(0), at_random(1)]):
        directory.survives(tmp_path / str(number), choose)
        try:
            assert_whole(tmp_path / str(number), {**FIRST, 5: 5})
        except Exception:  # whatever it is, it was noticed
            broken += 1
    assert broken


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_what_was_flushed_can_be_gone_on_with(base: Path, tmp_path: Path, stride: int) -> None:
    """The power fails at any step of three flushes: those that were finished are resumed, and are right."""
    step = 0
    while True:
        scratch = tmp_path / f"{step}"
        scratch.mkdir()
        shutil.copytree(base, scratch / "index")
        directory = PoweredDirectory(scratch / "index", scratch / "graveyard", step)
        flushed: list[str] = []
        try:
            with IndexWriter.open(directory.path, directory=directory) as writer:
                for number in (3, 4, 5):
                    writer.add(*make(number, paragraphs=1, words=8, version=number))
                    writer.flush()
                    flushed.append(f"d{number}")
        except PowerLossError:
            pass
        for number, choose in enumerate([losing, reordering, at_random(step), at_random(step + 1)]):
            survived = tmp_path / f"{step}-{number}"
            directory.survives(survived, choose)
            with IndexWriter.open(survived, resume=True) as writer:
                resumed = list(writer.resumed_ids())
                assert resumed[: len(flushed)] == flushed
                for other in range(3 + len(resumed), 6):
                    writer.add(*make(other, paragraphs=1, words=8, version=other))
                writer.commit()
            assert_whole(survived, {**FIRST, 3: 3, 4: 4, 5: 5})
            shutil.rmtree(survived)
        shutil.rmtree(scratch)
        if len(flushed) == 3:
            break
        step += stride
    assert step > 50


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_a_first_build_is_there_whole_or_can_be_begun_again(tmp_path: Path, stride: int) -> None:
    """The power fails at any step of the first build: it is committed, is gone on with, or is named."""
    step, outcomes = 0, {"committed": 0, "gone on with": 0, "refused": 0}
    is_done = False
    while not is_done:
        scratch = tmp_path / f"{step}"
        scratch.mkdir()
        (scratch / "index").mkdir()
        directory = PoweredDirectory(scratch / "index", scratch / "graveyard", step)
        try:
            with IndexWriter.create(directory.path, MODEL, directory=directory) as writer:
                for number, version in FIRST.items():
                    writer.add(*make(number, paragraphs=1, words=8, version=version))
                    writer.flush()
                writer.commit()
            is_done = True
        except PowerLossError:
            pass
        for number, choose in enumerate([losing, reordering, at_random(step), at_random(step + 1)]):
            survived = tmp_path / f"{step}-{number}"
            directory.survives(survived, choose)
            if (survived / MANIFEST).exists():
                outcomes["committed"] += 1
            else:
                assert not is_done
                outcomes[first_build_again(survived)] += 1
            if (survived / MANIFEST).exists():
                assert_whole(survived, FIRST)
            shutil.rmtree(survived)
        shutil.rmtree(scratch)
        step += stride
    assert outcomes["committed"]
    assert outcomes["gone on with"] > outcomes["refused"]


def first_build_again(folder: Path) -> str:
    """What a half-written folder could be is either ours, and gone on with, or left alone."""
    try:
        writer = IndexWriter.create(folder, MODEL, resume=True)
    except InputError as error:
        if "choose another folder" not in str(error):
            raise
        return "refused"
    with writer:
        for number, version in FIRST.items():
            if f"d{number}" not in writer:
                writer.add(*make(number, paragraphs=1, words=8, version=version))
        writer.commit()
    return "gone on with"
