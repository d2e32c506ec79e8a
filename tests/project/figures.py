"""Figures in prose, and the result files that they come from.

A comment ``<!-- figures: reading.json, paper -->`` says where the figures below it come from, up to the next
comment of this kind or the next heading of its own or a higher level; a page that begins with one says it for
all that has no other. Sources are files of docs/results, others by their path from the root, and `paper`,
which stands for the figures that experiments/tables/paper.py quotes. ``table2.json#ours.hybrid`` is what
stands there in a file: a file has hundreds of numbers, and some of them look like any figure.
``<!-- figures: settings -->`` says that those below are chosen, not measured: limits, defaults, versions.
``<!-- figures: none -->`` ends it.

A figure is a number with a decimal point or a comma for thousands, or one that a unit follows. It must be a
value of the sources, rounded as it is shown, in the unit that it has: a share as a percentage, bytes in
megabytes. A pair such as ``68.2 / 76.4`` must stand side by side in one object of a source. Code and
addresses are left out.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!-- figures: (.*?) -->")
NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
UNIT = r"(?: ?%| (?:ms|s|MB|GB|TB|EM|bytes a word|million|M|points|times|words/s|questions/s)\b)"
SECOND = r"(?: EM)? / (?P<second>\d+\.\d+)(?![\w.])"
FIGURE = re.compile(rf"(?<![\w.^/-])(?P<number>{NUMBER})(?:{SECOND}|(?P<unit>{UNIT}))?(?!\w|\.\d|,\d)")
NOT_PROSE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)|https?://\S+", flags=re.MULTILINE | re.DOTALL)
# What a stored value is multiplied by where this unit follows; 1 where it is stored in it.
SCALES = {
    "%": 100,
    "points": 100,
    "ms": 1000,
    "million": 1e-6,
    "M": 1e-6,
    "MB": 1e-6,
    "GB": 1e-9,
    "TB": 1e-12,
}
SETTINGS = "settings"
MEASURED_UNITS = {"EM", "points", "words/s", "questions/s"}  # no setting has them


@dataclass(frozen=True)
class Figure:
    """A number, or a pair, and where it stands."""

    line: int
    shown: tuple[str, ...]
    sources: tuple[str, ...]
    unit: str = ""


def figures_of(page: str) -> Iterator[Figure]:
    """All figures that are said to come from somewhere."""
    return (figure for figure in all_figures(page) if figure.sources not in ((), (SETTINGS,)))


def all_figures(page: str) -> Iterator[Figure]:
    """Also those that are settings, and those of which nothing is said."""
    prose = NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), page)
    sources: tuple[str, ...] = ()
    of_page: tuple[str, ...] = ()
    level = marked_level = 0  # of the last heading, and of the one that the mark stands below
    for number, line in enumerate(prose.split("\n"), start=1):
        if heading := re.match(r"(#+) ", line):
            level = len(heading[1])
            sources = sources if level > marked_level else of_page
        if mark := MARK.search(line):
            sources = tuple(name.strip() for name in mark[1].split(",") if name.strip() != "none")
            marked_level = level
            of_page = of_page if level else sources
        for found in FIGURE.finditer(MARK.sub("", line)):
            if found["second"]:
                yield Figure(number, (found["number"], found["second"]), sources)
            elif found["unit"] or "." in found["number"] or "," in found["number"]:
                yield Figure(number, (found["number"],), sources, (found["unit"] or "").strip())


def is_backed(figure: Figure, objects: list[dict[str, list[float]]]) -> bool:
    """Whether some object of the sources has these values."""
    return any(
        all(any(rounds_to(value, shown, figure.unit) for value in values["values"]) for shown in figure.shown)
        for values in objects
    )


def rounds_to(value: float, shown: str, unit: str = "") -> bool:
    """As many decimals as are shown; either way for what lies in the middle."""
    text = shown.replace(",", "")
    half = 0.5 * 10 ** -len(text.partition(".")[2])
    scales = {1.0, float(SCALES.get(unit, 1))}
    return any(abs(value * scale - float(text)) <= half * (1 + 1e-9) for scale in scales)


def objects_of(content: Any) -> list[dict[str, list[float]]]:
    """The numbers of each object of a JSON value, those that stand directly in it or in a list there."""
    found: list[dict[str, list[float]]] = []

    def visit(value: Any) -> list[float]:
        if isinstance(value, bool) or value is None:
            return []
        if isinstance(value, int | float):
            return [float(value)]
        if isinstance(value, list):
            return [number for each in value for number in visit(each)]
        if isinstance(value, dict):
            numbers = [number for each in value.values() for number in visit(each)]
            numbers += [float(key) for key in value if re.fullmatch(r"\d+(\.\d+)?", key)]
            found.append({"values": numbers})
        return []

    visit(content if isinstance(content, dict) else {"all": content})
    return found


def read_source(name: str, root: Path, paper: list[Any]) -> list[dict[str, list[float]]]:
    """The objects of a source."""
    if name == "paper":
        return objects_of({"rows": paper})
    file, _, place = name.partition("#")
    path = root / file if "/" in file else root / "docs" / "results" / file
    text = path.read_text(encoding="utf-8")
    content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    for key in place.split(".") if place else ():
        content = _element(content, key) if isinstance(content, list) else content[key]
    return objects_of(content)


def _element(content: list[Any], key: str) -> Any:
    """By its place, or by its name."""
    if re.fullmatch(r"-?\d+", key):
        return content[int(key)]
    return next(each for each in content if each["name"] == key)


def load_script(script: str) -> ModuleType:
    """A script of benchmarks or experiments as a module, with what lies beside it; nothing is run."""
    path = ROOT / script
    for folder in (ROOT / "benchmarks", ROOT / "experiments" / "tables"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location(f"figures_of_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
