"""The list of training runs: each is a configuration that loads, in an order that has all it needs."""

from __future__ import annotations

import json
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
