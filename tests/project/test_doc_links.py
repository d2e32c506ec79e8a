"""Every relative link in the documents leads to a file, and every anchor to a heading."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", flags=re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]*`")


def test_links_resolve(root: Path) -> None:
    broken = []
    for document in _documents(root):
        for target in _links(document.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (document.parent / unquote(path)).resolve() if path else document
            if not file.exists():
                broken.append(f"{document.relative_to(root)}: {target} (no such file)")
            elif anchor and anchor not in _anchors(file.read_text(encoding="utf-8")):
                broken.append(f"{document.relative_to(root)}: {target} (no such heading)")
    assert not broken, "\n".join(broken)


def test_every_document_is_in_the_index(root: Path) -> None:
    linked = set(_links((root / "docs" / "README.md").read_text(encoding="utf-8")))
    tables = (root / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    linked |= {f"results/{name}" for name in _links(tables)}
    pages = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")}
    missing = sorted(pages - linked - {"README.md"})
    assert not missing, f"docs/README.md does not link: {missing}"


@pytest.mark.parametrize(
    ("heading", "anchor"), [("## What `it` does, today", "what-it-does-today"), ("# A/B - C", "ab---c")]
)
def test_anchors(heading: str, anchor: str) -> None:
    assert _anchors(f"{heading}\n") == {anchor}


def test_links_in_code_are_not_links() -> None:
    assert _links("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n") == ["b.md"]


def _documents(root: Path) -> list[Path]:
    return [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]


def _links(markdown: str) -> list[str]:
    return LINK.findall(CODE_SPAN.sub("", FENCE.sub("", markdown)))


def _anchors(markdown: str) -> set[str]:
    """Anchors as the usual Markdown viewers make them from headings."""
    headings = re.findall(r"^#{1,6}\s+(.+?)\s*#*$", FENCE.sub("", markdown), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
