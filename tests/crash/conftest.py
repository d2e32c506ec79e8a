"""No waiting for the disk: SIGKILL does not need it, and `power` says what is lost without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from denspi.index import directory


@pytest.fixture(autouse=True, scope="session")
def _no_fsync() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        yield
