"""A stranger's index, its checksums right whatever it holds: a search may only fail with a named error."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.index.test_claims import rewrite
from tests.search.conftest import CODES, ask

from denspi.build.lists import attach_missing_lists
from denspi.errors import DenspiError
from denspi.index import Snapshot
from denspi.search.answers import resolve
from denspi.search.candidates import Limits, Reach
from denspi.search.kernel_choice import kernels_of
from denspi.search.starts import ListedStarts
from denspi.search.strategies import find_strategy
from denspi.search.view import SearchView

STRATEGIES = ("sparse_first", "dense_first", "hybrid", "exact")


@pytest.fixture(scope="module")
def listed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copytree(folder, tmp_path_factory.mktemp("stranger") / "index"))
    attach_missing_lists(path, lambda: CODES, fewest_starts=1)
    return path


def search(path: Path, compiled: bool) -> list[str]:
    """What all strategies answer, and the lists where they would not be looked into."""
    snapshot = Snapshot.open(path)
    view = SearchView.of(snapshot, CODES, kernels_of(snapshot.model, compiled=compiled))
    question, found = ask(view, seed=1), []
    ListedStarts(Reach(10, probes=2), scan_below=0).top_starts(view, question)
    for name in STRATEGIES:
        for limits in (Limits(top_starts=20, probes=3), Limits(prove=True)):
            candidates = find_strategy(name)(view, question, limits)
            found += [answer.text for answer in resolve(view, question, candidates, 5, explain=True)]
    return found


def largest(values: np.ndarray) -> np.ndarray:
    return np.full_like(values, np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max)


def last_is_largest(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values[:-1], largest(values[-1:])])


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "largest": largest,
    "reversed": lambda values: values[::-1],
    "zeros": np.zeros_like,
    "last is largest": last_is_largest,
    "shuffled": lambda values: np.random.default_rng(0).permutation(values),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "change",
    ["reversed", *(pytest.param(name, marks=pytest.mark.slow) for name in CHANGES if name != "reversed")],
)
def test_whatever_a_component_holds(listed: Path, tmp_path: Path, change: str, compiled: bool) -> None:
    assert search(listed, compiled)
    first = Snapshot.open(listed).segments[0].name
    parts = {first, *(path.name for path in listed.glob("*-*") if not path.name.endswith("-segment"))}
    for part in sorted(parts):
        for entry in json.loads((listed / part / "table.json").read_bytes())["components"]:
            name, stored = entry["name"], (listed / part / entry["name"]).read_bytes()
            is_array = name.endswith(".npy")
            values = np.load(listed / part / name) if is_array else np.frombuffer(stored, entry["dtype"])
            after = stored[: len(stored) - values.nbytes] + CHANGES[change](values.ravel()).tobytes()
            if after == stored:
                continue
            path = Path(shutil.copytree(listed, tmp_path / "index"))
            rewrite(path, part, name, after)
            with suppress(DenspiError):
                search(path, compiled)
            shutil.rmtree(path)
