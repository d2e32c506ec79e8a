"""Measure what `denspi plan` calculates with, and write it to src/denspi/plan/measured.json.

- What an index stores beside its rows (texts, postings, n-gram frequencies, tables): articles of SQuAD and
  Wikipedia in one shuffled order, indexed without rows by the project's own writer, at many sizes.
- What the filter keeps: from a real index, and from the sample corpus.
- Memory of processes, the pace of a build beside bare encoding (docs/results/build.json), of the lists.

    python experiments/tables/plan_constants.py --data ../shared/data --index INDEX

INDEX holds the articles of SQuAD (both files) as the shipped model encodes them in int8.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from denspi import Index, Searcher
from denspi.build.index import SEGMENT_WORDS
from denspi.build.info import describe
from denspi.build.lists import make_lists
from denspi.build.model import DEFAULT_MODEL, IndexModel, model_for_new_index
from denspi.build.pipeline import size_of, why_not
from denspi.build.workers import Workers, WorkerSettings
from denspi.corpus import read_corpus
from denspi.dense.points import Int8Points
from denspi.index.rows import ParagraphRows
from denspi.index.snapshot import Snapshot
from denspi.index.writer import IndexWriter, WriterSettings
from denspi.plan.rate import measure_encoding, sample_texts, words_of
from denspi.sample import sample_articles_path, sample_questions
from denspi.types import Document

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))
from build import as_line, private_bytes, whole_command  # noqa: E402
from machine import anonymous_bytes, machine  # noqa: E402

OUTPUT = ROOT / "src" / "denspi" / "plan" / "measured.json"
# Just above 100,000 words a table of n-grams becomes a large one, which is a step. The last: all there is.
SIZES = (10, 20, 50, 100, 105, 150, 300, 600, 1_000, 3_000, 10_000, 10**9)  # thousand words
NO_ROWS = ("start vectors", "end vectors", "coherency keys", "places of rows", "vector index")
SMALL_BUILD, LARGE_BUILD = 30_000, 200_000  # words
ROUNDS = 4  # of encoding articles and the sample corpus in turns


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/ and wikipedia/")
    parser.add_argument("--index", type=Path, required=True, help="SQuAD's articles, int8, shipped model")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="the model of the index")
    parser.add_argument("--most-words", type=int, default=10**12, help="for a smoke run: no larger size")
    parser.add_argument("--keep-points", action="store_true", help="measure no texts; take what is there")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    about = machine(("numpy", "onnxruntime"))
    model = model_for_new_index(arguments.model, "int8")
    info = Index.open(arguments.index).info()
    if info.fingerprint != model.record.fingerprint:
        sys.exit(f"{arguments.index}: built with another model than {arguments.model}; name it with --model")
    articles = shuffled_articles(arguments.data, arguments.most_words)
    if arguments.keep_points:  # they do not depend on a model
        points = json.loads(arguments.output.read_text(encoding="utf-8"))["points"]
    else:
        sizes = [1000 * size for size in SIZES if 1000 * size <= arguments.most_words]
        points = [text_point(articles, size, model) for size in sizes]
    encoding = measure_encoding(model)
    builds = real_builds(model, articles)
    worker_bytes, build = worker_memory(model), json.loads((ROOT / "docs/results/build.json").read_text())
    result = {
        "command": "python experiments/tables/plan_constants.py --data ../shared/data --index INDEX",
        "machine": about,
        "collection": "articles of SQuAD and Wikipedia",
        "signs_per_word": info.words_and_signs / info.words,
        "model": {
            "name": info.model,
            "fingerprint": info.fingerprint,
            "file_bytes": (model.folder / "model.onnx").stat().st_size,
            "words": info.words,
            "starts_per_word": info.starts / info.words,
            "ends_per_word": info.ends / info.words,
            "sample_starts_per_word": encoding.starts_per_word,
            "sample_ends_per_word": encoding.ends_per_word,
        },
        "points": points,
        "memory": {
            "worker_bytes": worker_bytes,
            **parent_memory(builds, worker_bytes),
            **search_memory(arguments.index, arguments.model),
        },
        "pace": {
            "startup_seconds": startup(builds),
            "share_of_encoding_rate": build["one_core"]["share_of_bare_rate_by_processor_time"]["median"],
            "collection_to_sample_rate": rate_ratio(model, articles),
            "list_seconds_per_start": list_seconds(arguments.index),
        },
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def shuffled_articles(data: Path, most_words: int) -> list[Document]:
    """In one order for all sizes, so that a smaller collection is a part of a larger one."""
    paths = [*sorted(data.glob("squad/*.json.gz")), *sorted(data.glob("wikipedia/*.jsonl.gz"))]
    if most_words <= 1_000_000:  # a smoke run
        paths = paths[:1]
    found = [
        item
        for path in paths
        for item in read_corpus(path)
        if isinstance(item, Document) and not why_not(item)
    ]
    random.Random(0).shuffle(found)
    return found


def first_words(articles: Sequence[Document], words: int) -> Iterator[Document]:
    seen = 0
    for article in articles:
        if seen >= words:
            return
        seen += size_of(article).words
        yield article


def text_point(articles: Sequence[Document], words: int, model: IndexModel) -> dict[str, Any]:
    chosen = list(first_words(articles, words))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "index"
        settings = WriterSettings(flush_words=SEGMENT_WORDS)
        with IndexWriter.create(folder, model.record, settings=settings) as writer:
            for article in chosen:
                writer.add(article, [without_rows(text, model) for text in article.paragraph_texts()])
            writer.commit()
        with closing(Snapshot.open(folder)) as snapshot:
            info = describe(folder.as_posix(), snapshot)
    print(f"{info.words:,} words: {info.bytes:,} bytes without rows", file=sys.stderr, flush=True)
    return {
        "words": info.words,
        "bytes_by_component": {
            name: size for name, size in info.bytes_by_component.items() if name not in NO_ROWS
        },
    }


def without_rows(text: str, model: IndexModel) -> ParagraphRows:
    layout, none = model.record.layout, np.zeros(0, np.uint32)
    codes = np.zeros((0, layout.vector_bytes), layout.dtype)
    keys = np.zeros((0, layout.key_bytes), layout.dtype)
    words = len(re.findall(r"\w+|[^\w\s]", text))
    return ParagraphRows(words, none, none, codes, keys, none, none, codes, keys)


def worker_memory(model: IndexModel) -> int:
    """The most that a process holds while it encodes the sample corpus."""
    most = 0
    with Workers(model, 1, WorkerSettings(1, task_chars=4_000)) as workers:
        for _ in workers.encode(sample_texts()):
            most = max(most, private_bytes(workers._workers[0].process.pid))
    return most


def real_builds(model: IndexModel, articles: Sequence[Document]) -> list[dict[str, Any]]:
    """Of less than a segment, and of more than one."""
    found = []
    for words in SMALL_BUILD, LARGE_BUILD:
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch) / "articles.jsonl"
            source.write_text("".join(map(as_line, first_words(articles, words))), encoding="utf-8")
            built = whole_command(model.folder, source, Path(scratch) / "index")
        print(f"{words:,} words built with {built['peak_memory_mb']} MB", file=sys.stderr, flush=True)
        found.append(built)
    return found


def startup(builds: Sequence[dict[str, Any]]) -> float:
    """Where the line through both ends when there are no words."""
    few, many = builds
    per_word = (many["seconds"] - few["seconds"]) / (many["words"] - few["words"])
    return round(max(0.0, few["seconds"] - per_word * few["words"]), 2)


def parent_memory(builds: Sequence[dict[str, Any]], worker_bytes: int) -> dict[str, int]:
    """Of the process that writes: what it holds anyway, and what a segment adds until it is full."""
    few, many = (int(1e6 * each["peak_memory_mb"]) - each["processes"] * worker_bytes for each in builds)
    small, full = (min(1.0, each["words_and_signs"] / SEGMENT_WORDS) for each in builds)
    segment = max(0, round((many - few) / (full - small)))
    return {"parent_bytes": max(0, round(many - segment * full)), "segment_bytes": segment}


def search_memory(index: Path, model: str) -> dict[str, float]:
    """Of a small index and of a large one: what does not grow, and what a word adds."""
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch) / "sample"
        with Index.create(small, model) as created:
            created.add(item for item in read_corpus(sample_articles_path()) if isinstance(item, Document))
            created.commit()
        with ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
            (few, few_bytes), (many, many_bytes) = pool.map(asked_memory, [small, index], [model, model])
    per_word = max(0.0, (many_bytes - few_bytes) / (many - few))
    return {"search_bytes": round(few_bytes - per_word * few), "search_bytes_per_word": per_word}


def asked_memory(index: Path, model: str) -> tuple[int, int]:
    opened = Index.open(index, model=model)
    searcher = Searcher(opened)
    for each in sample_questions()[:20]:
        searcher.ask(each.question.text)
    return opened.info().words, anonymous_bytes()


def rate_ratio(model: IndexModel, articles: Sequence[Document]) -> float:
    """Words a second of articles over those of the sample corpus; by processor time, in turns."""
    encoder, sample = model.encoder(), sample_texts()[:60]
    texts = [text for article in articles[:400:20] for text in article.paragraph_texts()]
    ratios = []
    for number in range(ROUNDS):
        some = texts[number::ROUNDS][:60]
        seconds = []
        for group in (some, sample):
            started = time.process_time()
            for _ in encoder.encode_paragraphs(group):
                pass
            seconds.append(time.process_time() - started)
        ratios.append((words_of(some) / seconds[0]) / (words_of(sample) / seconds[1]))
    return float(np.median(ratios))


def list_seconds(index: Path) -> float:
    """Of one core; a small part of the lists' time where there are many starts is worth measuring alone."""
    with closing(Snapshot.open(index)) as snapshot:
        largest = max(snapshot.segments, key=lambda segment: segment.counts.starts)
        started = time.process_time()
        make_lists(largest, Int8Points())
        return (time.process_time() - started) / largest.counts.starts


if __name__ == "__main__":
    main()
