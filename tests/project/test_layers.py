"""The import contracts cover every module: a new one cannot slip past the bans on typer, rich and torch."""

from __future__ import annotations

import tomllib
from pathlib import Path


def test_the_bans_cover_every_layer(root: Path) -> None:
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers, *bans = contracts
    modules = {name for layer in layers["layers"] for name in layer.split(" | ")} - {"__main__"}
    may = {"typer": {"cli"}, "torch": {"dense", "training"}, "fastapi": {"serve"}}
    for ban in bans:
        banned_in = {name.removeprefix("denspi.") for name in ban["source_modules"]}
        assert banned_in == modules - may[ban["forbidden_modules"][0]], ban["name"]
