"""The curves of a stage: its log.jsonl drawn as curves.png, losses on the left, validations on the right.

Loads neither torch nor, before it draws, matplotlib; so it also draws what a machine without either has left:

    python -m denspi.training.curves RUN/phrase RUN/negatives
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from denspi.errors import DenspiError, InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of each record, what is no curve: its place, and what tells of the optimizer rather than of the model.
PLACES = frozenset({"seconds", "step", "epoch", "gradient"})
NAMES = {"em": "EM", "f1": "F1"}
# The loss black, its parts and the scores in colours that the colour-blind tell apart (Okabe and Ito's).
COLOURS = {"loss": "#1a1a1a", "em": "#0072b2", "f1": "#d55e00"}
OTHER_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
GREY = "#6b6b6b"

Points = Sequence[tuple[float, float]]  # (step, value)


@dataclass(frozen=True, slots=True)
class Curves:
    """What a log holds, by name: means of the training steps, and scores on the held-out articles."""

    losses: Mapping[str, Points]
    scores: Mapping[str, Points]
    epochs: int  # of the last validation


def draw_curves(folder: Path) -> Path:
    """Write `folder`/curves.png from `folder`/log.jsonl, whole or not at all."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("drawing curves", "train") from None
    curves = read_log(folder / "log.jsonl")
    figure = Figure(figsize=(11, 4.2), dpi=130, layout="constrained")
    _draw(figure, curves, "/".join(folder.resolve().parts[-2:]))
    path = folder / "curves.png"
    half_written = folder / ".curves.png"
    try:
        figure.savefig(half_written, format="png")
        os.replace(half_written, path)
    finally:
        half_written.unlink(missing_ok=True)
    return path


def read_log(path: Path) -> Curves:
    """Read a log; a record with an epoch is a validation."""
    losses: dict[str, list[tuple[float, float]]] = {}
    scores: dict[str, list[tuple[float, float]]] = {}
    epochs = 0
    try:
        for record in _records(path):
            epochs = max(epochs, int(record.get("epoch", 0)))
            into = scores if "epoch" in record else losses
            for name in record.keys() - PLACES:
                into.setdefault(name, []).append((record["step"], float(record[name])))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a training log ({error})") from None
    if not losses and not scores:
        raise InputError(f"{path}: holds no record yet")
    return Curves(_ordered(losses), _ordered(scores), epochs)


def _records(path: Path) -> Iterator[dict[str, float]]:
    try:
        lines = path.read_text().splitlines(keepends=True)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: there is no such log; name the folder of a stage") from None
    # The last line of a run that is killed, or still going on, may be half-written.
    return (json.loads(line) for line in lines if line.endswith("\n"))


def _ordered(points: dict[str, list[tuple[float, float]]]) -> dict[str, Points]:
    """The total and the well-known first, then by name."""
    first = list(COLOURS)
    return {
        name: points[name]
        for name in sorted(points, key=lambda n: (first.index(n) if n in first else len(first), n))
    }


def _draw(figure: Figure, curves: Curves, title: str) -> None:
    left, right = figure.subplots(1, 2)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    _draw_losses(left, curves.losses)
    _draw_scores(right, curves)
    end = max(step for points in (*curves.losses.values(), *curves.scores.values()) for step, _ in points)
    for axes in (left, right):
        axes.set_xlim(0, end)
        axes.set_xlabel("step", color=GREY)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(which="both", colors=GREY, length=0)
        axes.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color("#bdbdbd")
        axes.set_axisbelow(True)


def _draw_losses(axes: Axes, losses: Mapping[str, Points]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_title("training loss", loc="left", fontsize=11)
    for name, colour in _coloured(losses):
        steps, values = zip(*losses[name], strict=True)
        # Records are means already; smoothed further, the drop from one epoch to the next would look gradual.
        axes.plot(steps, values, color=colour, linewidth=1.4, label=f"{name} {values[-1]:.3g}")
    flat = [value for points in losses.values() for _, value in points]
    if flat and 0 < min(flat) < max(flat) / 10:  # else the first steps press all that follows onto the axis
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    if losses:
        axes.legend(frameon=False, fontsize=9)


def _draw_scores(axes: Axes, curves: Curves) -> None:
    axes.set_title(f"held-out articles, to epoch {curves.epochs}", loc="left", fontsize=11)
    for name, colour in _coloured(curves.scores):
        steps, values = zip(*curves.scores[name], strict=True)
        axes.plot(steps, values, color=colour, linewidth=1.8, marker="o", markersize=5, clip_on=False)
        axes.annotate(
            f"{NAMES.get(name, name)} {values[-1]:.4g}",
            (steps[-1], values[-1]),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold",
            annotation_clip=False,
        )
    axes.margins(y=0.15)


def _coloured(curves: Mapping[str, Points]) -> Iterator[tuple[str, str]]:
    others = iter([c for c in OTHER_COLOURS if c not in {COLOURS.get(name) for name in curves}] * len(curves))
    for name in curves:
        yield name, COLOURS.get(name) or next(others)


def main(folders: Sequence[str]) -> int:
    """Draw each folder's log and name what was written."""
    try:
        if not folders or any(folder.startswith("-") for folder in folders):
            raise InputError("usage: python -m denspi.training.curves FOLDER..., each the folder of a stage")
        for folder in folders:
            print(draw_curves(Path(folder)))
    except DenspiError as error:
        print(f"denspi: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"denspi: {error.filename or folder}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
