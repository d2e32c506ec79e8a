"""The page and the plot of benchmarks/query.py, from its JSON alone. Measures nothing.

    python benchmarks/query_page.py docs/results/query.json

renders them again without measuring anything.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from machine import described
from systems import OURS

PLOT = "query.png"


def render(results: dict[str, Any]) -> str:
    index, before = results["index"], results.get("rereading_measured")
    lines = [
        "# Questions: what an answer costs",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        f"python benchmarks/query.py --index INDEX{'' if before else ' --reader DIR'}"
        f" --data ../shared/data/squad/{results['data']}"
        f" --questions {results['questions']} --document-questions {results['document_questions']}"
        f" --cold-questions {results['cold']['questions']} --batch-questions {results['batch']['questions']}"
        f"{' --all-articles' if results['questions_of'] == 'all articles' else ''}"
        " --output docs/results/query.json",
        "```",
        "",
        described(results["machine"]),
        "",
        f"{index['documents']:,} documents, {index['paragraphs']:,} paragraphs, {index['words']:,} words"
        f" (signs counted), {index['starts']:,} starts, {results['precision']}; reader {results['reader']}."
        f" {results['questions']} questions of {results['questions_of']} ({results['data']}), from text"
        " to answers; the systems take turns. EM is of these questions alone, with the half width of its 95%"
        " interval.",
        "",
        "Wall time on a machine with other work on it holds the waiting too; processor time does not.",
        *_order(results),
        *_before(before),
        "",
        "## Warm",
        "",
        "| system | questions | EM | wall p50 / p95 ms | processor p50 / p95 ms"
        " | against hybrid: wall | processor |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in results["systems"].items():
        wall, cpu = found["wall_ms"], found["cpu_ms"]
        against = results["times_slower_than_hybrid"].get(name, {"wall": 1, "cpu": 1})
        lines.append(
            f"| {name} | {found['questions']} | {found['em']} ± {found['em_half_width']}"
            f" | {wall['p50']} / {wall['p95']} | {cpu['p50']} / {cpu['p95']}"
            f" | {against['wall']}x | {against['cpu']}x |"
        )
    lines += [
        "",
        f"![Exact match against latency, the better the higher and the further left]({PLOT})",
        "",
        "The line is the frontier: no system left of a point on it is as good. "
        + (
            "Hybrid stands on it."
            if OURS in frontier(results)
            else "Hybrid does not stand on it in this run."
        ),
        "",
        "Stages, wall p50 / p95 ms:",
        "",
        "| system | stages |",
        "| --- | --- |",
    ]
    for name, found in results["systems"].items():
        stages = "; ".join(f"{stage} {ms['p50']} / {ms['p95']}" for stage, ms in found["stages_ms"].items())
        read = f" ({found['paragraphs_reread']} paragraphs read)" if found["paragraphs_reread"] else ""
        lines.append(f"| {name} | {stages}{read} |")
    return "\n".join(lines + cold_lines(results["cold"]) + batch_lines(results["batch"])) + "\n"


def _order(results: dict[str, Any]) -> list[str]:
    """What is to be said of results from before the systems were kept apart."""
    if results.get("are_kept_apart"):
        return []
    return [
        "",
        "In this run `hybrid` had each question right after `sparse_first` and `dense_first` and found in the"
        " caches what they had read: its time is some tenths of a millisecond too low, and the ratios to it"
        " are about a tenth too high.",
    ]


def _before(measured: dict[str, Any] | None) -> list[str]:
    """What is to be said of systems that were measured in another run."""
    if measured is None:
        return []
    ours = measured["hybrid_wall_ms"]
    return [
        "",
        f"Pipelines that read texts anew, and batches, were measured on {measured['date']}, at"
        f" {measured['commit']}, with the same questions. There `hybrid` took {ours['p50']} /"
        f" {ours['p95']} ms, and their ratios are to that.",
    ]


def cold_lines(cold: dict[str, Any]) -> list[str]:
    if not cold["questions"]:
        return []
    lines = [
        "",
        "## Cold, from disk",
        "",
        f"The first question after an index is opened, {cold['questions']} times for each strategy. Before"
        " each, the index is closed and the kernel drops the pages of all its files (posix_fadvise with"
        f" POSIX_FADV_DONTNEED; {cold['resident_percent_after_dropping']}% of them were in memory still)."
        " What is read is checked against its checksums. The model and the compiled loops are loaded.",
        "",
        "| strategy | opening p50 / p95 ms | first question p50 / p95 ms |",
        "| --- | --- | --- |",
    ]
    for name, ms in cold["strategies"].items():
        opening, first = ms["opening_ms"], ms["first_question_ms"]
        lines.append(f"| {name} | {opening['p50']} / {opening['p95']} | {first['p50']} / {first['p95']} |")
    return lines


def batch_lines(batch: dict[str, Any]) -> list[str]:
    if not batch["questions"]:
        return []
    limits, rate, reader = batch["bounds"], batch["words_per_s"], batch["reader_words_per_s"]
    lines = [
        "",
        "## In batches",
        "",
        f"{batch['questions']} questions at once on {batch['cores']} cores; an eighth of them one by one, on"
        " one core, beside it, with the same answers. Milliseconds for each question:",
        "",
        "| strategy | k | one by one: wall, processor | in batches: wall, processor |",
        "| --- | --- | --- | --- |",
    ]
    for name, run in batch["runs"].items():
        lines.append(
            f"| {name} | {run['k']} | {run['loop_wall_ms']}, {run['loop_cpu_ms']}"
            f" | {run['batch_wall_ms']}, {run['batch_cpu_ms']} |"
        )
    lines += [
        "",
        "W/s, the paper's measure, is words of the index (between white space:"
        f" {batch['words']:,}) times questions by seconds; the paper reaches 28.7 million. `exact` scores"
        " every start and every end row for every question and proves the best phrase by the full formula,"
        f" its best end included: **{rate['wall'] / 1e6:.1f} million W/s**, and"
        f" {rate['processor'] / 1e6:.1f} million by"
        " processor time, that is, if no other program had used the cores. The reader reads"
        f" {reader['wall']:,} ({reader['processor']:,}) words a second on the same cores, so that `exact` is"
        f" {batch['exact_to_reader']['wall']:,} ({batch['exact_to_reader']['processor']:,}) times as fast.",
        "",
        f"Bounds: memory is read at {limits['memory_bytes_per_s'] / 1e9:.1f} GB/s, and"
        f" {limits['rows']:,} rows of {limits['row_bytes']} bytes are read once for 32 questions: at most"
        f" {limits['words_per_s_by_memory'] / 1e6:,.0f} million W/s.",
    ]
    if "words_per_s_by_arithmetic" in limits:
        by_arithmetic = limits["words_per_s_by_arithmetic"]
        nearer = "arithmetic" if by_arithmetic < limits["words_per_s_by_memory"] else "memory"
        lines[-1] += (
            " From the cache the same loop does"
            f" {limits['multiplications_per_s'] / 1e9:.0f} billion multiplications a second: at most"
            f" {by_arithmetic / 1e6:,.0f} million W/s. The nearer bound is {nearer}. Both are wall time, the"
            " best of five; the rest of a batch's time goes into encoding the questions, words, and reading"
            " the best paragraphs."
        )
    return lines


def frontier(results: dict[str, Any]) -> list[str]:
    """Systems such that none is both sooner and as good, soonest first; of those that all questions got."""
    best, found = -1.0, []
    asked = {
        name: each for name, each in results["systems"].items() if each["questions"] == results["questions"]
    }
    for name, each in sorted(asked.items(), key=lambda item: (item[1]["wall_ms"]["p50"], -item[1]["em"])):
        if each["em"] > best:
            best = each["em"]
            found.append(name)
    return found


def plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    systems = results["systems"]
    figure, axes = plt.subplots(figsize=(10, 5.5), dpi=120)
    colours = {"denspi": "tab:blue", "tf-idf": "tab:orange", "bm25s": "tab:green"}
    markers = dict.fromkeys(colours, 0)  # so many of each kind are drawn
    for name, each in systems.items():
        kind, em, half = kind_of(name), each["em"], each["em_half_width"]
        few = f", {each['questions']} questions" if each["questions"] < results["questions"] else ""
        axes.errorbar(
            [each["wall_ms"]["p50"]],
            [em],
            yerr=[[min(half, em)], [min(half, 100 - em)]],
            fmt="oDs^v"[markers[kind] % 5],
            capsize=2,
            elinewidth=0.5,
            color=colours[kind],
            label=name + few,
        )
        markers[kind] += 1
    line = [systems[name] for name in frontier(results)]
    axes.step(
        [each["wall_ms"]["p50"] for each in line],
        [each["em"] for each in line],
        where="post",
        color="grey",
        linewidth=1,
        zorder=0,
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("wall time of a question, median, ms (one core, warm)")
    axes.set_ylabel("exact match, % (with its 95% interval)")
    axes.set_title(f"{results['questions']} questions over {results['index']['words']:,} words")
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
    axes.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def kind_of(name: str) -> str:
    return next((kind for kind in ("tf-idf", "bm25s") if f"({kind})" in name), "denspi")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    measured = json.loads(path.read_text(encoding="utf-8"))
    path.with_suffix(".md").write_text(render(measured), encoding="utf-8")
    plot(measured, path.with_name(PLOT))
