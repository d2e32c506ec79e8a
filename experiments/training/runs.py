"""The runs of Table 1 and our ablations, by name: train those that are named, then collect their scores.

    python experiments/training/runs.py --list
    python experiments/training/runs.py reader-base ablation ablation-product --output runs
    python experiments/training/runs.py --collect --output runs

Runs go one after another, each with what it needs before it; one that is done is not run again, one that was
interrupted goes on. With `--jobs` several share a GPU that a small encoder does not fill, each with a log of
its own; their seconds are then not those of a run alone. `--data` and `--encoders` say where those lie on
another machine. `--collect` puts the scores of all finished runs into docs/results/reading.json; only the
standard library and denspi are needed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from denspi.build.cores import usable_cores

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results" / "reading.json"
CONFIGS = "experiments/training"
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Run:
    """A configuration, what is set otherwise, and the runs whose output it reads."""

    config: str
    sets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ("reader-base",)
    stage: str = "phrase"  # whose scores count


WITHOUT_NEGATIVES = ("phrase.loss.in_batch=0", "phrase.article_group=1")
ASKED = ("reader-base", "ask", "ask-more")
LSTM = ("phrase.batch=48", "phrase.loop.epochs=7", "phrase.loop.learning_rate=1e-3")
BASE = ('encoder="encoders/mpnet-base"', "graphs=false", "phrase.loop.learning_rate=5e-5")


def negatives(kind: str) -> Run:
    """Two epochs within paragraphs, then one against the paragraphs that `kind` finds."""
    stage = (
        f'negatives={{batch=24, negatives="{kind}", loop={{epochs=1, learning_rate=1e-4, warmup=0.05, '
        "average=0.999, checkpoint_every_seconds=600}, "
        "loss={reading=1.0, distillation=3.0, no_answer=true}}"
    )
    return Run("ablation", (*WITHOUT_NEGATIVES, "phrase.loop.epochs=2", stage), stage="negatives")


def lstm(table: str) -> Run:
    """As the paper's baseline was: no teacher, nothing but the gold paragraph."""
    return Run("ablation", (table, *LSTM, *WITHOUT_NEGATIVES, "phrase.loss.distillation=0"), needs=())


RUNS = {
    "reader-base": Run("reader-base", needs=(), stage="reader"),
    "reader-small": Run("reader-small", needs=(), stage="reader"),
    "ask": Run("ask", stage="ask"),
    "ask-more": Run("ask-more", stage="ask"),
    **{f"small-seed-{n}": Run("small-seed", (f"seed={n}",), ASKED) for n in (1, 2, 3)},
    "small": Run("small", needs=("small-seed-1", "small-seed-2", "small-seed-3"), stage="mean"),
    "small-without-negatives": Run("small-seed", WITHOUT_NEGATIVES, ASKED),
    "base": Run("base", ('asked=["runs/ask/ask"]',), ("reader-base", "ask")),
    "base-without-negatives": Run(
        "base", ('asked=["runs/ask/ask"]', *WITHOUT_NEGATIVES), ("reader-base", "ask")
    ),
    "ablation": Run("ablation"),
    "ablation-linear": Run("ablation", ("model.linear_layer=true",)),
    "ablation-independent": Run("ablation", ("model.independent_encoders=true",)),
    "ablation-no-coherency": Run("ablation", ('model.coherency="none"', "model.coherency_dim=0")),
    "ablation-product": Run("ablation", ('model.coherency="product"',)),
    "ablation-no-distillation": Run("ablation", ("phrase.loss.distillation=0",)),
    "ablation-no-dropout": Run("ablation", ("dropout=0",)),
    "ablation-no-in-batch": Run("ablation", WITHOUT_NEGATIVES),
    "ablation-paper-negatives": negatives("paper"),
    "ablation-similar-question": negatives("similar_question"),
    "ablation-base": Run("ablation", BASE),
    "ablation-base-no-in-batch": Run("ablation", (*BASE, *WITHOUT_NEGATIVES)),
    "ablation-lstm": lstm("lstm={}"),
    "ablation-lstm-pretrained": lstm('lstm={embeddings="encoder", embedding_dim=384}'),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="RUN", help="what to train")
    parser.add_argument("--list", action="store_true", help="show all runs and their commands")
    parser.add_argument("--collect", action="store_true", help="scores of finished runs into reading.json")
    parser.add_argument("--output", type=Path, default=Path("runs"), help="each run gets a folder here")
    parser.add_argument("--data", default="../shared/data", help="folder with squad/ and wikipedia/")
    parser.add_argument("--encoders", default="encoders", help="folder with minilm-l6/ and mpnet-base/")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all of them")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in RUNS]:
        parser.error(f"no run {unknown[0]!r}; --list shows them")
    if arguments.jobs < 1:
        parser.error("--jobs counts from 1")
    if not (arguments.names or arguments.list or arguments.collect):
        parser.error("name a run, or give --list or --collect")
    if arguments.list:
        for name in RUNS:
            print(f"{name:28} {command(name)}")
    try:
        failed = train(arguments.names, arguments) if arguments.names else []
    except KeyboardInterrupt:
        print("interrupted; the same command goes on", file=sys.stderr)
        return 130
    if arguments.collect:
        print(", ".join(collect(arguments.output, RESULTS)) or "nothing new", file=sys.stderr)
    for name in failed:
        where = f", see {arguments.output / name}.log" if arguments.jobs > 1 else ""
        print(f"{name}: failed{where}", file=sys.stderr)
    return 1 if failed else 0


def train(names: list[str], arguments: argparse.Namespace) -> list[str]:
    """Run what is not done yet, at most `jobs` at a time, each after what it needs; those that failed."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        return train_until_done(names, arguments, running)
    except KeyboardInterrupt:  # the runs have heard it too, and say how to go on
        for process in running.values():
            process.wait()
        raise


def train_until_done(
    names: list[str], arguments: argparse.Namespace, running: dict[str, subprocess.Popen[bytes]]
) -> list[str]:
    waiting = [
        name
        for name in in_order(names)
        if not is_done(name, arguments.output) or (name in names and not is_exported(name, arguments.output))
    ]
    failed: list[str] = []
    while waiting or running:
        for name in list(waiting):
            missing = [need for need in RUNS[name].needs if not is_done(need, arguments.output)]
            if any(need in failed for need in missing):
                waiting.remove(name)
                failed.append(name)
            elif len(running) < arguments.jobs and not missing:
                waiting.remove(name)
                running[name] = begin(name, arguments)
        for name, process in list(running.items()):
            if process.poll() is not None:
                del running[name]
                failed += [name] if process.returncode or not is_done(name, arguments.output) else []
                if process.returncode < 0:  # it could not say so itself
                    reason = signal.strsignal(-process.returncode)
                    print(f"{name}: ended by a signal ({reason})", file=sys.stderr, flush=True)
        time.sleep(POLL_SECONDS)
    return failed


def begin(name: str, arguments: argparse.Namespace) -> subprocess.Popen[bytes]:
    print(f"== {name}", file=sys.stderr, flush=True)
    places = moved(name, arguments.data, arguments.encoders, arguments.output)
    line = [*words(name, arguments.output, arguments.encoders), *as_options([*places, *arguments.set])]
    if arguments.jobs == 1:
        return subprocess.Popen(line)
    arguments.output.mkdir(parents=True, exist_ok=True)
    # Threads that wait for each other turn in circles: more of them than cores take many times as long.
    threads = str(max(1, usable_cores() // arguments.jobs))
    with (arguments.output / f"{name}.log").open("ab") as log:
        return subprocess.Popen(line, stdout=log, stderr=log, env={"OMP_NUM_THREADS": threads, **os.environ})


def is_done(name: str, output: Path) -> bool:
    """Whether what others need of it is there."""
    return (output / name / RUNS[name].stage / "scores.json").exists()


def is_exported(name: str, output: Path) -> bool:
    """Whether its export is there too, if it has one: some machines can train and not export."""
    config = tomllib.loads((ROOT / CONFIGS / f"{RUNS[name].config}.toml").read_text(encoding="utf-8"))
    folder = "reader-export" if "reader" in config else "export"
    return "export" not in config or (output / name / folder / "model.json").exists()


def in_order(names: list[str]) -> list[str]:
    """The runs and what they need, each once, needs first."""
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys([*in_order(list(RUNS[name].needs)), name])
    return list(found)


def words(name: str, output: Path = Path("runs"), encoders: str = "encoders") -> list[str]:
    """The command, without what depends on the machine."""
    run = RUNS[name]
    start = [sys.executable, "-m", "denspi.training", f"{CONFIGS}/{run.config}.toml"]
    sets = [each.replace('"runs/', f'"{output}/').replace('"encoders/', f'"{encoders}/') for each in run.sets]
    return [*start, "--output", str(output / name), "--resume", *as_options(sets)]


def command(name: str) -> str:
    """As it stands in results."""
    return shlex.join(["python", *words(name)[1:]]).replace(" --resume", "")


def as_options(sets: tuple[str, ...] | list[str]) -> list[str]:
    return [option for each in sets for option in ("--set", each)]


def moved(name: str, data: str, encoders: str, output: Path) -> list[str]:
    """Settings of places that are not where the configuration has them."""
    text = (ROOT / CONFIGS / f"{RUNS[name].config}.toml").read_text(encoding="utf-8")
    found = []
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        if key in ("data", "report", "encoder", "teacher", "asked", "text", "models"):
            there = value.replace("../shared/data", data).replace("encoders/", f"{encoders}/")
            there = there.replace('"runs/', f'"{output}/')
            where = {"text": "ask.text", "models": "mean.models"}.get(key, key)
            if there != value and not any(each.startswith(f"{where}=") for each in RUNS[name].sets):
                found.append(f"{where}={there}")
    return found


def collect(output: Path, results: Path) -> list[str]:
    """Put what finished runs scored in the place of what is there; the names of those that are new."""
    record = json.loads(results.read_text(encoding="utf-8"))
    known, new = {run["name"]: run for run in record["runs"]}, []
    for name, run in RUNS.items():
        path = output / name / run.stage / "scores.json"
        if path.exists() and run.stage != "ask":
            scores = json.loads(path.read_text(encoding="utf-8"))
            entry = {
                "name": name,
                "command": command(name),
                "seconds": scores["seconds"],
                "held_out": {key: scores["held_out"][key] for key in ("em", "f1")},
                "dev": {key: scores["report"][key] for key in ("em", "f1")},
            }
            if known.get(name, {}).get("held_out") != entry["held_out"]:
                known[name] = entry
                new.append(name)
    record["runs"] = list(known.values())
    results.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return new


if __name__ == "__main__":
    sys.exit(main())
