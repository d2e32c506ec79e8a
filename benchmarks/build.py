"""What building an index costs beside bare encoding, on one core and on all; its size and its memory.

The same articles of SQuAD dev are encoded alone (`encode_paragraphs`, vectors thrown away) and indexed whole
(read from a file, encoded, filtered, quantized, postings, written, committed), in turns, so that a busy
machine slows both alike; the ratio of processor time, which other programs hardly touch, is given beside that
of the clock. Then all of dev is indexed by the command, with a process for each core, its memory watched.

    python benchmarks/build.py --model DIR --data ../shared/data --output docs/results/build.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from denspi import Index
from denspi.build.workers import WorkerSettings
from denspi.corpus import read_corpus
from denspi.dense.onnx_encoder import load_encoder
from denspi.types import Document
from machine import machine

ROUNDS = 6
ARTICLES = 2  # in each round
WATCH_SECONDS = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="an exported phrase model")
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/")
    parser.add_argument("--output", type=Path, required=True, help="the JSON file to write")
    arguments = parser.parse_args()
    dev = arguments.data / "squad" / "dev-v1.1.json.gz"
    articles = [item for item in read_corpus(dev) if isinstance(item, Document)]
    results: dict[str, Any] = {"machine": machine(("numpy", "onnxruntime", "tokenizers"))}
    with tempfile.TemporaryDirectory() as scratch:
        results["whole_command"] = whole_command(arguments.model, dev, Path(scratch) / "dev")
        print(json.dumps(results["whole_command"]), flush=True)
        all_cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(all_cores)})
        results["one_core"] = one_core(arguments.model, articles, Path(scratch))
        os.sched_setaffinity(0, all_cores)
    results["machine"]["load_average_at_end"] = os.getloadavg()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results["one_core"]), flush=True)


def one_core(model: Path, articles: list[Document], scratch: Path) -> dict[str, Any]:
    encoder = load_encoder(model)
    list(encoder.encode_paragraphs(articles[0].paragraph_texts()))  # warm
    clock, processor, words = [], [], 0
    bare_seconds = whole_seconds = 0.0
    for number in range(ROUNDS):
        chosen = articles[1 + number * ARTICLES : 1 + (number + 1) * ARTICLES]
        path = scratch / f"{number}.jsonl"
        path.write_text("".join(map(as_line, chosen)), encoding="utf-8")
        texts = [text for document in chosen for text in document.paragraph_texts()]
        words += sum(len(text.split()) for text in texts)

        def bare(texts: list[str] = texts) -> None:
            for _ in encoder.encode_paragraphs(texts):
                pass

        def whole(path: Path = path, output: Path = scratch / f"index-{number}") -> None:
            with Index.create(output, str(model), workers=WorkerSettings(processes=0)) as index:
                index._encoder = encoder  # loading the model is no part of the rate
                index.add(item for item in read_corpus(path) if isinstance(item, Document))
                index.commit()

        order = (bare, whole) if number % 2 else (whole, bare)
        taken = {work.__name__: timed(work) for work in order}
        clock.append(taken["bare"][0] / taken["whole"][0])
        processor.append(taken["bare"][1] / taken["whole"][1])
        bare_seconds += taken["bare"][0]
        whole_seconds += taken["whole"][0]
    return {
        "rounds": ROUNDS,
        "words": words,
        "bare_words_per_s": round(words / bare_seconds),
        "index_words_per_s": round(words / whole_seconds),
        "share_of_bare_rate_by_clock": spread(clock),
        "share_of_bare_rate_by_processor_time": spread(processor),
    }


def whole_command(model: Path, dev: Path, output: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "denspi", "index", str(dev), "--output", str(output)]
    started = time.monotonic()
    process = subprocess.Popen([*command, "--model", str(model)], stdout=subprocess.DEVNULL)
    peak_bytes = 0
    while process.poll() is None:
        peak_bytes = max(peak_bytes, sum(map(private_bytes, family(process.pid))))
        time.sleep(WATCH_SECONDS)
    seconds = time.monotonic() - started
    assert process.returncode == 0
    info = Index.open(output).info()
    return {
        "documents": info.documents,
        "paragraphs": info.paragraphs,
        "words": info.words,
        "words_and_signs": info.words_and_signs,
        "starts": info.starts,
        "ends": info.ends,
        "seconds": round(seconds, 1),
        "words_per_s": round(info.words / seconds),
        "processes": len(os.sched_getaffinity(0)),
        "peak_memory_mb": round(peak_bytes / 1e6),
        "bytes": info.bytes,
        "bytes_per_word": round(info.bytes_per_word, 1),
        "bytes_per_word_by_component": {
            name: round(size / info.words, 2) for name, size in info.bytes_by_component.items()
        },
    }


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    except OSError:  # it has just ended
        pass
    return found


def private_bytes(pid: int) -> int:
    """Memory of a process without mapped files, whose pages the system takes back when it needs them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))


def as_line(document: Document) -> str:
    return json.dumps({"id": document.document_id, "title": document.title, "text": document.text}) + "\n"


def timed(work: Callable[[], None]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def spread(values: list[float]) -> dict[str, float]:
    return {name: round(float(getattr(np, name)(values)), 3) for name in ("median", "min", "max")}


if __name__ == "__main__":
    main()
