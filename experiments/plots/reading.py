"""Draw docs/results/filter.png and calibration.png from the figures beside them.

python experiments/plots/reading.py [RESULTS]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt


def draw_filter(results: Path) -> None:
    record = json.loads((results / "filter.json").read_text())
    curve = record["curve"]
    recall = [100 * point["recall"] for point in curve]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for side in ("starts", "ends"):
        axes.plot([100 * point[f"kept_{side}"] for point in curve], recall, marker="o", label=side)
    axes.axhline(100 * record["recall_target"], color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlabel="kept, % of possible ones", ylabel="answers kept, %", title=record["model"])
    axes.legend()
    figure.savefig(results / "filter.png", dpi=110, metadata={"Software": None})


def draw_calibration(results: Path) -> None:
    record = json.loads((results / "calibration.json").read_text())
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    bins = record["reliability"]
    left.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle="--")
    left.plot([each["confidence"] for each in bins], [each["accuracy"] for each in bins], marker="o")
    left.set(xlabel="confidence", ylabel="right answers", title="a tenth of the answers in each point")
    right.plot(record["coverage"], record["risk"], marker="o")
    right.set(xlabel="questions answered, surest first", ylabel="wrong answers among them", ylim=(0, None))
    right.set_title(record["model"])
    figure.savefig(results / "calibration.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    draw_filter(folder)
    draw_calibration(folder)
