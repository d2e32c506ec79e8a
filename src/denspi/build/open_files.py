"""How many files this process may have open. Raises the limit, never lowers it, and fails at nothing."""

from __future__ import annotations

import resource
from contextlib import suppress


def allow_open_files() -> None:
    """As many as the system lets us: a build holds each of its segments open until they are merged."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != most:
        with suppress(
            ValueError, OSError
        ):  # some systems promise more than they give: then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
