"""The public names are the documented ones, and every module says what it owns."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import denspi


def test_all_matches_the_documented_names(root: Path) -> None:
    page = (root / "docs" / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)
    assert sorted(documented) == sorted(denspi.__all__)


def test_every_exported_name_is_importable(root: Path) -> None:
    for path, tree in _modules(root):
        if any(_assigns_all(node) for node in tree.body):
            module = importlib.import_module(_dotted(root, path))
            missing = [name for name in module.__all__ if not hasattr(module, name)]
            assert not missing, f"{path}: __all__ names what is not there: {missing}"


def test_every_module_has_a_docstring(root: Path) -> None:
    silent = [str(path.relative_to(root)) for path, tree in _modules(root) if not ast.get_docstring(tree)]
    assert not silent, f"modules without a docstring: {silent}"


def _modules(root: Path) -> list[tuple[Path, ast.Module]]:
    paths = sorted((root / "src" / "denspi").rglob("*.py"))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def _dotted(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root / "src").with_suffix("").parts).removesuffix(".__init__")


def _assigns_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
    )
