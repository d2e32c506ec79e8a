"""SIGKILL at every step of a commit and at random moments: the last commit opens, complete, every time."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.crash.killing import KillingDirectory, in_child
from tests.crash.life import Held, assert_whole, found_in, live
from tests.index.made import MODEL

from denspi.index import IndexWriter


def allowed_after(said: bytes, before: Held) -> list[Held]:
    """The last committed state, and the one that was being committed."""
    allowed = [before]
    for line in said.splitlines():
        what, held = json.loads(line)
        state = {int(number): version for number, version in held.items()}
        allowed = [state] if what == "done" else [*allowed, state]
    return allowed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        writer.commit()
    return tmp_path / "index"


def kill_at_steps(folder: Path, steps: range, seed: int) -> int:
    held: Held = {}
    kills = 0
    for step in steps:
        generator = np.random.default_rng([seed, step])

        def work(say: Callable[[str, Held], None], step: int = step, held: Held = held) -> None:
            live(KillingDirectory(folder, step), held, generator, 5, say)  # noqa: B023

        status, said = in_child(work, None)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
        else:
            assert os.WTERMSIG(status) == signal.SIGKILL
            kills += 1
        held = assert_whole(folder, *allowed_after(said, held))
    return kills


def kill_at_random(folder: Path, count: int, seed: int) -> int:
    held = found_in(folder)
    kills = 0
    moments = np.random.default_rng(seed)
    for number in range(count):
        generator = np.random.default_rng([seed, number])

        def work(say: Callable[[str, Held], None], held: Held = held) -> None:
            live(KillingDirectory(folder, None), held, generator, 50, say)  # noqa: B023

        status, said = in_child(work, float(moments.uniform(0.005, 0.12)))
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        kills += os.WIFSIGNALED(status)
        held = assert_whole(folder, *allowed_after(said, held))
    return kills


def test_a_few_kills(folder: Path) -> None:
    assert kill_at_steps(folder, range(1, 200, 29), seed=7) > 3
    assert kill_at_random(folder, 3, seed=8) == 3


@pytest.mark.slow
def test_a_kill_at_every_step(folder: Path) -> None:
    assert kill_at_steps(folder, range(250), seed=1) >= 230


@pytest.mark.slow
def test_kills_at_random_moments(folder: Path) -> None:
    assert kill_at_random(folder, 300, seed=2) >= 290
