"""How accuracy and time move as the collection grows: SQuAD's articles, and more and more of Wikipedia's.

An index of SQuAD's articles is copied, and articles of Wikipedia are added in steps. After each, an evenly
spread part of SQuAD dev's questions is asked with every strategy. What is encoded, committed and asked stays
in the scratch folder, and so does what was found at each step: the same command goes on where it was
interrupted, and leaves the largest index there.

    python experiments/tables/collection_growth.py --index INDEX --data ../shared/data --scratch FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from open_runs import OURS, run_ours, spread
from pages import RESULTS, begun, head, markdown, rendered_again, write

from denspi import Document, Index, Searcher
from denspi.build.index import Changes
from denspi.build.pipeline import size_of, why_not
from denspi.corpus import read_corpus
from denspi.corpus.squad import read_squad

OUTPUT = RESULTS / "collection-growth.json"
PLOT = "collection-growth.png"
DEV = "squad/dev-v1.1.json.gz"
MILLIONS = (0.0, 1.0, 2.0, 4.0, 8.0, 100.0)  # words of Wikipedia; the last: all there is
SHOW_EVERY_WORDS = 100_000
POINT = "point.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an index of SQuAD's articles")
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/ and wikipedia/")
    parser.add_argument("--scratch", type=Path, required=True, help="for the growing index and states")
    parser.add_argument("--limit", type=int, default=2000, help="questions at each step")
    parser.add_argument("--millions", type=float, nargs="+", default=MILLIONS, help="words of Wikipedia")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    steps = " ".join(f"{each:g}" for each in arguments.millions)
    command = (
        "python experiments/tables/collection_growth.py --index INDEX --data ../shared/data --scratch FOLDER"
        f" --limit {arguments.limit} --millions {steps}"
    )
    result = begun(command, cores_used=os.cpu_count() or 1) | {"limit": arguments.limit, "points": []}
    folder = copied(arguments.index, arguments.scratch / "growing.index")
    articles = spread(read_squad(arguments.data / DEV), arguments.limit)
    for millions in sorted(arguments.millions):
        states = arguments.scratch / "states" / f"{millions:g}-million"
        point = measured_before(states, arguments.limit)
        if point is None:
            grow(folder, arguments.data, round(1e6 * millions))
            point = measure(folder, articles, states) | {"commit": result["machine"]["commit"]}
            keep(point, states, arguments.limit)
        result["points"].append(point)
        write(arguments.output, result, render)  # what is known so far
        draw(result, arguments.output.with_name(PLOT))


def measured_before(states: Path, limit: int) -> dict[str, Any] | None:
    """What was found at this step with as many questions: the index has grown since, and cannot go back."""
    path = states / POINT
    if not path.exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["limit"] != limit:
        sys.exit(f"{path}: measured with {kept['limit']} questions, not {limit}; name another scratch folder")
    point: dict[str, Any] = kept["point"]
    return point


def keep(point: dict[str, Any], states: Path, limit: int) -> None:
    """Whole or not at all."""
    states.mkdir(parents=True, exist_ok=True)
    unfinished = states / f"{POINT}.unfinished"
    unfinished.write_text(json.dumps({"limit": limit, "point": point}) + "\n", encoding="utf-8")
    unfinished.replace(states / POINT)


def copied(source: Path, folder: Path) -> Path:
    """All of it or nothing."""
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, unfinished)
        unfinished.rename(folder)
    return folder


def grow(folder: Path, data: Path, words: int) -> None:
    """Add articles of Wikipedia until the index holds so many words of them; those it has are passed over."""
    with Index.open(folder) as index:
        snapshot = index.snapshot()
        wanted = list(first_articles(data, words))
        missing = [each for each in wanted if snapshot.find(each.document_id) is None]
        if not missing:
            if any(snapshot.find(each) for each in later_articles(data, wanted)):
                sys.exit(
                    f"{folder}: holds more than {words:,} words of Wikipedia; name another scratch folder"
                )
            return
        total, last = sum(size_of(each).words for each in missing), 0

        def show(changes: Changes) -> None:
            nonlocal last
            done = changes.encoded.words + changes.unchanged.words
            if done - last >= SHOW_EVERY_WORDS:
                last = done
                print(f"{done:,} of {total:,} words encoded", file=sys.stderr, flush=True)

        del snapshot
        index.add(missing, show)
        index.commit()


def first_articles(data: Path, words: int) -> Iterator[Document]:
    seen = 0
    for path in sorted(data.glob("wikipedia/*.jsonl.gz")):
        for item in read_corpus(path):
            if seen >= words:
                return
            if isinstance(item, Document) and not why_not(item):
                seen += size_of(item).words
                yield item


def later_articles(data: Path, wanted: Sequence[Document]) -> Iterator[str]:
    """Ids of the articles that come next."""
    taken = {each.document_id for each in wanted}
    every = (each.document_id for each in first_articles(data, sys.maxsize))
    return islice((each for each in every if each not in taken), 1)


def measure(folder: Path, articles: Any, states: Path) -> dict[str, Any]:
    index = Index.open(folder)
    info = index.info()
    searcher = Searcher(index)
    print(f"{info.words:,} words", file=sys.stderr, flush=True)
    return {
        "documents": info.documents,
        "words": info.words,
        "starts": info.starts,
        "segments": info.segments,
        "bytes_per_word": round(info.bytes_per_word, 2),
        "systems": {
            name: run_ours(name, each.settings, searcher, articles, states) for name, each in OURS.items()
        },
    }


def render(result: dict[str, Any]) -> str:
    points = result["points"]
    names = list(points[0]["systems"])
    asked = points[0]["systems"][names[0]]["questions"]
    lines = [
        *head("As the collection grows", result),
        f"{asked:,} questions of SQuAD dev, evenly spread, put to the articles of SQuAD and more and more"
        " articles of Wikipedia (none of which shares a title with one of SQuAD). The first column of the"
        " tables is the collection, in words.",
        "",
        f"![Exact match and time against words]({PLOT})",
    ]
    if earlier := {each["commit"] for each in points if "commit" in each} - {result["machine"]["commit"]}:
        lines += ["", f"Some points were measured at {', '.join(sorted(earlier))}."]
    for title, field, form, factor in (
        ("Exact match", "em", ".1f", 1),
        ("F1", "f1", ".1f", 1),
        ("The right answer is among five", "top_k_em", ".1f", 1),
        ("Milliseconds a question, one by one, warm", "seconds_per_question", ".1f", 1000),
        ("Documents visited", "documents_per_question", ",.1f", 1),
    ):
        rows = [
            (f"{each['words']:,}", *(format(factor * each["systems"][name][field], form) for name in names))
            for each in points
        ]
        lines += ["", f"## {title}", "", *markdown(("words", *names), rows)]
    rows = [
        tuple(f"{each[name]:,}" for name in ("words", "documents", "starts", "segments", "bytes_per_word"))
        for each in points
    ]
    heads = ("words", "documents", "starts", "segments", "bytes a word")
    lines += ["", "## The indexes", "", *markdown(heads, rows)]
    return "\n".join(lines) + "\n"


def draw(result: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    points = result["points"]
    words = [each["words"] / 1e6 for each in points]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), dpi=110, layout="constrained")
    for axis, field, factor, label in (
        (axes[0], "em", 1, "exact match, %"),
        (axes[1], "seconds_per_question", 1000, "ms a question, warm"),
    ):
        for name in points[0]["systems"]:
            axis.plot(words, [factor * each["systems"][name][field] for each in points], "o-", label=name)
        axis.set_xscale("log")
        axis.set_xticks(words, [f"{each:.1f}" for each in words])
        axis.set_xticks([], minor=True)
        axis.set_xlabel("million words in the index")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.grid(True, which="both", linewidth=0.3)
    axes[0].legend(fontsize=8)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def again() -> None:
    """Page and picture from the figures that are there."""
    rendered_again(OUTPUT, render)
    draw(json.loads(OUTPUT.read_text(encoding="utf-8")), OUTPUT.with_name(PLOT))


if __name__ == "__main__":
    again() if sys.argv[1:2] == ["--render"] else main()
