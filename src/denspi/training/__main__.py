"""``python -m denspi.training CONFIG.toml --output DIR``: training where only torch and transformers are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch.distributed as dist

from denspi.errors import DenspiError
from denspi.settings import load_settings
from denspi.training.run import Run
from denspi.training.settings import RunSettings


def main() -> int:
    """Parse, run, and turn deliberate errors into one line."""
    parser = argparse.ArgumentParser(prog="python -m denspi.training", description=__doc__)
    parser.add_argument("config", type=Path, help="what to train, as docs/training.md says")
    parser.add_argument("--output", type=Path, required=True, help="a folder; its stages are gone on with")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    arguments = parser.parse_args()
    try:
        Run(load_settings(arguments.config, RunSettings, arguments.set), arguments.output).run()
    except DenspiError as error:
        print(f"denspi: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("denspi: interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
