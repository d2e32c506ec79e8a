"""What a question costs: every strategy and its stages, beside pipelines that read texts anew for it.

Warm, on one core, all systems in one run: they take turns, a few questions each, so that a busy machine slows
them alike; no two have the same questions in a round: the second would find what the first has read in the
caches. Wall time is what people wait for; processor time, beside it, does not count what other processes
took. Then cold, from disk (see cold.py), and in batches on all cores (see batch_reading.py). Questions are of
held-out training articles, or of any file with `--all-articles`.

    python benchmarks/query.py --index INDEX --reader DIR --data ../shared/data/squad/train-v1.1.json.gz \
        --output docs/results/query.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from batch_reading import measure_batch
from cold import measure_cold
from denspi import Index
from denspi.corpus.squad import SquadArticle, SquadQuestion, read_squad
from denspi.dense.reader import load_reader
from denspi.search.searcher import Searcher
from denspi.text.answers import exact_match
from denspi.training.examples import is_held_out
from machine import machine, percentiles, write_results
from query_page import PLOT, plot, render
from systems import OURS, REREAD, REREAD_DOCUMENTS, Ask, all_systems

ROUND = 5  # questions put to one system before the next has its turn
HELD_OUT_SHARE = 0.05
PACKAGES = ("numpy", "numba", "onnxruntime", "bm25s")


@dataclass
class Taken:
    """What the questions to one system took."""

    wall_ms: dict[int, float] = field(default_factory=dict)  # by the place of the question
    cpu_ms: dict[int, float] = field(default_factory=dict)
    stages_ms: dict[str, list[float]] = field(default_factory=dict)
    texts_read: list[int] = field(default_factory=list)
    is_right: list[bool] = field(default_factory=list)


def main() -> None:
    arguments = parsed()
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_cores)})
    articles = read_squad(arguments.data)
    questions = choose(articles, arguments.questions, arguments.all_articles)
    about = machine(PACKAGES)
    searcher = Searcher(Index.open(arguments.index), compiled=True, threads=1)
    reader = load_reader(arguments.reader) if arguments.reader else None
    asked = {
        "questions": len(questions),
        "questions_of": "all articles" if arguments.all_articles else "held-out training articles",
        "data": arguments.data.name,
        "document_questions": arguments.document_questions,
    }
    paragraphs = searcher.view.snapshot.live.paragraphs
    last = {} if reader else last_rereading(arguments.output, asked, paragraphs)
    taken = take_turns(
        all_systems(searcher, reader), questions, {REREAD_DOCUMENTS: arguments.document_questions}
    )
    live, precision = searcher.view.snapshot.live, searcher.view.snapshot.model.precision
    encoder = searcher.encoder
    del searcher  # what is mapped cannot be dropped from memory
    cold = measure_cold(
        arguments.index, encoder, [each.text for each in questions[: arguments.cold_questions]]
    )
    print("cold: done", flush=True)
    os.sched_setaffinity(0, all_cores)
    batch: dict[str, Any] = {"questions": 0}
    if reader and arguments.batch_questions:
        searcher = Searcher(Index.open(arguments.index), compiled=True)
        many = choose(articles, arguments.batch_questions, arguments.all_articles)
        batch = measure_batch(searcher, arguments.reader, [each.text for each in many])
    results: dict[str, Any] = {
        "machine": about | {"load_average_at_end": os.getloadavg()},
        "index": {
            name: getattr(live, name) for name in ("documents", "paragraphs", "words", "starts", "ends")
        },
        "precision": precision,
        **asked,
        "are_kept_apart": True,  # no two systems have the same questions in a row
        "reader": arguments.reader.name if arguments.reader else None,
        "systems": {name: summary(each) for name, each in taken.items()},
        "times_slower_than_hybrid": ratios(taken),
        "cold": cold,
        "batch": batch,
    }
    if last:
        results |= with_rereading(results, last)
    write_results(arguments.output, results, render(results))
    plot(results, arguments.output.with_name(PLOT))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an index that holds the articles")
    parser.add_argument(
        "--reader",
        type=Path,
        help="an exported reader's folder; none: re-reading and batches stay as they were measured",
    )
    parser.add_argument("--data", type=Path, required=True, help="questions in SQuAD's layout")
    parser.add_argument(
        "--output", type=Path, required=True, help="the JSON file to write; a .md and a .png go beside it"
    )
    parser.add_argument("--questions", type=int, default=200, help="questions asked, spread over the file")
    parser.add_argument(
        "--document-questions", type=int, default=20, help="the first so many are read from documents too"
    )
    parser.add_argument(
        "--cold-questions", type=int, default=10, help="of each strategy, with nothing in memory"
    )
    parser.add_argument("--batch-questions", type=int, default=512, help="asked at once, on all cores")
    parser.add_argument("--all-articles", action="store_true", help="not only those held out in training")
    return parser.parse_args()


def last_rereading(output: Path, asked: dict[str, Any], paragraphs: int) -> dict[str, Any]:
    """The result that is there, where it says what pipelines that read anew made of the same questions."""
    last: dict[str, Any] = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    if not last.get("reader"):
        return {}
    then = {name: last[name] for name in asked} | {"paragraphs": last["index"]["paragraphs"]}
    for name, now in (asked | {"paragraphs": paragraphs}).items():
        if then[name] != now:
            sys.exit(
                f"{output}: re-reading was measured with {name} = {then[name]}, now {now}; "
                "name a reader, or another output"
            )
    return last


def with_rereading(results: dict[str, Any], last: dict[str, Any]) -> dict[str, Any]:
    """Beside our strategies what the last result says of re-reading, and of batches."""
    kept = {
        name: results[name] | {each: told for each, told in last[name].items() if each.startswith(REREAD)}
        for name in ("systems", "times_slower_than_hybrid")
    }
    then = {name: last["machine"][name] for name in ("date", "commit")}
    then["hybrid_wall_ms"] = last["systems"][OURS]["wall_ms"]
    measured = last.get("rereading_measured", then)
    return kept | {"reader": last["reader"], "batch": last["batch"], "rereading_measured": measured}


def choose(articles: Sequence[SquadArticle], count: int, all_articles: bool) -> list[SquadQuestion]:
    found = [
        question
        for article in articles
        if all_articles or is_held_out(article.title, HELD_OUT_SHARE)
        for paragraph in article.paragraphs
        for question in paragraph.questions
        if question.answers
    ]
    order = np.random.default_rng(0).permutation(len(found))[:count]
    return [found[place] for place in order.tolist()]


def take_turns(
    systems: dict[str, Ask], questions: Sequence[SquadQuestion], few: dict[str, int]
) -> dict[str, Taken]:
    taken = {name: Taken() for name in systems}
    for ask in systems.values():  # load, compile and touch what all questions use
        for question in questions[-2:]:
            ask(question.text)
    for number, shifts in enumerate(rounds(len(questions), len(systems)), start=1):
        for (name, ask), places in zip(systems.items(), shifts, strict=True):
            for place in places[: max(0, few.get(name, len(questions)) - places.start)]:
                wall, cpu = time.perf_counter(), time.process_time()
                answered = ask(questions[place].text)
                taken[name].cpu_ms[place] = 1000 * (time.process_time() - cpu)
                taken[name].wall_ms[place] = 1000 * (time.perf_counter() - wall)
                for stage, ms in answered.stages_ms.items():
                    taken[name].stages_ms.setdefault(stage, []).append(ms)
                taken[name].texts_read.append(answered.texts_read)
                references = [answer.text for answer in questions[place].answers]
                taken[name].is_right.append(exact_match(answered.text, references))
        print(f"{min(number * ROUND, len(questions))} of {len(questions)}", flush=True)
    return {name: each for name, each in taken.items() if each.wall_ms}


def rounds(questions: int, systems: int) -> Iterator[list[range]]:
    """The places of the questions that each system gets in a round, far from those of the others."""
    parts = [range(first, min(first + ROUND, questions)) for first in range(0, questions, ROUND)]
    apart = max(1, len(parts) // max(1, systems))
    for number in range(len(parts)):
        yield [parts[(number + apart * system) % len(parts)] for system in range(systems)]


def summary(taken: Taken) -> dict[str, Any]:
    right = float(np.mean(taken.is_right))
    return {
        "questions": len(taken.wall_ms),
        "wall_ms": percentiles([*taken.wall_ms.values()]),
        "cpu_ms": percentiles([*taken.cpu_ms.values()]),
        "stages_ms": {name: percentiles(each) for name, each in taken.stages_ms.items()},
        "paragraphs_reread": round(float(np.mean(taken.texts_read)), 1),
        "em": round(100 * right, 1),
        "em_half_width": round(196 * float(np.sqrt(right * (1 - right) / len(taken.is_right))), 1),
    }


def ratios(taken: dict[str, Taken]) -> dict[str, dict[str, float]]:
    """Of medians, over the questions that both were asked."""

    def median(ms: dict[int, float], places: Iterable[int]) -> float:
        return float(np.median([ms[place] for place in places]))

    found: dict[str, dict[str, float]] = {}
    for name, each in taken.items():
        if name != OURS:
            for kind in ("wall", "cpu"):
                theirs, ours = (getattr(one, f"{kind}_ms") for one in (each, taken[OURS]))
                ratio = median(theirs, theirs) / median(ours, theirs)
                found.setdefault(name, {})[kind] = round(ratio, 2)
    return found


if __name__ == "__main__":
    main()
