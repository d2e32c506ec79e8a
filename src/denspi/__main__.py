"""``python -m denspi``: the same as the ``denspi`` command."""

from denspi.cli import main

if __name__ == "__main__":
    main()
