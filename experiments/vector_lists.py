"""What the limits of hybrid and dense_first were chosen by; a scan of the centres against a graph over them.

    pip install faiss-cpu
    python experiments/vector_lists.py --index INDEX --index LARGER_INDEX \
        --data ../shared/data/squad/train-v1.1.json.gz --output docs/results/vector-lists.json

Questions are of held-out *train* articles; dev is not read. Agreement is that of the best answer, normalised,
with `exact`. Times are processor time of one core, warm.
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
from denspi.corpus.squad import SquadQuestion, read_squad
from denspi.search.answers import resolve
from denspi.search.asked import AskedQuestion
from denspi.search.candidates import REACHES, Limits
from denspi.search.searcher import Searcher
from denspi.search.strategies import STRATEGIES
from denspi.text.answers import exact_match, normalize_answer
from machine import described, machine, write_results
from query import choose

PHRASES = 20
HYBRID = [
    (32, 100, 50),
    (64, 50, 50),
    (64, 100, 25),
    (64, 100, 50),
    (64, 200, 50),
    (96, 100, 50),
    (128, 100, 50),
    (160, 100, 50),
    (256, 100, 50),
    (256, 400, 100),
]
DENSE_FIRST = [(64, 200), (96, 200), (96, 1000), (256, 200), (256, 1000), (512, 1000)]
WIDTHS = (128, 256, 512)  # of the graph's search
NEIGHBOURS, BUILD_WIDTH = 32, 200  # of the graph


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, action="append", required=True, help="one or several")
    parser.add_argument("--data", type=Path, required=True, help="SQuAD train")
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--output", type=Path, required=True, help="a JSON file; a .md goes beside it")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    faiss.omp_set_num_threads(1)
    about = machine(("numpy", "numba", "faiss-cpu"))
    questions = choose(read_squad(arguments.data), arguments.questions, False)
    results: dict[str, Any] = {"questions": len(questions), "indexes": []}
    for folder in arguments.index:
        results["indexes"].append(measured(Searcher(Index.open(folder), compiled=True), questions))
        print(results["indexes"][-1], flush=True)
    results["machine"] = about | {"load_average_at_end": os.getloadavg()}
    write_results(arguments.output, results, render(results))


def measured(searcher: Searcher, questions: Sequence[SquadQuestion]) -> dict[str, Any]:
    live = searcher.view.snapshot.live
    asked = [searcher.asked(question.text) for question in questions]
    best = [answer_of(searcher, each, "exact", Limits(phrases=PHRASES)) for each in asked]
    for each in asked:
        answer_of(searcher, each, "hybrid", Limits(phrases=PHRASES))  # what all of them use is in memory then
    tried = [
        *(("hybrid", Limits(PHRASES, probes=p, top_starts=t, top_paragraphs=g)) for p, t, g in HYBRID),
        *(("dense_first", Limits(PHRASES, probes=p, top_starts=t)) for p, t in DENSE_FIRST),
    ]
    return {
        "words": live.words,
        "starts": live.starts,
        "lists": sum(len(each.reader.start_lists or ()) for each in searcher.view.segments),
        "exact_em": right(best, questions),
        "tried": [compared(searcher, questions, best, *each) for each in tried],
        "coarse": coarse(searcher, asked),
    }


def compared(
    searcher: Searcher, questions: Sequence[SquadQuestion], best: Sequence[str], strategy: str, limits: Limits
) -> dict[str, Any]:
    """Agreement with exact, exact match, and the time from the question's vectors to an answer."""
    found, taken_ms = [], []
    for question in questions:
        asked = searcher.asked(question.text)  # nothing is known of it yet
        started = time.process_time()
        found.append(answer_of(searcher, asked, strategy, limits))
        taken_ms.append(1000 * (time.process_time() - started))
    same = [normalize_answer(a) == normalize_answer(b) for a, b in zip(found, best, strict=True)]
    return {
        "strategy": strategy,
        "probes": limits.probes,
        "top_starts": limits.top_starts,
        "top_paragraphs": limits.top_paragraphs,
        "agreement": float(np.mean(same)),
        "em": right(found, questions),
        "ms_p50": float(np.median(taken_ms)),
    }


def answer_of(searcher: Searcher, question: AskedQuestion, strategy: str, limits: Limits) -> str:
    found = STRATEGIES[strategy](searcher.view, question, limits)
    answers = resolve(searcher.view, question, found, 1)
    return answers[0].text if answers else ""


def right(answers: Sequence[str], questions: Sequence[SquadQuestion]) -> float:
    pairs = zip(answers, questions, strict=True)
    return 100 * float(np.mean([exact_match(text, [a.text for a in q.answers]) for text, q in pairs]))


def coarse(searcher: Searcher, asked: Sequence[AskedQuestion]) -> dict[str, Any]:
    """The default number of lists by all centres, and by graphs over them in floats."""
    view = searcher.view
    lists = view.segments[0].reader.start_lists
    assert lists is not None
    probes = REACHES["hybrid"].probes_of(len(lists))
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
    indexes, own = results["indexes"], REACHES
    lines = [
        "# The vector index: limits, and how lists are found",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        f"python experiments/vector_lists.py{' --index INDEX' * len(indexes)} --data"
        f" ../shared/data/squad/train-v1.1.json.gz --questions {results['questions']}"
        " --output docs/results/vector-lists.json",
        "```",
        "",
        described(results["machine"]),
        "",
        f"{results['questions']} questions of held-out training articles. *Same*: the best answer,"
        " normalised, is that of `exact`. *ms*: median processor time from the question's vectors to an"
        f" answer. By default `hybrid` takes {own['hybrid'].starts} starts from the {own['hybrid'].probes}"
        f" closest lists, or from one list in {own['hybrid'].lists_per_probe} where that is more, and the"
        f" {Limits().top_paragraphs} closest paragraphs, `dense_first` {own['dense_first'].starts:,} starts"
        f" from {own['dense_first'].probes} lists.",
    ]
    for each in indexes:
        lines += [
            "",
            f"## {each['words']:,} words and signs, {each['starts']:,} starts in {each['lists']:,} lists",
            "",
            f"`exact`: {each['exact_em']:.1f} EM.",
            "",
            "| strategy | lists | starts | paragraphs | same | EM | ms |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(
                f"| {row['strategy']} | {row['probes']} | {row['top_starts']:,} |"
                f" {row['top_paragraphs'] if row['strategy'] == 'hybrid' else ''} | {row['agreement']:.1%} |"
                f" {row['em']:.1f} | {row['ms_p50']:.2f} |"
                for row in each["tried"]
            ),
            "",
            f"The {each['coarse']['probes']} closest lists, by a scan of all centres as they are stored, and"
            f" by a graph over those of the first segment (faiss `IndexHNSWFlat`, {NEIGHBOURS} neighbours,"
            f" inner product, built in {each['coarse']['graph_build_s']:.1f} s):",
            "",
            "| coarse quantizer | recall of lists | ms |",
            "| --- | --- | --- |",
            f"| flat | 100.0% | {each['coarse']['flat_ms_p50']:.3f} |",
            *(
                f"| HNSW, search width {row['width']} | {row['recall_of_lists']:.1%} | {row['ms_p50']:.3f} |"
                for row in each["coarse"]["graph"]
            ),
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
