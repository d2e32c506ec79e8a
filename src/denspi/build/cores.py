"""How many cores there are to work with."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores that this process may run on; where the system cannot say, all that it has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
