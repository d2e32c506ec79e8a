"""``python -m denspi.training CONFIG.toml --output DIR``: train where only torch and transformers are installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from denspi.errors import DenspiError
from denspi.settings import load_settings
from denspi.training.run import Run
from denspi.training.settings import RunSettings


def main() -> int:
    """Parse, run, and turn deliberate errors into one line."""
    parser = argparse.ArgumentParser(prog="python -m denspi.training")
    parser.add_argument("config", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    arguments = parser.parse_args()
    try:
        Run(load_settings(arguments.config, RunSettings, arguments.set), arguments.output).run()
    except DenspiError as error:
        print(f"denspi: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
