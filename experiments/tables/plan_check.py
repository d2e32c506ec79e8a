"""Does `denspi plan` keep its word? Two real builds beside what it said right before them.

Articles of SQuAD and Wikipedia in the order of plan_constants.py, but from its end, so that no point of the
measured curves is one of these collections.

    python experiments/tables/plan_check.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pages import RESULTS, begun, head, markdown, rendered_again, write
from plan_constants import first_words, shuffled_articles

from denspi.build.model import model_for_new_index
from denspi.build.pipeline import size_of
from denspi.plan import plan_index

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from build import as_line, whole_command

OUTPUT = RESULTS / "plan.json"
WORDS = (200_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/ and wikipedia/")
    parser.add_argument("--words", type=int, nargs="+", default=WORDS, help="the sizes of the builds")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    sizes = " ".join(map(str, arguments.words))
    command = f"python experiments/tables/plan_check.py --data ../shared/data --words {sizes}"
    result = begun(command, ("numpy", "onnxruntime")) | {"builds": []}
    articles = shuffled_articles(arguments.data, 10**12)[::-1]
    model = model_for_new_index("small", "int8").folder
    for wanted in arguments.words:
        chosen = list(first_words(articles, wanted))
        words = sum(size_of(each).words for each in chosen)
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch) / "articles.jsonl"
            source.write_text("".join(map(as_line, chosen)), encoding="utf-8")
            planned = plan_index(words).as_json()
            built = whole_command(model, source, Path(scratch) / "index")
        result["builds"].append({"planned": planned, "built": built})
        print(json.dumps(result["builds"][-1]), file=sys.stderr, flush=True)
        write(arguments.output, result, render)


def render(result: dict[str, Any]) -> str:
    rows = []
    for each in result["builds"]:
        planned, built = each["planned"], each["built"]
        rows += [
            _row(f"{built['words']:,} words", "disk, MB", planned["disk_bytes"] / 1e6, built["bytes"] / 1e6),
            _row("", "memory, MB", planned["build_memory_bytes"] / 1e6, built["peak_memory_mb"]),
            _row("", "time, s", planned["build_seconds"], built["seconds"]),
        ]
    return (
        "\n".join(
            [
                *head("Plans and builds", result),
                "`denspi plan --words N` beside an index that was built right after it with `denspi"
                " index`, on"
                " all cores. Disk does not depend on the machine; time does, and on a machine with other work"
                " on it the rate that was measured for some seconds need not be the one that the build gets.",
                "",
                *markdown(("index", "", "planned", "built", "planned / built"), rows),
            ]
        )
        + "\n"
    )


def _row(name: str, what: str, planned: float, built: float) -> tuple[str, ...]:
    return name, what, f"{planned:,.1f}", f"{built:,.1f}", f"{planned / built:.2f}"


if __name__ == "__main__":
    rendered_again(OUTPUT, render) if sys.argv[1:2] == ["--render"] else main()
