"""The list of training runs: each is a configuration that loads, in an order that has all it needs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from argparse import Namespace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.project.figures import ROOT, load_script

from denspi.settings import load_settings

pytest.importorskip("torch")

from denspi.training.settings import RunSettings

SCRIPT = load_script("experiments/training/runs.py")


@pytest.mark.parametrize("name", SCRIPT.RUNS)
def test_a_run_is_a_configuration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run, output = SCRIPT.RUNS[name], Path("elsewhere")
    line = SCRIPT.words(name, output, "models")
    sets = [value for option, value in pairwise(line) if option == "--set"]
    moved = SCRIPT.moved(name, "there", "models", output)
    settings = load_settings(Path(line[3]), RunSettings, [*sets, *moved])
    assert getattr(settings, run.stage) is not None
    assert str(settings.data) == "there/squad/train-v1.1.json.gz"
    assert settings.encoder.startswith("models/")
    is_taught = settings.phrase is None or settings.phrase.loss.distillation
    for folder in (settings.teacher if is_taught else None, *settings.asked):
        assert folder is None or folder.parts[:2] in {("elsewhere", need) for need in run.needs}
    assert SCRIPT.in_order([name])[-1] == name
    assert SCRIPT.in_order([name]).index("reader-base") == 0 if "reader-base" in run.needs else True


def test_the_reader_of_make_tables_is_what_its_run_leaves() -> None:
    """Where nobody names another."""
    found = re.search(r"^READER \?= runs/(.+)/(.+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert found
    run = SCRIPT.RUNS[found[1]]
    settings = load_settings(ROOT / SCRIPT.CONFIGS / f"{run.config}.toml", RunSettings)
    assert settings.reader is not None
    assert settings.export is not None
    assert found[2] == "reader-export"


def test_scores_of_finished_runs_are_collected(tmp_path: Path) -> None:
    results = tmp_path / "reading.json"
    results.write_text('{"runs": [{"name": "ablation", "held_out": {"em": 1, "f1": 2}}], "other": 3}')
    folder = tmp_path / "runs" / "ablation-product" / "phrase"
    folder.mkdir(parents=True)
    scores = {"held_out": {"em": 50, "f1": 60}, "report": {"em": 61, "f1": 70}, "seconds": 9.5}
    (folder / "scores.json").write_text(json.dumps(scores))
    assert SCRIPT.collect(tmp_path / "runs", results) == ["ablation-product"]
    assert SCRIPT.collect(tmp_path / "runs", results) == []
    record = json.loads(results.read_text())
    assert record["other"] == 3
    assert [run["name"] for run in record["runs"]] == ["ablation", "ablation-product"]
    assert record["runs"][1]["dev"] == {"em": 61, "f1": 70}
    assert 'model.coherency="product"' in record["runs"][1]["command"]


def test_runs_begin_after_what_they_need_and_not_too_many_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is played by a short process that leaves scores; one does not, and what needs it is not begun."""
    monkeypatch.setattr(SCRIPT, "POLL_SECONDS", 0.01)
    begun: list[tuple[str, set[str]]] = []

    def play(name: str, arguments: Namespace) -> subprocess.Popen[bytes]:
        begun.append((name, {each for each in SCRIPT.RUNS if SCRIPT.is_done(each, tmp_path)}))
        left = [f"{SCRIPT.RUNS[name].stage}/scores.json", "reader-export/model.json"]
        status = 0
        if name == "ask-more":
            left = []
        elif name in ("reader-base", "reader-small") and len(begun) <= 5:  # this machine cannot export
            left, status = left[:1], 2
        script = f"""
import sys, time
from pathlib import Path
time.sleep(0.05)
for name in {left}:
    path = Path({str(tmp_path / name)!r}, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
sys.exit({status})"""
        return subprocess.Popen([sys.executable, "-c", script])

    monkeypatch.setattr(SCRIPT, "begin", play)
    given = Namespace(jobs=2, output=tmp_path)
    failed = SCRIPT.train(["small", "reader-small", "base"], given)
    seeds = ["small-seed-1", "small-seed-2", "small-seed-3"]
    assert sorted(failed) == ["ask-more", "reader-base", "reader-small", "small", *seeds]
    assert sorted(name for name, _ in begun) == ["ask", "ask-more", "base", "reader-base", "reader-small"]
    for name, done in begun:
        assert done.issuperset(SCRIPT.RUNS[name].needs)
    assert SCRIPT.train(["ask", "reader-small"], given) == []  # reader-base is needed, and there
    assert [name for name, _ in begun[5:]] == ["reader-small"]
    assert SCRIPT.train(["ask", "reader-small"], given) == []
    assert len(begun) == 6  # nothing is done twice


def test_a_run_that_is_killed_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(name: str, arguments: Namespace) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])

    monkeypatch.setattr(SCRIPT, "begin", play)
    assert SCRIPT.train(["reader-small"], Namespace(jobs=1, output=tmp_path)) == ["reader-small"]
    assert capsys.readouterr().err == f"reader-small: ended by a signal ({signal.strsignal(9)})\n"


@pytest.mark.parametrize(("jobs", "threads"), [(2, "3"), (4, "1"), (9, "1")])
def test_runs_at_a_time_share_the_cores(
    jobs: int, threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_, env, **__: given.append(env))
    monkeypatch.setattr(SCRIPT, "usable_cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    arguments = Namespace(jobs=jobs, output=tmp_path, data="data", encoders="encoders", set=[])
    SCRIPT.begin("small", arguments)
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    SCRIPT.begin("small", arguments)
    assert [env["OMP_NUM_THREADS"] for env in given] == [threads, "8"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [([], "name a run, or give --list or --collect"), (["small", "--jobs", "0"], "--jobs counts from 1")],
)
def test_bad_use_is_said(
    arguments: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["runs.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        SCRIPT.main()
    assert line in capsys.readouterr().err


def test_ctrl_c_waits_for_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def play(name: str, arguments: Namespace) -> subprocess.Popen[bytes]:
        begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"]))
        return begun[-1]

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SCRIPT, "begin", play)
    monkeypatch.setattr(SCRIPT.time, "sleep", interrupted)
    monkeypatch.setattr(sys, "argv", ["runs.py", "reader-small", "--output", str(tmp_path)])
    assert SCRIPT.main() == 130
    assert [process.returncode for process in begun] == [0]
    assert capsys.readouterr().err == "interrupted; the same command goes on\n"
