"""What is said of an exported model is measured on it, and measuring leaves it as it is."""

import gzip
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.project.figures import load_script
from tests.tiny import save_facts

from denspi.corpus.squad import read_squad
from denspi.dense.models import find_model
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.runtime_folder import read_record
from denspi.evaluation.answering import PhraseAnswerer
from denspi.evaluation.reading import evaluate_reading


def save_packed(path: Path, articles: int, seed: int) -> None:
    plain = path.with_suffix("")
    save_facts(plain, articles, seed)
    path.write_bytes(gzip.compress(plain.read_bytes()))


def test_an_exported_model_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, squad, output = find_model("small"), tmp_path / "squad", tmp_path / "results"
    squad.mkdir()
    output.mkdir()
    save_packed(squad / "train-v1.1.json.gz", articles=60, seed=0)
    save_packed(squad / "dev-v1.1.json.gz", articles=2, seed=1)
    (output / "reading.json").write_text('{"runs": []}')
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    script = load_script("experiments/training/shipped.py")
    monkeypatch.setattr("sys.argv", ["shipped.py", "--data", str(tmp_path), "--output", str(output)])
    script.main()
    found = {
        name: json.loads((output / f"{name}.json").read_text())
        for name in ("filter", "calibration", "reading")
    }
    record = read_record(folder)
    assert record.filter
    assert found["filter"]["thresholds"] == asdict(record.filter)
    assert found["filter"]["recall_target"] == 0.934
    assert record.calibration
    assert found["calibration"]["shipped"] == asdict(record.calibration)
    read = evaluate_reading(PhraseAnswerer(load_encoder(folder)), read_squad(squad / "dev-v1.1.json.gz"))
    [said] = found["reading"]["exported_small_on_dev"]
    assert (said["route"], said["questions"]) == ("int8, smoothed", 18)
    assert (said["em"], said["f1"]) == (round(read.em, 3), round(read.f1, 3))
    assert found["filter"]["dev"]["em"] == pytest.approx(read.em)
    assert found["reading"]["runs"] == []
    assert (output / "calibration.png").exists()
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
