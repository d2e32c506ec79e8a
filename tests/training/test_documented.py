"""docs/training.md names every key, with its default."""

import dataclasses
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path

from denspi.training.loop import LoopSettings
from denspi.training.settings import PhraseStage, RunSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def keys(kind: type, where: str = "") -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(kind):
        hint = typing.get_type_hints(kind)[field.name]
        if isinstance(hint, types.UnionType):
            hint = typing.get_args(hint)[0]
        if field.name == "loop" and hint is not LoopSettings:  # a stage with defaults of its own
            common = dict(keys(LoopSettings))
            yield from ((f"{where}loop.{n}", d) for n, d in keys(hint) if d != common[n])
        elif field.name == "loop":
            yield from keys(hint, "loop.")
        elif dataclasses.is_dataclass(hint) and field.name != "negatives":  # it has the keys of [phrase]
            yield from keys(hint, f"{where}{field.name}.")
        elif not dataclasses.is_dataclass(hint):
            yield where + field.name, field.default


def test_every_key_and_no_other() -> None:
    documented: dict[str, str] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = re.findall(r"`([\w.]+)`", cells[0])
        if line.startswith("| `") and len(cells) == 3 and cells[0].count("`") == 2 * len(names):
            documented.update(zip(names, cells[1].split(", ") if len(names) > 1 else [cells[1]], strict=True))
    shared = {f"pretrain.{name}" for name, _ in keys(PhraseStage)}  # what it has in common with [phrase]
    expected = {name: default for name, default in keys(RunSettings) if name not in shared}
    assert documented.keys() == expected.keys()
    for name, default in expected.items():
        if default in (dataclasses.MISSING, None, ()):
            assert documented[name] == ""
        elif isinstance(default, float | int) and not isinstance(default, bool):
            assert float(documented[name]) == default, name
        else:
            assert documented[name].strip('"').lower() == str(default).lower(), name
