"""Numbers as people read them."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """``1 document``, ``2,000 documents``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def size_shown(size_bytes: int) -> str:
    """``20.5 kB``, ``91.3 MB``."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
