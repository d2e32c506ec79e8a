"""The ``denspi`` command, and ``python -m denspi``. While it loads, too, Ctrl-C is one line."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Load the command line and run it."""
    try:
        from denspi import cli
    except KeyboardInterrupt:
        print("denspi: interrupted", file=sys.stderr)
        sys.exit(130)  # cli.EXIT_INTERRUPTED
    cli.main()


if __name__ == "__main__":
    main()
