"""No file of the repository names a folder of one particular machine or the host of a package registry."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

# Not ours; neither is any folder whose name starts with a dot, but for .ci.
OUTSIDE = {"build", "dist", "runs", "__pycache__"}
MACHINE_PATH = re.compile(r"(?<![\w.~$)}>-])/(?:work|root|home|Users|mnt)/")
REGISTRY = re.compile(r"\b(?:pypi\.org|pythonhosted\.org|download\.pytorch\.org|anaconda\.(?:org|com))\b")


def test_no_machine_path_and_no_registry_host(root: Path) -> None:
    found = []
    for path, text in _text_files(root):
        for number, line in enumerate(text.splitlines(), start=1):
            if MACHINE_PATH.search(line) or REGISTRY.search(line):
                found.append(f"{path.relative_to(root)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


def test_the_patterns_find_what_they_should() -> None:
    assert MACHINE_PATH.search("see /" + "home/me/notes.txt")
    assert not MACHINE_PATH.search("https://example.org/" + "home/index.html and ../" + "work/x")
    assert REGISTRY.search("https://" + "pypi." + "org/simple")


def _text_files(root: Path) -> Iterator[tuple[Path, str]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in OUTSIDE and (name[0] != "." or name == ".ci")]
        for path in (Path(folder, name) for name in names if name != ".git"):  # a file, in a worktree
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # not text
