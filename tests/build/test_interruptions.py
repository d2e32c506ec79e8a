"""A real build, stopped and killed from outside; and a file without line ends, in bounded memory."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.tiny import JOBS, PEOPLE, TOWNS

from denspi import Index

pytestmark = pytest.mark.slow

WAIT_SECONDS = 300


def start(docs: Path, output: Path, model: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "denspi", "index", str(docs), "--output", str(output)]
    return subprocess.Popen(
        [*command, "--model", str(model)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    for _ in range(WAIT_SECONDS * 20):
        if condition() or process.poll() is not None:
            return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def workers_of(pid: int) -> list[int]:
    found = []
    with suppress(OSError):  # it may end at any moment
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def peak_of(pid: int) -> int:
    """Kilobytes that a process has had at most, so far; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough words for three segments."""
    folder = tmp_path_factory.mktemp("corpus")
    chance = random.Random(0)
    for number in range(8):
        words = chance.choices([*PEOPLE, *TOWNS, *JOBS, "lives", "in", "."], k=45_000)
        lines = (" ".join(words[place : place + 90]) for place in range(0, len(words), 90))
        (folder / f"{number}.txt").write_text("\n\n".join(lines))
    return folder


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core encodes without processes")
def test_stopped_killed_and_finished(docs: Path, model_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "index"

    build = start(docs, output, model_folder)
    wait_for((output / "building.jsonl").exists, build)
    workers = workers_of(build.pid)
    build.send_signal(signal.SIGINT)
    printed, problems = build.communicate()
    assert (build.returncode, printed) == (130, ""), problems
    assert problems == "denspi: interrupted; run the same command again to go on\n"
    assert workers
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)

    build = start(docs, output, model_folder)
    wait_for(lambda: workers_of(build.pid), build)
    (killed, *_) = workers_of(build.pid)
    os.kill(killed, signal.SIGKILL)
    printed, problems = build.communicate()
    assert (build.returncode, printed) == (2, ""), problems
    assert problems == (
        f"denspi: encoding process {killed} was killed by signal 9; memory may be short; "
        "run the same command again to go on\n"
    )

    build = start(docs, output, model_folder)
    printed, problems = build.communicate()
    assert build.returncode == 0, problems
    assert " already there\n" in printed
    assert Index.open(output).info().documents == 8
    assert not Index.open(output).verify().problems


def test_a_killed_build_leaves_no_process(docs: Path, model_folder: Path, tmp_path: Path) -> None:
    build = start(docs, tmp_path / "index", model_folder)
    wait_for(lambda: workers_of(build.pid), build)
    workers = workers_of(build.pid)
    build.kill()
    build.communicate()
    for _ in range(600):
        if not any(Path(f"/proc/{pid}").exists() for pid in workers):
            return
        time.sleep(0.05)
    raise AssertionError("an encoding process has outlived its parent")


def test_a_file_without_line_ends_takes_bounded_memory(model_folder: Path, tmp_path: Path) -> None:
    """Encoded as the one paragraph that it is, it takes more than a gigabyte even with the tiny model."""
    path = tmp_path / "line.txt"
    path.write_text("ada lives in oslo and bram in 1843 " * 120_000)
    assert path.stat().st_size > 4_000_000
    build = start(path, tmp_path / "index", model_folder)
    peak_kilobytes = 0
    while build.poll() is None:
        peak_kilobytes = max([peak_kilobytes, *map(peak_of, [build.pid, *workers_of(build.pid)])])
        time.sleep(0.02)
    _, problems = build.communicate()
    assert build.returncode == 0, problems
    assert 50_000 < peak_kilobytes < 400_000
    info = Index.open(tmp_path / "index").info()
    assert info.documents == 2
    assert info.words == 120_000 * 8
