"""The page and the plot of benchmarks/growth.py, from its JSON alone. Measures nothing.

    python benchmarks/growth_page.py docs/results/growth.json

renders them again without measuring anything.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from machine import described

PLOT = "growth.png"


def render(results: dict[str, Any]) -> str:
    sizes = results["sizes"]
    first, last = sizes[0], sizes[-1]
    millions = " ".join(f"{each:g}" for each in results["millions"])
    lines = [
        "# Growth: what a question costs in larger indexes",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        f"python benchmarks/growth.py --index INDEX --data ../shared/data/squad/{results['data']}"
        f" --scratch FOLDER --millions {millions} --questions {results['questions']}"
        " --output docs/results/growth.json",
        "```",
        "",
        described(results["machine"]),
        "",
        f"The documents of a real index, {results['real_starts']:,} starts, come one after another and then"
        " again under other ids, until there are so many; from the second time on every code of a vector is"
        f" moved by noise (standard deviation: {results['noise']:g} steps of the code). Texts and so the"
        " postings grow with them. The index is"
        f" written by the project's own writer. {results['questions']} questions; `hybrid` with the first"
        " limits of those below that give the best answer of `exact` to"
        f" {100 * results['recall_wanted']:.0f}% of them. Warm, one core, from the vector of the question to"
        " answers. Anonymous memory is what the process holds beside its mapped files, Python, the model and"
        " the compiler included.",
        "",
        "| starts | words | segments | lists | on disk, GB | probes / starts / paragraphs"
        " | best answer as `exact`, %"
        " | wall p50 / p95 ms | processor p50 / p95 ms | anonymous memory, MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for each in sizes:
        wall, cpu = each["wall_ms"], each["cpu_ms"]
        lines.append(
            f"| {each['starts']:,} | {each['words']:,} | {each['segments']} | {each['lists']:,}"
            f" | {each['bytes'] / 1e9:.2f} | {_limits(each['limits'])} | {100 * each['recall']:.1f}"
            f" | {wall['p50']} / {wall['p95']} | {cpu['p50']} / {cpu['p95']}"
            f" | {each['anonymous_bytes'] / 1e6:.0f} |"
        )
    wall, cpu = (last[kind]["p50"] / first[kind]["p50"] for kind in ("wall_ms", "cpu_ms"))
    lines += [
        "",
        f"The median at {last['starts'] / 1e6:.3g} million starts is {wall:.1f} times that at"
        f" {first['starts'] / 1e6:.3g} million; of processor time, {cpu:.1f} times.",
        "",
        f"![Median time of a question and anonymous memory by the number of starts]({PLOT})",
        "",
        "| starts | stages, wall p50 / p95 ms | best answer as `exact` by probes / starts / paragraphs, % |",
        "| --- | --- | --- |",
    ]
    for each in sizes:
        stages = "; ".join(f"{name} {ms['p50']} / {ms['p95']}" for name, ms in each["stages_ms"].items())
        recalls = "; ".join(f"{_limits(one)}: {100 * one['recall']:.1f}" for one in each["recalls"])
        lines.append(f"| {each['starts']:,} | {stages} | {recalls} |")
    return "\n".join(lines) + "\n"


def _limits(each: dict[str, int]) -> str:
    return " / ".join(str(each[name]) for name in ("probes", "top_starts", "top_paragraphs"))


def plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes = results["sizes"]
    starts = [each["starts"] for each in sizes]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), dpi=120)
    for kind, colour in (("wall", "tab:blue"), ("cpu", "tab:orange")):
        for share, style in (("p50", "o-"), ("p95", "o--")):
            values = [each[f"{kind}_ms"][share] for each in sizes]
            label = f"{'wall' if kind == 'wall' else 'processor'}, {share}"
            left.plot(starts, values, style, color=colour, label=label)
    linear = [sizes[0]["wall_ms"]["p50"] * each / starts[0] for each in starts]
    left.plot(starts, linear, ":", color="grey", label="in proportion to the index")
    left.set_yscale("log")
    left.set_ylabel("ms, hybrid, one core, encoded before")
    left.legend(fontsize=8)
    right.plot(starts, [each["anonymous_bytes"] / 1e6 for each in sizes], "o-", color="tab:green")
    right.set_ylim(0, 1.1 * max(each["anonymous_bytes"] / 1e6 for each in sizes))
    right.set_ylabel("anonymous memory, MB")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("starts")
        axes.grid(True, which="both", linewidth=0.3)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    measured = json.loads(path.read_text(encoding="utf-8"))
    path.with_suffix(".md").write_text(render(measured), encoding="utf-8")
    plot(measured, path.with_name(PLOT))
