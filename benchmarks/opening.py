"""What opening an index takes, none of its bytes in memory, and how much of it that brings there.

python benchmarks/opening.py --index INDEX --index INDEX --output docs/results/opening.json
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from pathlib import Path
from typing import Any

from cold import OpenedAnew, drop_pages, files_of, resident_share
from denspi import Index
from denspi.dense.encoder import PhraseEncoder
from denspi.search.searcher import Searcher
from machine import described, machine, percentiles, write_results

TIMES = 10
PACKAGES = ("numpy", "numba")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, action="append", required=True, help="as often as wanted")
    parser.add_argument("--output", type=Path, required=True, help="the JSON file to write")
    arguments = parser.parse_args()
    about = machine(PACKAGES)
    command = f"python benchmarks/opening.py{' --index INDEX' * len(arguments.index)} --output docs/results/"
    encoder = Searcher(Index.open(arguments.index[0]), compiled=True).encoder  # and the compiled loops
    measured = [measure(folder, encoder) for folder in arguments.index]
    results = {
        "command": f"{command}{arguments.output.name}",
        "machine": about | {"load_average_at_end": os.getloadavg()},
        "times": TIMES,
        "indexes": measured,
    }
    write_results(arguments.output, results, render(results))


def measure(folder: Path, encoder: PhraseEncoder) -> dict[str, Any]:
    """From a closed index to a searcher on its newest generation; model and compiled loops are loaded."""
    taken_ms, brought = [], []
    size = sum(path.stat().st_size for path in files_of(folder))
    for _ in range(TIMES):
        gc.collect()  # what is still mapped cannot be dropped
        drop_pages(folder)
        before = resident_share(folder)
        started = time.perf_counter()
        searcher = Searcher(OpenedAnew(folder, encoder), compiled=True)
        taken_ms.append(1000 * (time.perf_counter() - started))
        brought.append(size * (resident_share(folder) - before))
        live = searcher.view.snapshot.live
        del searcher
    return {
        "documents": live.documents,
        "starts": live.starts,
        "bytes": size,
        "opening_ms": percentiles(taken_ms),
        "read_bytes": round(max(brought)),
    }


def render(results: dict[str, Any]) -> str:
    lines = [
        *("# Opening an index", "", "Written by the command below; do not edit.", ""),
        *("```", results["command"], "```", "", described(results["machine"]), ""),
        "From a closed index, none of its bytes in memory, to a searcher on its newest commit,"
        f" {results['times']} times; model and loops are loaded. *In memory*: what of its files is there"
        " then, with what the kernel reads ahead.",
        "",
        "| starts | documents | on disk, MB | opening p50 / p95 ms | in memory, MB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for each in results["indexes"]:
        taken = each["opening_ms"]
        lines.append(
            f"| {each['starts']:,} | {each['documents']:,} | {each['bytes'] / 1e6:,.0f}"
            f" | {taken['p50']} / {taken['p95']} | {each['read_bytes'] / 1e6:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
