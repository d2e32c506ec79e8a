"""What the vector index was chosen by: probes, and a flat scan of the centres against a graph over them.

    pip install faiss-cpu
    python experiments/vector_lists.py --index INDEX --data ../shared/data/squad/train-v1.1.json.gz \
        --output docs/results/vector-lists.json

Questions are of held-out *train* articles; dev is not read. Agreement is that of the best answer, normalised,
with `exact`. Times are processor time of one core, of the stage alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))
from denspi import Index
from denspi.corpus.squad import read_squad
from denspi.search.answers import resolve
from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Limits
from denspi.search.searcher import Searcher
from denspi.search.starts import ListedStarts
from denspi.search.strategies import STRATEGIES
from denspi.text.answers import normalize_answer
from machine import described, machine, write_results
from query import choose

PROBES = (32, 64, 96, 128)
WIDTHS = (128, 256, 512)  # of the graph's search
NEIGHBOURS, BUILD_WIDTH = 32, 200  # of the graph


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an index whose one segment has lists")
    parser.add_argument("--data", type=Path, required=True, help="questions in SQuAD's layout")
    parser.add_argument("--model", help="the folder of the index's model, if it is not the packaged one")
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--output", type=Path, required=True, help="a JSON file; a .md goes beside it")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    faiss.omp_set_num_threads(1)
    about = machine(("numpy", "numba", "faiss-cpu"))
    searcher = Searcher(Index.open(arguments.index, model=arguments.model), compiled=True)
    texts = [each.text for each in choose(read_squad(arguments.data), arguments.questions, False)]
    asked = [searcher.asked(text) for text in texts]
    live, lists = searcher.view.snapshot.live, searcher.view.segments[0].reader.start_lists
    assert lists is not None
    best = [best_answer(searcher, question, "exact", Limits(phrases=20)) for question in asked]
    scan = ListedStarts(0, scan_below=1 << 60)  # `exact` has left its scan in the question
    true = [scan.top_starts(searcher.view, question, Limits().top_starts)[0][1] for question in asked]
    results = {
        "machine": about | {"load_average_at_end": os.getloadavg()},
        "index": {"words": live.words, "starts": live.starts, "lists": len(lists)},
        "questions": len(texts),
        "defaults": {name: getattr(Limits(), name) for name in ("top_paragraphs", "top_starts", "probes")},
        "probes": [probed(searcher, asked, best, true, probes) for probes in PROBES],
        "coarse": coarse(searcher, asked),
    }
    write_results(arguments.output, results, render(results))


def best_answer(searcher: Searcher, question: AskedQuestion, strategy: str, limits: Limits) -> str:
    found = STRATEGIES[strategy](searcher.view, question, limits)
    answers = resolve(searcher.view, question, found, 1)
    return normalize_answer(answers[0].text) if answers else ""


def probed(
    searcher: Searcher,
    asked: Sequence[AskedQuestion],
    best: Sequence[str],
    true: Sequence[np.ndarray],
    probes: int,
) -> dict[str, float]:
    """Agreement of hybrid, what of the best starts the lists hold, and what looking into them takes."""
    view, limits, same, kept, starts_ms = searcher.view, Limits(phrases=20, probes=probes), 0, [], []
    for question, wanted, rows in zip(asked, best, true, strict=True):
        same += best_answer(searcher, question, "hybrid", limits) == wanted
        started = time.process_time()
        found = ListedStarts(probes).top_starts(view, question, limits.top_starts)
        starts_ms.append(1000 * (time.process_time() - started))
        kept.append(len(np.intersect1d(found[0][1], rows)) / len(rows))
    return {
        "probes": probes,
        "agreement": same / len(asked),
        "recall_of_starts": float(np.mean(kept)),
        "starts_ms_p50": float(np.median(starts_ms)),
    }


def coarse(searcher: Searcher, asked: Sequence[AskedQuestion]) -> dict[str, Any]:
    """The default number of lists by all centres, and by graphs over them in floats."""
    view, probes = searcher.view, Limits().probes
    lists = view.segments[0].reader.start_lists
    assert lists is not None
    centres = lists.centres.whole()
    weights = [question.fixed.start_weights for question in asked]
    every = np.arange(len(lists))

    def flat(weight: np.ndarray) -> np.ndarray:
        scores = view.kernels.row_scores(centres, weight, every)
        return np.argpartition(scores, -probes)[-probes:]

    true, flat_ms = timed(flat, weights)
    started = time.process_time()
    graph = faiss.IndexHNSWFlat(centres.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILD_WIDTH
    graph.add(np.ascontiguousarray(centres, np.float32))
    build_s = time.process_time() - started
    rows = []
    for width in WIDTHS:
        graph.hnsw.efSearch = width
        found, graph_ms = timed(lambda w: graph.search(w[None].astype(np.float32), probes)[1][0], weights)
        shared = [len(np.intersect1d(a, b)) / probes for a, b in zip(found, true, strict=True)]
        rows.append({"width": width, "recall_of_lists": float(np.mean(shared)), "ms_p50": graph_ms})
    return {"probes": probes, "flat_ms_p50": flat_ms, "graph_build_s": build_s, "graph": rows}


def timed(
    search: Callable[[np.ndarray], np.ndarray], weights: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], float]:
    found, taken_ms = [], []
    for weight in weights:
        started = time.process_time()
        found.append(search(weight))
        taken_ms.append(1000 * (time.process_time() - started))
    return found, float(np.median(taken_ms))


def render(results: dict[str, Any]) -> str:
    index, chosen, coarse_found = results["index"], results["defaults"], results["coarse"]
    lines = [
        "# The vector index: probes, and how lists are found",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        "python experiments/vector_lists.py --index INDEX --data ../shared/data/squad/train-v1.1.json.gz "
        f"--questions {results['questions']} --output docs/results/vector-lists.json",
        "```",
        "",
        described(results["machine"]),
        "",
        f"{index['words']:,} words, {index['starts']:,} starts in {index['lists']:,} lists; "
        f"{results['questions']} questions of held-out training articles. `hybrid` reads the "
        f"{chosen['top_paragraphs']} closest paragraphs and takes {chosen['top_starts']} starts from "
        f"{chosen['probes']} lists by default. Agreement: the best answer, normalised, is that of `exact`. "
        "Recall: of the closest starts of all, those that the lists gave. Processor time.",
        "",
        "| probes | agreement with exact | recall of starts | starts stage p50 ms |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['probes']} | {row['agreement']:.1%} | {row['recall_of_starts']:.1%} | "
        f"{row['starts_ms_p50']:.2f} |"
        for row in results["probes"]
    ]
    lines += [
        "",
        f"The {coarse_found['probes']} closest lists, by a scan of all centres as they are stored, and by a "
        f"graph (faiss `IndexHNSWFlat`, {NEIGHBOURS} neighbours, inner product, built in "
        f"{coarse_found['graph_build_s']:.1f} s):",
        "",
        "| coarse quantizer | recall of lists | p50 ms |",
        "| --- | --- | --- |",
        f"| flat | 100.0% | {coarse_found['flat_ms_p50']:.3f} |",
    ]
    lines += [
        f"| HNSW, search width {row['width']} | {row['recall_of_lists']:.1%} | {row['ms_p50']:.3f} |"
        for row in coarse_found["graph"]
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
