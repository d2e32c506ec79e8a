"""What the service makes of a core: questions a second and latency under load, beside the bare searcher.

The bare searcher runs in as many processes as the service has workers, one question after another; then wrk
puts the same questions to `denspi serve` over loopback. They take turns, so that a busy machine slows both
alike. Rates are given by wall time and by processor time, which does not count what other processes took. At
the end far more connections than it serves show what overload looks like. Needs wrk (apt install wrk).

    python benchmarks/serve.py --index INDEX --data ../shared/data/squad/dev-v1.1.json.gz \
        --output docs/results/serve.json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote_plus

from denspi.corpus.questions import read_questions
from machine import described, machine, write_results

QUESTIONS = 1000
WARM_SECONDS = 3
OVERLOAD_CONNECTIONS = 256
TARGET = 0.6
BARE = """
import json, sys, time
from denspi import Index, Searcher
questions, seconds = json.load(open(sys.argv[2])), float(sys.argv[3])
searcher = Searcher(Index.open(sys.argv[1]))
for question in questions[:20]:
    searcher.ask(question)
print("ready", flush=True)
input()
count, started, cpu = 0, time.perf_counter(), time.process_time()
while time.perf_counter() - started < seconds:
    searcher.ask(questions[count % len(questions)])
    count += 1
print(count, time.perf_counter() - started, time.process_time() - cpu)
"""
# Each thread of wrk takes the addresses in an order of its own; the summary comes as one line of JSON.
WRK = """
local paths = {%s}
local number = 0
function setup(thread) thread:set("first", number); number = number + %d end
function request() first = first + 1; return wrk.format("GET", paths[first %% #paths + 1]) end
function done(summary, latency, requests)
  io.write(string.format(
    '\\n{"requests": %%d, "seconds": %%f, "refused": %%d, "broken": %%d, ' ..
    '"p50_ms": %%f, "p99_ms": %%f, "max_ms": %%f}\\n',
    summary.requests, summary.duration / 1e6, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
"""


@dataclass
class Rate:
    """Questions, and the time they took: of the clock, and of all processors together."""

    questions: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, questions: int, seconds: float, cpu_seconds: float) -> None:
        """One more round."""
        self.questions += questions
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds

    def as_json(self) -> dict[str, float]:
        """Of all rounds."""
        return {
            "questions": self.questions,
            "per_second": round(self.questions / self.seconds, 2),
            "per_cpu_second": round(self.questions / self.cpu_seconds, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="questions: SQuAD, JSON Lines or one a line")
    parser.add_argument("--output", type=Path, required=True, help="the JSON file; a .md goes beside it")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16, help="questions that are under way at once")
    parser.add_argument("--seconds", type=float, default=20, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("benchmarks/serve.py: wrk is not installed; on Debian: apt install wrk")
    about = machine(["denspi", "fastapi", "uvicorn", "numba", "onnxruntime"], arguments.workers)
    texts = [each.text for each in read_questions(str(arguments.data))]
    chosen = Random(0).sample(texts, min(QUESTIONS, len(texts)))
    bare, served, latencies = Rate(), Rate(), []
    with tempfile.TemporaryDirectory() as folder, service(arguments.index, arguments.workers) as (url, pid):
        questions, script = Path(folder, "questions.json"), Path(folder, "wrk.lua")
        questions.write_text(json.dumps(chosen), encoding="utf-8")
        paths = ", ".join(f'"/api/answers?question={quote_plus(text)}"' for text in chosen)
        script.write_text(WRK % (paths, len(chosen) // 2), encoding="utf-8")
        load(url, script, arguments.connections, WARM_SECONDS)
        for number in range(arguments.rounds):
            run_bare(arguments.index, questions, arguments.seconds, arguments.workers, bare)
            cpu_before = cpu_seconds(pid)
            found = load(url, script, arguments.connections, arguments.seconds)
            answered = found["requests"] - found["refused"]
            served.add(answered, found["seconds"], cpu_seconds(pid) - cpu_before)
            latencies.append(found)
            print(f"round {number + 1} of {arguments.rounds}: {found}", flush=True)
        overload = load(url, script, OVERLOAD_CONNECTIONS, arguments.seconds)
    results = {
        "machine": about | {"load_average_at_end": os.getloadavg()},
        "index": index_of(arguments.index),
        "data": arguments.data.name,
        "questions": len(chosen),
        "workers": arguments.workers,
        "connections": arguments.connections,
        "seconds": arguments.seconds,
        "bare": bare.as_json(),
        "served": served.as_json(),
        "share_of_bare": {
            "wall": round(share(served, bare, "seconds"), 3),
            "cpu": round(share(served, bare, "cpu_seconds"), 3),
        },
        "rounds": latencies,
        "overload": overload | {"connections": OVERLOAD_CONNECTIONS},
    }
    write_results(arguments.output, results, render(results))


def share(served: Rate, bare: Rate, time_name: str) -> float:
    """How much of the bare searcher's rate the service keeps; both have as many processes."""
    return (served.questions / getattr(served, time_name)) / (bare.questions / getattr(bare, time_name))


@contextmanager
def service(index: Path, workers: int) -> Iterator[tuple[str, int]]:
    """`denspi serve`; the address, and the process that is the worker, or whose children are."""
    command = [sys.executable, "-m", "denspi", "serve", str(index), "--port", "0", "--workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=one_thread()) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            wait_for(f"{url}/readyz")
            yield url, process.pid
        finally:
            process.terminate()


def wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(url, timeout=60).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def run_bare(index: Path, questions: Path, seconds: float, processes: int, rate: Rate) -> None:
    """The searcher alone, on as many cores as the service has workers, all at the same time."""
    command = [sys.executable, "-c", BARE, str(index), str(questions), str(seconds)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one_thread())
        for _ in range(processes)
    ]
    for each in running:
        assert each.stdout is not None
        each.stdout.readline()
    for each in running:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    found = [[float(value) for value in each.communicate()[0].split()] for each in running]
    rate.add(
        int(sum(count for count, _, _ in found)),
        max(taken for _, taken, _ in found),
        sum(cpu for _, _, cpu in found),
    )


def load(url: str, script: Path, connections: int, seconds: float) -> dict[str, float]:
    """What wrk says of so many connections that ask without a pause."""
    threads = min(2, connections)
    command = [
        "wrk",
        f"-t{threads}",
        f"-c{connections}",
        f"-d{seconds:g}s",
        "--timeout",
        "30s",
        "-s",
        str(script),
    ]
    printed = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    found: dict[str, float] = json.loads(printed.strip().splitlines()[-1])
    return found


def cpu_seconds(parent: int) -> float:
    """Processor time so far of a process, which is the only worker where there is one, and its children."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--pid", str(parent), "--ppid", str(parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    ticks = 0
    for pid in found.stdout.split():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def one_thread() -> dict[str, str]:
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def index_of(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "denspi", "info", str(folder), "--json"]
    info = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {name: info[name] for name in ("documents", "paragraphs", "words", "starts", "bytes", "precision")}


def render(results: dict[str, Any]) -> str:
    index, bare, served = results["index"], results["bare"], results["served"]
    kept, over = results["share_of_bare"], results["overload"]
    lines = [
        "# Service: what is left of a core's questions over HTTP",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        f"python benchmarks/serve.py --index INDEX --data ../shared/data/squad/{results['data']}"
        f" --workers {results['workers']} --connections {results['connections']}"
        f" --seconds {results['seconds']:g} --rounds {len(results['rounds'])}"
        " --output docs/results/serve.json",
        "```",
        "",
        described(results["machine"]),
        "",
        f"{index['documents']:,} documents, {index['paragraphs']:,} paragraphs, {index['words']:,} words,"
        f" {index['starts']:,} starts, {index['precision']}. {results['questions']:,} questions of"
        f" {results['data']}, hybrid, 5 answers each. The bare searcher runs in {results['workers']}"
        f" processes, the service with {results['workers']} workers; wrk, on the same machine, keeps"
        f" {results['connections']} connections busy. They take turns.",
        "",
        "| | questions/s | questions/s of processor time |",
        "| --- | --- | --- |",
        f"| bare searcher | {bare['per_second']} | {bare['per_cpu_second']} |",
        f"| `denspi serve` | {served['per_second']} | {served['per_cpu_second']} |",
        f"| kept (wanted: {TARGET:.0%}) | {kept['wall']:.0%} | {kept['cpu']:.0%} |",
        "",
        "| round | questions/s | p50 ms | p99 ms | refused | broken connections |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {number} | {(found['requests'] - found['refused']) / found['seconds']:.1f}"
            f" | {found['p50_ms']:.1f} | {found['p99_ms']:.1f} | {found['refused']} | {found['broken']} |"
            for number, found in enumerate(results["rounds"], start=1)
        ),
        "",
        f"Overload, {over['connections']} connections: {over['requests'] / over['seconds']:.0f} replies/s,"
        f" of which {(over['requests'] - over['refused']) / over['seconds']:.1f} answers and the rest 503;"
        f" p50 {over['p50_ms']:.1f} ms, p99 {over['p99_ms']:.1f} ms, slowest {over['max_ms']:.0f} ms;"
        f" {over['broken']} connections broken.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
