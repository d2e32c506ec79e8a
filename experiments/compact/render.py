"""docs/results/index-size.md and its figure from the study's JSON.

python experiments/compact/render.py docs/results/index-size.json
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

_PAGE, _ALL_ARTICLES = (Path(__file__).with_name(name) for name in ("page.txt", "all_articles.txt"))


def render(result: dict, whole: str) -> str:
    """The page; `whole` is the section on all articles."""
    default, again = _recommended(result, 112, 0.98), _recommended(result, 56, 0.95)
    baseline = result["scan"][0]
    scans = [
        (
            f"{each['code']} {each['vector_bytes']}",
            f"{each['numpy_ns']:.0f} ({each['numpy_ns'] / baseline['numpy_ns']:.2f})",
            f"{each['compiled_ns']:.1f} ({each['compiled_ns'] / baseline['compiled_ns']:.2f})",
        )
        for each in result["scan"]
    ]
    return _PAGE.read_text().format(
        all_articles=whole,
        **{key: result[key] for key in result if key not in _TABLES},
        **{
            key: _points(result[key], result["float"], result["questions"])
            for key in _TABLES
            if key != "rescored" and key != "scan"
        },
        front=_points(front(result), result["float"], result["questions"]),
        at=result["codes"][0]["recall"],
        recommended=_points([default, again], result["float"], result["questions"]),
        again_recall=again["recall"],
        again_open=again["open_em"],
        rescored=", ".join(f"{n} paragraphs {em:.2f} EM" for n, em in result["rescored"].items()),
        scan=_table(("code", "numpy (against int8)", "compiled (against int8)"), scans),
    )


_TABLES = ("filter", "int8", "codes", "keys", "budget", "rescored", "scan")


def _recommended(result: dict, vector_bytes: int, recall: float) -> dict:
    return next(p for p in result["budget"] if p["row_bytes"][0] == vector_bytes and p["recall"] == recall)


def front(result: dict) -> list[dict]:
    """Points in the order of size, each with more same answers than all before it."""
    best, chosen = -1.0, []
    for point in sorted(result["budget"] + result["int8"], key=lambda p: p["bytes_a_word"]):
        if point["same_answer"] > best:
            best = point["same_answer"]
            chosen.append(point)
    return chosen


def _error(point: dict, questions: int) -> float:
    """Standard error, in EM, of the distance between two runs of the same questions."""
    lost, gained = point["lost"] / questions, point["gained"] / questions
    return 100 * math.sqrt((lost + gained - (gained - lost) ** 2) / questions)


def _points(points: list[dict], exact: dict, questions: int) -> str:
    rows = []
    for p in points:
        vector, key = p["row_bytes"]
        rows.append(
            (
                p["code"],
                f"{p['recall']:.0%}" if p["recall"] else "no filter",
                f"{vector:g} + {key:g}",
                f"{p['rows_a_word'][0]:.2f} + {p['rows_a_word'][1]:.2f}",
                f"{p['bytes_a_word']:.0f}",
                f"{p['reading_em']:.2f}",
                f"{p['dense_em']:.2f}",
                f"{p['open_em']:.2f} ({p['open_em'] - exact['open_em']:+.2f} ± {_error(p, questions):.2f})",
                f"{p['lost']} / {p['gained']}",
                f"{p['same_answer']:.1f}%",
                f"{p['score_error']:.3f}" if p["score_error"] else "",
            )
        )
    heads = (
        "code",
        "recall target",
        "row bytes",
        "starts + ends a word",
        "bytes a word",
        "reading",
        "dense",
        "open EM",
        "lost / gained",
        "same answer",
        "score error",
    )
    return _table(heads, rows)


def all_articles(result: dict) -> str:
    """What index-size-all.json says, as a section of the page."""
    exact = result["points"][0]
    rows = []
    for p in result["points"]:
        taken = p["latency_ms"]
        difference = f" ({p['open_em'] - exact['open_em']:+.1f} ± {_error(p, result['questions']):.1f})"
        rows.append(
            (
                p["code"],
                f"{p['bytes_a_word']:.1f}",
                f"{p['open_em']:.1f}" + (difference if p is not exact else ""),
                f"{p['open_f1']:.1f}",
                f"{p['lost']} / {p['gained']}",
                f"{p['same_answer']:.1f}%",
                f"{taken['median']:.0f} / {taken['p95']:.0f}" if taken else "",
            )
        )
    heads = ("rows", "bytes a word", "EM", "F1", "lost / gained", "same answer", "ms, median / 95%")
    return _ALL_ARTICLES.read_text().format(**result, table=_table(heads, rows))


def _all_articles_beside(output: Path) -> str:
    """Nothing before it was measured."""
    path = output.with_name("index-size-all.json")
    return all_articles(json.loads(path.read_text())) if path.exists() else ""


def _table(heads, rows) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(each) + " |" for each in lines)


def draw(result: dict, path: Path) -> None:
    """Open EM and same answers over bytes a word."""
    import matplotlib

    matplotlib.use("svg" if path.suffix == ".svg" else "agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, field, label in zip(
        axes, ("open_em", "same_answer"), ("open EM", "same answer as floats, %"), strict=True
    ):
        for name, points, mark in (
            ("compact, by filter and row", result["budget"], "o"),
            ("int8, by filter", result["int8"], "s"),
            ("other codes at one filter", [p for p in result["codes"] if _is_rival(p)], "x"),
        ):
            shown = [p for p in points if p["bytes_a_word"] < 320]
            axis.plot([p["bytes_a_word"] for p in shown], [p[field] for p in shown], mark, ms=4, label=name)
        for limit in (90, 200):
            axis.axvline(limit, color="0.7", lw=1)
        axis.set(xlabel="bytes a word", ylabel=label)
    axes[0].axhline(result["float"]["open_em"], color="0.4", lw=1, ls="--")
    axes[1].legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _is_rival(point: dict) -> bool:
    return not point["code"].startswith(("compact", "int8"))


def write(output: Path) -> None:
    """Page and figure beside the JSON."""
    result = json.loads(output.read_text())
    output.with_suffix(".md").write_text(render(result, _all_articles_beside(output)))
    draw(result, output.with_suffix(".png"))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
