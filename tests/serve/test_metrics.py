"""Metrics add up over workers, never count backwards, and are what Prometheus reads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from tests.serve.conftest import Running, serve

from denspi import Index
from denspi.errors import StorageError
from denspi.serve.metrics import (
    BOUNDS_SECONDS,
    QUESTIONS,
    REQUEST_SECONDS,
    REQUESTS,
    STAGES,
    Metrics,
    make_counters,
)

LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="[^"]*",?)*)\})? (\S+)')


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample, or an assertion that fails."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            match = LINE.fullmatch(line)
            assert match, line
            labels = frozenset(re.findall(r'([a-z]+)="([^"]*)"', match[2] or ""))
            assert (match[1], labels) not in found
            found[match[1], labels] = float(match[3])
    return found


def value_of(server: Running, name: str, **labels: str) -> float:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        return parsed(client.get("/metrics").text)[name, frozenset(labels.items())]


@pytest.mark.slow
def test_two_workers_count_as_one(built: Path) -> None:
    with serve(built, "--workers", "2") as running:
        for _ in range(10):  # connections go to either worker
            httpx.get(f"{running.url}/api/answers", params={"question": "who?"}, timeout=60)
        httpx.get(f"{running.url}/nothing")
        for _ in range(6):
            assert value_of(running, "denspi_questions_total", strategy="hybrid") == 10
            assert value_of(running, "denspi_requests_total", route="answers", status="200") == 10
            assert value_of(running, "denspi_requests_total", route="page", status="404") == 1
            assert value_of(running, "denspi_index_generation") == 1
            assert value_of(running, "denspi_index_documents") == 4
        for worker in children_of(running.process.pid):
            os.kill(worker, signal.SIGKILL)
            break
        for _ in range(20):
            try:
                assert value_of(running, "denspi_questions_total", strategy="hybrid") == 10
            except httpx.TransportError:  # it went to the one that was killed
                time.sleep(0.1)


def children_of(pid: int) -> list[int]:
    """Workers; the tracker of shared resources that multiprocessing starts beside them is none."""
    found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True)
    lines = (line.split(maxsplit=1) for line in found.stdout.splitlines())
    return [int(number) for number, command in lines if "spawn_main" in command]


def test_sizes_are_those_of_denspi_info(server: Running) -> None:
    info = Index.open(server.index).info()
    ready = server.client.get("/readyz").json()
    for name in ("generation", "documents", "paragraphs", "words"):
        assert ready[name] == value_of(server, f"denspi_index_{name}") == getattr(info, name)
    assert value_of(server, "denspi_index_bytes") == info.bytes
    assert (ready["model"], ready["precision"]) == (info.model, info.precision)


def test_every_stage_of_a_reply_has_its_histogram(server: Running) -> None:
    for strategy in ("hybrid", "exact", "sparse_first", "dense_first"):
        assert set(server.ask(strategy=strategy).json()["stages_ms"]) <= set(STAGES)
    body = {"questions": ["who?", "when?"], "strategy": "exact"}
    for each in server.client.post("/api/answers", json=body).json()["replies"]:
        assert set(each["stages_ms"]) <= set(STAGES)
    assert value_of(server, "denspi_stage_seconds_count", stage="encode") >= 4


def test_histograms_are_cumulative_and_complete() -> None:
    metrics = Metrics.alone()
    for seconds in (0.0, 0.0005, 0.0006, 3.0, 1e9):
        metrics.observe(REQUEST_SECONDS, seconds, "answers")
    metrics.count(REQUESTS, "answers", "200")
    metrics.count(REQUESTS, "answers", "418")  # not in the list
    metrics.count(QUESTIONS, "new_strategy")
    found = parsed(metrics.text({"denspi_index_bytes": ("Size.", 123456789.0)}))

    def value(name: str, **labels: str) -> float:
        return found[name, frozenset(labels.items())]

    counts = [value("denspi_request_seconds_bucket", route="answers", le=str(le)) for le in BOUNDS_SECONDS]
    assert counts[:3] == [2, 3, 3]
    assert counts == sorted(counts)
    assert value("denspi_request_seconds_bucket", route="answers", le="+Inf") == 5
    assert value("denspi_request_seconds_count", route="answers") == 5
    assert value("denspi_request_seconds_sum", route="answers") == pytest.approx(1e9 + 3.0011)
    assert value("denspi_requests_total", route="answers", status="200") == 1
    assert value("denspi_requests_total", route="answers", status="other") == 1
    assert value("denspi_questions_total", strategy="other") == 1
    assert value("denspi_index_bytes") == 123456789


def test_rows_are_taken_once(tmp_path: Path) -> None:
    """In one process locks do not exclude each other: another must try."""
    make_counters(tmp_path / "counters", workers=1)
    program = (
        "import sys, pathlib; from denspi.serve.metrics import *; path = pathlib.Path(sys.argv[1]);"
        "m = Metrics.shared(path); m.count(QUESTIONS, 'exact'); print('counted', flush=True); input()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "counters")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    others = [subprocess.Popen(command, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    try:
        for other in others:
            assert other.stdout.readline() == "counted\n"
        with pytest.raises(StorageError, match="no row is free"):
            Metrics.shared(tmp_path / "counters")
        others[0].communicate("\n")
        mine = Metrics.shared(tmp_path / "counters")  # goes on in the row that was left
        mine.count(QUESTIONS, "exact")
        found = parsed(mine.text({}))
        assert found["denspi_questions_total", frozenset({("strategy", "exact")})] == 3
    finally:
        for other in others:
            other.kill()
            other.communicate()
