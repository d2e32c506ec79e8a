"""No waiting for the disk; what fsync is for is tested in tests/crash."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from denspi.index import directory


@pytest.fixture(autouse=True, scope="session")
def _no_fsync() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        yield
