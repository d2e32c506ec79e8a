"""``denspi plan``: what an index of so many words will take, by `denspi.plan`. Heavy imports stay inside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from denspi.cli.wording import counted, size_shown

if TYPE_CHECKING:
    from denspi.plan.request import PlannedIndex


def plan_command(
    words: Annotated[
        int, typer.Option("--words", metavar="N", min=1, help="Words of the collection.", show_default=False)
    ],
    model: Annotated[
        str, typer.Option("--model", metavar="small|DIR", help="A packaged model, or a model folder.")
    ] = "small",
    precision: Annotated[
        str, typer.Option("--precision", metavar="int8|compact", help="How vectors are stored.")
    ] = "int8",
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="X",
            help="Words that are encoded in a second, instead of measuring it here.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Say what disk, memory and time an index of N words takes on this machine."""
    from denspi.plan import plan_index

    planned = plan_index(words, model, precision, rate)
    if as_json:
        print(json.dumps(planned.as_json(), ensure_ascii=False, indent=2))
    else:
        _print_plan(planned)


def _print_plan(planned: PlannedIndex) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    plan, console = planned.plan, Console(highlight=False)
    about = Table(box=None, show_header=False)
    about.add_row("index", f"{counted(plan.words, 'word')}, model {planned.model}, {planned.precision}")
    about.add_row("disk", f"{size_shown(plan.disk_bytes)} ({plan.disk_bytes / plan.words:.1f} bytes a word)")
    about.add_row("", f"{size_shown(plan.building_disk_bytes)} while it is built")
    about.add_row("memory", f"{size_shown(plan.build_memory_bytes)} to build it")
    about.add_row(
        "", f"{size_shown(plan.search_memory_bytes)} to ask it; the rest of it stays on disk, or in"
    )
    about.add_row("", "the system's file cache as far as there is room")
    at_rate = f"{planned.words_per_second:,.0f} words/s on {counted(planned.processes, 'core')}"
    about.add_row("time", f"{duration_shown(plan.build_seconds)} to build it ({at_rate})")
    console.print(about)
    table = Table("component", box=box.SIMPLE)
    table.add_column("bytes", justify="right")
    table.add_column("bytes a word", justify="right")
    for name, size in plan.bytes_by_component.items():
        table.add_row(name, f"{size:,}", f"{size / plan.words:.2f}")
    console.print(table)
    for ground in planned.grounds:
        typer.echo(ground)


def duration_shown(seconds: float) -> str:
    """``12 s``, ``4 min``, ``3.5 hours``, ``12 days``: as exact as a plan can be."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            amount = seconds / length
            return f"{amount:,.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    return f"{seconds:.0f} s"
