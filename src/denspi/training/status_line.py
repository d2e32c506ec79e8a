"""How far something is, on standard error: on a terminal one line that changes, else a line now and then.

Needs nothing but Python: the machines that train have no rich. Knows nothing of training.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType


class StatusLine:
    """On a terminal a new state every second; elsewhere after each tenth of the work, or a minute."""

    TERMINAL_SECONDS = 1.0
    FILE_SECONDS = 60.0

    def __init__(self, is_quiet: bool = False) -> None:
        self.is_quiet = is_quiet
        self.is_terminal = not is_quiet and sys.stderr.isatty()
        self.shown_at, self.tenth = time.monotonic(), -1
        self.is_open = False  # the cursor stands at the end of a line that will be written over

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What comes next, an error too, starts on a line of its own."""
        if self.is_open:
            self._print("", end="\n")
            self.is_open = False

    def is_due(self, share: float) -> bool:
        """Whether it is time to `show` how things are after this share of the work."""
        if self.is_quiet:
            return False
        if self.tenth < 0:  # where a resumed run starts
            self.tenth = int(share * 10)
        waited = time.monotonic() - self.shown_at
        if self.is_terminal:
            return waited >= self.TERMINAL_SECONDS
        return waited >= self.FILE_SECONDS or int(share * 10) > self.tenth

    def show(self, line: str, share: float) -> None:
        """Show a state that the next one replaces."""
        if self.is_terminal:
            self.pass_by(line)
        elif not self.is_quiet:
            self._print(line, end="\n")
        self.shown_at, self.tenth = time.monotonic(), int(share * 10)

    def pass_by(self, line: str) -> None:
        """Show on a terminal what is not worth a line elsewhere."""
        if self.is_terminal:
            self._print(f"\r\033[K{_cut(line)}", end="")
            self.is_open = True

    def keep(self, line: str) -> None:
        """Show a line that stays, in place of the passing one."""
        if not self.is_quiet:
            self._print(f"\r\033[K{line}" if self.is_open else line, end="\n")
            self.is_open = False

    def _print(self, text: str, end: str) -> None:
        print(text, end=end, file=sys.stderr, flush=True)


def _cut(line: str) -> str:
    """As much as fits: a line that wraps cannot be written over."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return line[: (columns or 80) - 1]
