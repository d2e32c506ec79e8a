"""``python -m denspi.training``: what ``denspi train`` does, on machines that lack typer and rich."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from denspi.errors import DenspiError, StoppedError
from denspi.training.command import train


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as ``denspi`` has it."""
        self.exit(2, f"denspi: {message}. See '{self.prog} --help'.\n")


def main() -> int:
    """Parse, run, and turn deliberate errors into one line."""
    parser = _Parser(prog="python -m denspi.training", description="Train a model.", allow_abbrev=False)
    parser.add_argument("config", type=Path, metavar="CONFIG.toml", help="what to train: docs/training.md")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="each stage gets a folder here"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run that the output folder holds"
    )
    given = parser.parse_args()
    try:
        train(given.config, given.output, given.set, given.resume)
    except DenspiError as error:
        print("denspi: " + " ".join(str(error).split()), file=sys.stderr)
        return 130 if isinstance(error, StoppedError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
