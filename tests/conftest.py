"""One hypothesis profile for all tests: the same examples on every run, and no deadline on a busy machine.

Also where the evaluation data is: the variable DATA, by default the folder beside the repository.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("denspi", derandomize=True, deadline=None)
settings.load_profile("denspi")

# A shell starts what it puts in the background with Ctrl-C ignored, and so would be every process that a test
# interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the evaluation data; a test that asks for it is skipped where there is none."""
    folder = ROOT / os.environ.get("DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip(f"no evaluation data at {folder}; name the folder with DATA=...")
    return folder
