"""``denspi train``: hands its options to `denspi.training.command`, which loads torch when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train_command(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.toml", help="What to train: data, encoder and stages.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", metavar="DIR", help="Each stage gets a folder here.", show_default=False),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; may be given more than once."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that the output folder holds.")
    ] = False,
) -> None:
    """Train a reader or a phrase model, in the stages that the configuration names."""
    from denspi.training.command import train

    train(config, output, overrides or (), is_resumed=resume)
