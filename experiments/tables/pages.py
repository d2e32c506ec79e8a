"""How the tables become pages: heads, Markdown tables, and the one way from a result file to its page.

A page holds nothing that is not in its JSON file or in `paper`, so that it can be rendered again at any time;
tests/project/test_figures.py does, and compares.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
sys.path.append(str(ROOT / "benchmarks"))
from machine import described, machine  # noqa: E402

PACKAGES = ("numpy", "numba", "onnxruntime")
Render = Callable[[dict[str, Any]], str]


def begun(command: str, packages: Sequence[str] = PACKAGES, cores_used: int = 1) -> dict[str, Any]:
    """What every result begins with: the command as anybody would type it, and the machine."""
    return {"command": command, "machine": machine(packages, cores_used)}


def head(title: str, result: dict[str, Any]) -> list[str]:
    """The first lines of a page."""
    lines = [f"# {title}", "", "Written by the command below; do not edit.", "", "```sh", result["command"]]
    return [*lines, "```", "", described(result["machine"]), ""]


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table."""
    return ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]


def shown(value: float | None, form: str = ".1f") -> str:
    """A number, or nothing where there is none."""
    return "" if value is None else format(value, form)


def write(path: Path, result: dict[str, Any], render: Render) -> None:
    """The figures, whole or not at all, and their page beside them."""
    result["machine"]["load_average_at_end"] = os.getloadavg()
    content = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, text in ((path, content), (path.with_suffix(".md"), render(json.loads(content)))):
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)


def rendered_again(path: Path, render: Render) -> None:
    """The page from a file that is there, measuring nothing."""
    path.with_suffix(".md").write_text(render(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
