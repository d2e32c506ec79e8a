"""What a question costs: every strategy and its stages, beside pipelines that read texts anew for it.

All on one core, warm, in one run: the systems take turns, a few questions each, so that a busy machine slows
them alike. Wall time is what people wait for; processor time, beside it, does not count what other processes
took. A re-reading pipeline retrieves by words (this index's tf-idf, or bm25s) and puts the question and each
text through a reader in onnxruntime: long paragraphs in windows, one pair at a time, as is fastest on a core.
Questions are of held-out training articles, or of any file with `--all-articles`.

    python benchmarks/query.py --index INDEX --reader DIR --data ../shared/data/squad/train-v1.1.json.gz \
        --output docs/results/query.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bm25s
import numpy as np

from denspi import Index
from denspi.corpus.squad import SquadArticle, SquadQuestion, read_squad
from denspi.dense.reader import Reader, load_reader
from denspi.search.searcher import Searcher
from denspi.search.strategies import STRATEGIES, top_document_paragraphs, top_paragraphs
from denspi.sparse import weigh_question
from denspi.text.answers import exact_match
from denspi.training.examples import is_held_out

ROUND = 5  # questions put to one system before the next has its turn
HELD_OUT_SHARE = 0.05
OURS, REREAD_DOCUMENTS, REREAD_PARAGRAPHS = (
    "hybrid",
    "re-read 5 documents (tf-idf)",
    "re-read 20 paragraphs (tf-idf)",
)
REREAD_BM25 = "re-read 20 paragraphs (bm25s)"
TOP_DOCUMENTS, TOP_PARAGRAPHS = 5, 20


@dataclass(frozen=True)
class Answered:
    """What a system says, and the time of its stages where it tells."""

    text: str
    stages_ms: dict[str, float]
    texts_read: int = 0  # paragraphs put through the reader


@dataclass
class Taken:
    """What the questions to one system took."""

    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    stages_ms: dict[str, list[float]] = field(default_factory=dict)
    texts_read: list[int] = field(default_factory=list)
    is_right: list[bool] = field(default_factory=list)


Ask = Callable[[str], Answered]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an index that holds the articles")
    parser.add_argument("--reader", type=Path, required=True, help="an exported reader's folder")
    parser.add_argument("--data", type=Path, required=True, help="questions in SQuAD's layout")
    parser.add_argument(
        "--output", type=Path, required=True, help="the JSON file to write; a .md goes beside it"
    )
    parser.add_argument("--questions", type=int, default=100, help="questions asked, spread over the file")
    parser.add_argument(
        "--document-questions", type=int, default=20, help="the first so many are read from documents too"
    )
    parser.add_argument("--all-articles", action="store_true", help="not only those held out in training")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    questions = choose(read_squad(arguments.data), arguments.questions, arguments.all_articles)
    about = machine()
    searcher = Searcher(Index.open(arguments.index), compiled=True, threads=1)
    reader = load_reader(arguments.reader)
    systems = {name: strategy(searcher, name) for name in STRATEGIES}
    systems[REREAD_PARAGRAPHS] = reread_tfidf(searcher, reader, TOP_PARAGRAPHS, by_document=False)
    systems[REREAD_BM25] = reread_bm25(searcher, reader)
    systems[REREAD_DOCUMENTS] = reread_tfidf(searcher, reader, TOP_DOCUMENTS, by_document=True)
    few = {REREAD_DOCUMENTS: arguments.document_questions}
    taken = take_turns(systems, questions, few)
    live = searcher.view.snapshot.live
    results: dict[str, Any] = {
        "machine": about | {"load_average_at_end": os.getloadavg()},
        "index": {
            name: getattr(live, name) for name in ("documents", "paragraphs", "words", "starts", "ends")
        },
        "precision": searcher.view.snapshot.model.precision,
        "questions": len(questions),
        "questions_of": "all articles" if arguments.all_articles else "held-out training articles",
        "data": arguments.data.name,
        "document_questions": arguments.document_questions,
        "reader": arguments.reader.name,
        "systems": {name: summary(each) for name, each in taken.items()},
        "times_slower_than_hybrid": ratios(taken),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    arguments.output.with_suffix(".md").write_text(render(results), encoding="utf-8")


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


def strategy(searcher: Searcher, name: str) -> Ask:
    def ask(text: str) -> Answered:
        reply = searcher.ask(text, k=5, strategy=name)
        return Answered(reply.answers[0].text if reply.answers else "", reply.stages_ms)

    return ask


def reread_tfidf(searcher: Searcher, reader: Reader, count: int, by_document: bool) -> Ask:
    view = searcher.view
    choose_places = top_document_paragraphs if by_document else top_paragraphs

    def ask(text: str) -> Answered:
        started = time.perf_counter()
        # `asked` would encode the question, which this pipeline has no use for.
        question = _WordsAlone(searcher, text)
        chosen = choose_places(view, question, count)  # type: ignore[arg-type]
        texts = [
            view.segments[number].reader.paragraph_text(paragraph)
            for number, numbers in chosen
            for paragraph in numbers.tolist()
        ]
        return read_best(reader, text, texts, started)

    return ask


class _WordsAlone:
    """The part of an `AskedQuestion` that retrieval by words looks at."""

    def __init__(self, searcher: Searcher, text: str) -> None:
        self.sparse = weigh_question(text, searcher.view.snapshot.frequencies)


def reread_bm25(searcher: Searcher, reader: Reader) -> Ask:
    texts = [
        segment.reader.paragraph_text(paragraph)
        for segment in searcher.view.segments
        for paragraph in np.flatnonzero(segment.allowed_paragraphs).tolist()
    ]
    index = bm25s.BM25(backend="numba")
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def ask(text: str) -> Answered:
        started = time.perf_counter()
        tokens = bm25s.tokenize([text], stopwords="en", return_ids=False, show_progress=False)
        numbers = index.retrieve(tokens, k=TOP_PARAGRAPHS, show_progress=False)[0][0]
        return read_best(reader, text, [texts[number] for number in numbers.tolist()], started)

    return ask


def read_best(reader: Reader, question: str, texts: Sequence[str], started: float) -> Answered:
    """The phrase with the highest sum of logits, over all texts."""
    retrieved = time.perf_counter()
    answers = reader.read(question, texts)
    best = max(range(len(texts)), key=lambda n: answers[n].score, default=None)
    stages = {
        "retrieve": 1000 * (retrieved - started),
        "reader": 1000 * (time.perf_counter() - retrieved),
    }
    return Answered("" if best is None else answers[best].span.of(texts[best]), stages, len(texts))


def take_turns(
    systems: dict[str, Ask], questions: Sequence[SquadQuestion], few: dict[str, int]
) -> dict[str, Taken]:
    taken = {name: Taken() for name in systems}
    for ask in systems.values():  # load, compile and touch what all questions use
        for question in questions[-2:]:
            ask(question.text)
    for first in range(0, len(questions), ROUND):
        for name, ask in systems.items():
            for question in questions[first : min(first + ROUND, few.get(name, len(questions)))]:
                wall, cpu = time.perf_counter(), time.process_time()
                answered = ask(question.text)
                taken[name].cpu_ms.append(1000 * (time.process_time() - cpu))
                taken[name].wall_ms.append(1000 * (time.perf_counter() - wall))
                for stage, ms in answered.stages_ms.items():
                    taken[name].stages_ms.setdefault(stage, []).append(ms)
                taken[name].texts_read.append(answered.texts_read)
                references = [answer.text for answer in question.answers]
                taken[name].is_right.append(exact_match(answered.text, references))
        print(f"{min(first + ROUND, len(questions))} of {len(questions)}", flush=True)
    return taken


def summary(taken: Taken) -> dict[str, Any]:
    return {
        "questions": len(taken.wall_ms),
        "wall_ms": percentiles(taken.wall_ms),
        "cpu_ms": percentiles(taken.cpu_ms),
        "stages_ms": {name: percentiles(each) for name, each in taken.stages_ms.items()},
        "paragraphs_reread": round(float(np.mean(taken.texts_read)), 1),
        "em": round(100 * float(np.mean(taken.is_right)), 1) if taken.is_right else None,
    }


def percentiles(values: Sequence[float]) -> dict[str, float]:
    return (
        {f"p{share}": round(float(np.percentile(values, share)), 3) for share in (50, 95)} if values else {}
    )


def ratios(taken: dict[str, Taken]) -> dict[str, dict[str, float]]:
    """Of medians, over the questions that both were asked."""
    found = {}
    for name, each in taken.items():
        count = len(each.wall_ms)
        if name == OURS or not count:
            continue
        ours = taken[OURS]
        found[name] = {
            "wall": round(float(np.median(each.wall_ms) / np.median(ours.wall_ms[:count])), 2),
            "cpu": round(float(np.median(each.cpu_ms) / np.median(ours.cpu_ms[:count])), 2),
        }
    return found


def machine() -> dict[str, Any]:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "src", "benchmarks"], capture_output=True, text=True, check=False
    )
    return {
        "cpu": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "cores_used": 1,
        "load_average_at_start": os.getloadavg(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("numpy", "numba", "onnxruntime", "bm25s")},
        "commit": commit.stdout.strip() if commit.returncode == 0 else "none yet (working tree)",
        # A figure of code that no commit holds must not pass for one of the commit before it.
        "has_uncommitted_code": bool(changed.stdout.strip()),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def render(results: dict[str, Any]) -> str:
    about, index = results["machine"], results["index"]
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    lines = [
        "# Questions: what an answer costs",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        f"python benchmarks/query.py --index INDEX --reader DIR --data ../shared/data/squad/{results['data']}"
        f" --questions {results['questions']} --document-questions {results['document_questions']}"
        " --output docs/results/query.json",
        "```",
        "",
        f"{about['date']}; {about['cpu']}, {about['cores']} cores, one used; load average"
        f" {about['load_average_at_start'][0]:.1f} at the start, {about['load_average_at_end'][0]:.1f} at the"
        f" end; Python {about['python']}, {packages}; commit {about['commit']}"
        f"{' with changes that are not committed' if about['has_uncommitted_code'] else ''}.",
        "",
        f"{index['documents']:,} documents, {index['paragraphs']:,} paragraphs, {index['words']:,} words"
        f" (signs counted), {index['starts']:,} starts, {results['precision']}; reader {results['reader']}."
        f" {results['questions']} questions of {results['questions_of']} ({results['data']}), warm, from text"
        " to answers; the systems take turns. EM is of these questions alone, and of so few no more than a"
        " sign that each system works.",
        "",
        "Wall time on a machine with other work on it holds the waiting too; processor time does not.",
        "",
        "| system | questions | EM | wall p50 / p95 ms | processor p50 / p95 ms"
        " | against hybrid: wall | processor |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in results["systems"].items():
        wall, cpu = found["wall_ms"], found["cpu_ms"]
        against = results["times_slower_than_hybrid"].get(name, {"wall": 1, "cpu": 1})
        lines.append(
            f"| {name} | {found['questions']} | {found['em']} | {wall['p50']} / {wall['p95']}"
            f" | {cpu['p50']} / {cpu['p95']} | {against['wall']}x | {against['cpu']}x |"
        )
    lines += ["", "Stages, wall p50 / p95 ms:", "", "| system | stages |", "| --- | --- |"]
    for name, found in results["systems"].items():
        stages = "; ".join(f"{stage} {ms['p50']} / {ms['p95']}" for stage, ms in found["stages_ms"].items())
        read = f" ({found['paragraphs_reread']} paragraphs read)" if found["paragraphs_reread"] else ""
        lines.append(f"| {name} | {stages}{read} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
