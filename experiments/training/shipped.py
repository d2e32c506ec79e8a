"""What denspi-small's filter, codes and confidence do, measured on the model as it is shipped.

    python experiments/training/shipped.py --data ../shared/data

Writes docs/results/filter.json and calibration.json, the figures that [filter] and [calibrate] leave of the
model before its export, and in reading.json how the export reads, on one core; draws the pictures. Changes
nothing in the model: thresholds and codes are its own; the confidence is fitted once more, as [calibrate]
does, to be judged on articles that it was not fitted on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from denspi.corpus.squad import SquadArticle, read_squad
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.models import find_model
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.runtime_folder import read_record
from denspi.evaluation.answering import PhraseAnswerer
from denspi.evaluation.reading import evaluate_reading
from denspi.settings import load_settings
from denspi.training.calibrate import calibrate
from denspi.training.examples import is_held_out, make_examples
from denspi.training.filter_stage import Reading, costs, filter_record
from denspi.training.settings import CalibrateStage, RunSettings

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
MODEL = "small"
CONFIG = ROOT / "experiments" / "training" / "small.toml"
sys.path.append(str(ROOT / "benchmarks"))
from machine import machine  # noqa: E402

READING_FIGURES = ("em", "f1", "questions", "paragraphs", "words", "words_per_second", "questions_per_second")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/")
    parser.add_argument("--output", type=Path, default=RESULTS, help="a folder with reading.json")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    settings = load_settings(CONFIG, RunSettings)
    assert settings.filter is not None
    folder = find_model(MODEL)
    encoder = load_encoder(folder)
    train = read_squad(arguments.data / "squad" / "train-v1.1.json.gz")
    held_out = [each for each in train if is_held_out(each.title, settings.held_out_share)]
    dev = read_squad(arguments.data / "squad" / "dev-v1.1.json.gz")
    about = {
        "model": folder.name,
        "command": "python experiments/training/shipped.py --data ../shared/data",
        "machine": machine(("numpy", "onnxruntime")),
    }
    readings = {"held_out": reading(encoder, held_out, settings), "dev": reading(encoder, dev, settings)}
    write(
        arguments.output / "filter.json", about | measured_filter(encoder, readings, settings.filter.recall)
    )
    found = asdict(calibrate(encoder, held_out, (settings.calibrate or CalibrateStage()).weights))
    shipped = encoder.calibration
    write(
        arguments.output / "calibration.json",
        about | {"shipped": shipped and asdict(shipped)} | found,
    )
    path = arguments.output / "reading.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    stored = read_record(folder).quantization
    route = {"route": stored.route + (", smoothed" if stored.smoothed else "")}
    for name, articles in (("held_out", held_out), ("dev", dev)):
        record[f"exported_small_on_{name}"] = [route | read(encoder, articles)]
    record["exported_machine"] = about["machine"]
    write(path, record)
    subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "plots" / "reading.py"), str(arguments.output)],
        check=True,
    )


def reading(encoder: PhraseEncoder, articles: list[SquadArticle], settings: RunSettings) -> Reading:
    examples = make_examples(articles, encoder.tokenizer, settings.limits)
    return Reading(encoder, examples, list(encoder.encode_paragraphs(e.text for e in examples)))


def measured_filter(encoder: PhraseEncoder, readings: dict[str, Reading], recall: float) -> dict[str, Any]:
    thresholds, quantizer, compact = encoder.filter_thresholds, encoder.quantizer, encoder.compact
    assert thresholds is not None
    assert quantizer is not None
    return filter_record(readings["held_out"], thresholds, compact, recall) | {
        name: costs(each, thresholds, quantizer, compact) for name, each in readings.items()
    }


def read(encoder: PhraseEncoder, articles: list[SquadArticle]) -> dict[str, Any]:
    found = asdict(evaluate_reading(PhraseAnswerer(encoder), articles))
    return {
        key: round(found[key], 3) if isinstance(found[key], float) else found[key]
        for key in (*READING_FIGURES, "seconds")
    }


def write(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(path, flush=True)


if __name__ == "__main__":
    main()
