"""SIGKILL at every step of a change that is then given again: it ends as if it had never been interrupted."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from tests.crash.killing import KillingDirectory, in_child
from tests.crash.life import SMALL, assert_whole, found_in
from tests.index.made import build, contents, make

from denspi.build.resuming import Resumed
from denspi.index import IndexWriter
from denspi.index.directory import Directory

BEFORE = dict.fromkeys(range(6), 0)  # number -> version
WANTED = {number: number % 2 for number in range(14)}


def change(directory: Directory) -> None:
    """As `Index.update` has it: what an interrupted run has written is taken over."""
    with IndexWriter.open(directory.path, directory=directory, settings=SMALL, resume=True) as writer:
        resumed = Resumed(writer, "index")
        for number, version in WANTED.items():
            document, rows = make(number, paragraphs=1, words=8, version=version)
            if not resumed.is_updated(document):
                writer.update(document, rows)
        resumed.drop_rest()
        writer.commit()


def killed(folder: Path, step: int) -> bool:
    """Whether a run over this folder came as far as this step, and died of it."""
    status, _ = in_child(lambda _: change(KillingDirectory(folder, step)), None)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    assert not os.WIFSIGNALED(status) or os.WTERMSIG(status) == signal.SIGKILL
    return os.WIFSIGNALED(status)


def kills(folder: Path, every: int) -> int:
    """Of three runs over the same folder, for each of these steps; a fourth one always comes to its end."""
    untouched, whole, count = folder / "untouched", folder / "whole", 0
    build(untouched, [make(number, paragraphs=1, words=8) for number in BEFORE])
    shutil.copytree(untouched, whole)
    counting = KillingDirectory(whole, None)
    change(counting)
    for step in range(0, counting.steps, every):
        own = folder / f"killed at {step}"
        shutil.copytree(untouched, own)
        for at in (step, step // 2, step + 3):
            count += killed(own, at)
            assert found_in(own) in (BEFORE, WANTED)
        change(Directory(own))
        assert contents(own) == contents(whole)
        assert_whole(own, WANTED)
        shutil.rmtree(own)
    return count


def test_a_few_kills(tmp_path: Path) -> None:
    assert kills(tmp_path, every=17) > 10


@pytest.mark.slow
def test_a_kill_at_every_other_step(tmp_path: Path) -> None:
    assert kills(tmp_path, every=2) > 200
