"""The README's annotated tree names what exists, and leaves out nothing of the package."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_tree_is_the_package(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```\nsrc/denspi/\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    assert found, "README.md has no tree that starts with src/denspi/"
    lines = found[1].splitlines()
    drawn = {line.split()[0].rstrip("/") for line in lines if line.startswith("  ")}
    there = {
        path.name
        for path in (root / "src" / "denspi").iterdir()
        if (path.is_dir() and any(path.glob("*.py"))) or path.suffix == ".py"
    }
    assert drawn == there - {"__init__.py", "__main__.py"}
    for line in lines:
        if not line.startswith("  "):
            assert (root / line.split()[0]).is_dir()
