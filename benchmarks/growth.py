"""How a question's cost grows with the index: 1, 10 and 50 million starts, at equal recall.

For each size an index is built from a real one (see growth_index.py), searched and deleted. `exact` says what
the best answer is; of the limits in `LADDER`, the first with which hybrid gives the same best normalised
answer to `RECALL` of the questions are those that are timed. Warm, on one core; questions are
encoded beforehand. Memory is what the searching process holds beside its mapped files. Building, searching
and the oracle are processes of their own, so that none of them counts for another.

    python benchmarks/growth.py --index INDEX --data ../shared/data/squad/train-v1.1.json.gz \
        --scratch FOLDER --output docs/results/growth.json
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from denspi import Index
from denspi.corpus.squad import read_squad
from denspi.search.candidates import Limits
from denspi.search.searcher import Reply, Searcher
from denspi.text.answers import normalize_answer
from denspi.vectors import QuestionVectors
from growth_index import GrowthSettings, build_grown
from growth_page import PLOT, plot, render
from machine import anonymous_bytes, machine, percentiles, write_results
from query import choose

RECALL = 0.95
PHRASES = 20  # candidates, as `Searcher.answer` takes for five answers
# A text that comes again in a grown index comes again among the closest starts and paragraphs too: lists,
# starts and paragraphs must grow together for anything else to be seen.
LADDER = tuple(
    Limits(phrases=PHRASES, probes=probes, top_starts=starts, top_paragraphs=paragraphs)
    for probes, starts, paragraphs in (
        (32, 100, 50),
        (48, 100, 100),
        (48, 100, 250),
        (64, 200, 400),
        (128, 400, 800),
    )
)
PACKAGES = ("numpy", "numba", "onnxruntime")


def main() -> None:
    arguments = parsed()
    questions = [each.text for each in choose(read_squad(arguments.data), arguments.questions, False)]
    about, sizes = machine(PACKAGES), []
    for millions in sorted(arguments.millions):
        folder = arguments.scratch / f"grown-{millions:g}-million.index"
        try:
            settings = GrowthSettings(int(millions * 1e6), arguments.noise)
            build_s = None if folder.exists() else apart(build, arguments.index, folder, settings)
            expected = apart(oracle, folder, questions)
            sizes.append(apart(measure, folder, questions, expected) | {"build_s": build_s})
            print(sizes[-1], flush=True)
        finally:
            if not arguments.keep:
                for path in arguments.scratch.glob(f"{folder.name}*"):
                    shutil.rmtree(path, ignore_errors=True)
    results = {
        "machine": about | {"load_average_at_end": os.getloadavg()},
        "data": arguments.data.name,
        "questions": len(questions),
        "real_starts": Index.open(arguments.index).snapshot().live.starts,
        "millions": sorted(arguments.millions),
        "noise": arguments.noise,
        "recall_wanted": RECALL,
        "sizes": sizes,
    }
    write_results(arguments.output, results, render(results))
    plot(results, arguments.output.with_name(PLOT))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="a real int8 index, to be repeated")
    parser.add_argument("--data", type=Path, required=True, help="SQuAD train, for its held-out articles")
    parser.add_argument("--scratch", type=Path, required=True, help="where indexes are built, then deleted")
    parser.add_argument(
        "--output", type=Path, required=True, help="the JSON file to write; a .md and a .png go beside it"
    )
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 10, 50], help="of starts")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument(
        "--keep", action="store_true", help="delete no index; those that are there are not built again"
    )
    parser.add_argument("--noise", type=float, default=GrowthSettings.noise, help="in steps of a code")
    return parser.parse_args()


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """In a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def build(source: Path, folder: Path, settings: GrowthSettings) -> float:
    started, unfinished = time.perf_counter(), folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    build_grown(source, unfinished, settings, lambda starts: print(f"{starts:,} starts", file=sys.stderr))
    unfinished.rename(folder)
    return round(time.perf_counter() - started, 1)


def oracle(folder: Path, questions: Sequence[str]) -> list[str]:
    """The best answers of all, proven."""
    searcher = Searcher(Index.open(folder), compiled=True)
    return [best(reply) for reply in searcher.ask_batch(questions, 1, "exact")]


class EncodedBefore:
    """An index (see `Searchable`) whose encoder encodes no question twice."""

    def __init__(self, index: Index) -> None:
        self.snapshot, self._encoder = index.snapshot, index.encoder()
        self._vectors: dict[str, QuestionVectors] = {}

    def encoder(self) -> EncodedBefore:
        """It is its own."""
        return self

    def encode_questions(self, questions: Sequence[str]) -> QuestionVectors:
        """Of one question."""
        (question,) = questions
        if question not in self._vectors:
            self._vectors[question] = self._encoder.encode_questions([question])
        return self._vectors[question]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def measure(folder: Path, questions: Sequence[str], expected: Sequence[str]) -> dict[str, Any]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    before = anonymous_bytes()
    searcher = Searcher(EncodedBefore(Index.open(folder)), compiled=True)  # type: ignore[arg-type]
    live, segments = searcher.view.snapshot.live, searcher.view.segments
    recalls: list[float] = []
    for limits in LADDER:
        replies = [searcher.ask(each, strategy="hybrid", limits=limits) for each in questions]
        same = [best(reply) == right for reply, right in zip(replies, expected, strict=True)]
        recalls.append(float(np.mean(same)))
        if recalls[-1] >= RECALL:
            break
    # What was asked just now is in memory, its encoding too: this is the warm round.
    wall_ms, cpu_ms, stages_ms, memory = [], [], {}, []
    for each in questions:
        wall, cpu = time.perf_counter(), time.process_time()
        reply = searcher.ask(each, strategy="hybrid", limits=limits)
        cpu_ms.append(1000 * (time.process_time() - cpu))
        wall_ms.append(1000 * (time.perf_counter() - wall))
        memory.append(anonymous_bytes())
        for stage, ms in reply.stages_ms.items():
            stages_ms.setdefault(stage, []).append(ms)
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "starts": live.starts,
        "words": live.words,
        "paragraphs": live.paragraphs,
        "segments": len(segments),
        "lists": sum(len(each.reader.start_lists or ()) for each in segments),
        "bytes": stored,
        "limits": _shown(limits),
        "recalls": [
            {**_shown(each), "recall": round(recall, 4)}
            for each, recall in zip(LADDER, recalls, strict=False)
        ],
        "recall": round(recalls[-1], 4),
        "wall_ms": percentiles(wall_ms),
        "cpu_ms": percentiles(cpu_ms),
        "stages_ms": {name: percentiles(each) for name, each in stages_ms.items()},
        "anonymous_bytes_before_opening": before,
        "anonymous_bytes": max(memory),
    }


def _shown(limits: Limits) -> dict[str, int]:
    return {name: getattr(limits, name) for name in ("probes", "top_starts", "top_paragraphs")}


def best(reply: Reply) -> str:
    return normalize_answer(reply.answers[0].text) if reply.answers else ""


if __name__ == "__main__":
    main()
