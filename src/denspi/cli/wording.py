"""Numbers and texts as people read them."""

from __future__ import annotations

import re
import shutil
import textwrap

import typer

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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


def without_controls(text: str) -> str:
    """`text` that a stranger may have written, with a space for whatever a terminal would obey."""
    return _CONTROL.sub(" ", text)


def say_merge_stopped(reason: str) -> None:
    """Ctrl-C, or a full disk, when the change was already there."""
    why = f" ({reason})" if reason else ""
    typer.echo(
        f"denspi: stopped while merging{why}; the change is committed, a later one will merge", err=True
    )


def say_given_up(documents: int) -> None:
    """What an interrupted command had encoded is lost by another change: hours of work, perhaps."""
    if documents:
        given_up = f"gave up {counted(documents, 'document')} that an interrupted command had written"
        typer.echo(f"denspi: {given_up}; run that one again to have them", err=True)


def print_wrapped(text: str, indent: str = "", marked: str = "") -> None:
    """Print `text` in lines that fit the terminal, with the first `marked` in it in colour."""
    width = min(100, shutil.get_terminal_size().columns)
    lines = textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    if marked:
        across_lines = r"\s+".join(re.escape(word) for word in marked.split())
        lines = re.sub(
            across_lines, lambda found: typer.style(found[0], fg="green", bold=True), lines, count=1
        )
    typer.echo(lines)
