"""How fast an index is read in batches, the paper's W/s: words of the index times questions, by seconds.

`exact` in batches on all cores: every start row and every end row is scored for every question, and the best
phrase by the full formula, with its best end, is proven. Beside it what bounds it: the rate at which memory
is read, and the rate at which the same loop multiplies rows that are in the cache already. And the rate of
the reader, which reads every text anew for each question. Words are runs between white space.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from denspi.dense.reader import load_reader
from denspi.search.batch import QUESTIONS_AT_ONCE
from denspi.search.batch_lanes import maxima_of_many
from denspi.search.searcher import Searcher
from systems import paragraph_texts

CACHED_ROWS, CACHED_PARAGRAPH = 2048, 64
READER_TEXTS = 24  # for each core


def measure_batch(searcher: Searcher, reader: Path, questions: Sequence[str]) -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0))
    words = sum(len(text.split()) for text in paragraph_texts(searcher))
    found: dict[str, Any] = {"cores": cores, "questions": len(questions), "words": words, "runs": {}}
    for name, strategy, k in (("exact", "exact", 1), ("hybrid", "hybrid", 5)):
        searcher.ask_batch(questions[: cores * QUESTIONS_AT_ONCE], k, strategy)
        batch, wall_s, cpu_s = clocked(lambda s=strategy, k=k: searcher.ask_batch(questions, k, s))
        few = questions[: max(1, len(questions) // 8)]
        loop, loop_wall_s, loop_cpu_s = clocked(
            lambda s=strategy, k=k, few=few: [searcher.ask(each, k, s) for each in few]
        )
        assert [reply.answers for reply in loop] == [reply.answers for reply in batch[: len(few)]]
        found["runs"][name] = {
            "k": k,
            "batch_wall_ms": round(1000 * wall_s / len(questions), 3),
            "batch_cpu_ms": round(1000 * cpu_s / len(questions), 3),
            "loop_wall_ms": round(1000 * loop_wall_s / len(few), 3),
            "loop_cpu_ms": round(1000 * loop_cpu_s / len(few), 3),
        }
        if strategy == "exact":  # the others do not read every word
            found["words_per_s"] = {
                "wall": round(words * len(questions) / wall_s),
                "processor": round(words * len(questions) / (cpu_s / cores)),
            }
    found["reader_words_per_s"] = reader_rate(searcher, reader, questions[0], cores)
    found["exact_to_reader"] = {
        kind: round(rate / found["reader_words_per_s"][kind]) for kind, rate in found["words_per_s"].items()
    }
    return found | {"bounds": bounds(searcher, words, cores)}


def bounds(searcher: Searcher, words: int, cores: int) -> dict[str, Any]:
    """W/s if nothing but reading rows, or multiplying them, took time."""
    view = searcher.view
    codes = [side.codes.whole() for each in view.segments for side in (each.reader.starts, each.reader.ends)]
    rows, dim = sum(map(len, codes)), codes[0].shape[1]
    largest = max(codes, key=len)
    read_s = on_cores(cores, lambda: reading(largest, cores))
    bytes_per_s = largest.nbytes / read_s
    found = {
        "rows": rows,
        "row_bytes": dim,
        "memory_bytes_per_s": round(bytes_per_s),
        "words_per_s_by_memory": round(words * QUESTIONS_AT_ONCE * bytes_per_s / (rows * dim)),
    }
    if largest.dtype == np.int8:
        rounds = 8
        multiply_s = on_cores(cores, lambda: [multiplying(largest[:CACHED_ROWS], rounds)] * cores)
        rate = cores * rounds * min(CACHED_ROWS, len(largest)) * QUESTIONS_AT_ONCE * dim / multiply_s
        found["multiplications_per_s"] = round(rate)
        found["words_per_s_by_arithmetic"] = round(words * rate / (rows * dim))
    return found


def reading(codes: np.ndarray, cores: int) -> list[Callable[[], object]]:
    flat = codes.reshape(-1)
    flat = flat[: len(flat) // (8 * cores) * (8 * cores)].view(np.int64)
    return [part.sum for part in np.split(flat, cores)]


def multiplying(rows: np.ndarray, rounds: int) -> Callable[[], object]:
    rows = np.ascontiguousarray(rows)
    offsets = np.arange(0, len(rows) // CACHED_PARAGRAPH * CACHED_PARAGRAPH + 1, CACHED_PARAGRAPH)
    is_wanted = np.ones(len(offsets) - 1, np.bool_)
    weights = np.ones((QUESTIONS_AT_ONCE, rows.shape[1]), np.int16)
    return lambda: [maxima_of_many(rows, offsets, weights, is_wanted) for _ in range(rounds)]


def on_cores(cores: int, work: Callable[[], Sequence[Callable[[], object]]]) -> float:
    """Seconds for all pieces of the work at once, one a core: the best of five times."""
    with ThreadPoolExecutor(cores) as pool:
        taken = []
        for _ in range(5):
            pieces = work()
            taken.append(clocked(lambda pieces=pieces: list(pool.map(lambda piece: piece(), pieces)))[1])
    return min(taken)


def reader_rate(searcher: Searcher, folder: Path, question: str, cores: int) -> dict[str, int]:
    """Words that the reader reads in a second, a copy of it on each core; by the clock and processor time."""
    texts = paragraph_texts(searcher)
    order = np.random.default_rng(0).permutation(len(texts))[: READER_TEXTS * cores].tolist()
    shares = [[texts[place] for place in order[number::cores]] for number in range(cores)]
    readers = [load_reader(folder) for _ in shares]
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(lambda one, share: one.read(question, share[:1]), readers, shares))
        _, wall_s, cpu_s = clocked(
            lambda: list(pool.map(lambda one, share: one.read(question, share), readers, shares))
        )
    words = sum(len(text.split()) for share in shares for text in share)
    return {"wall": round(words / wall_s), "processor": round(words / (cpu_s / cores))}


def clocked(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it gives, and its wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - wall, time.process_time() - cpu
