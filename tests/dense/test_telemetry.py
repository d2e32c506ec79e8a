"""onnxruntime tells nobody that it runs; where it does, traces lie in the temporary or the home folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_the_runtime_reports_to_nobody(tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment = inherited | {
        "TMPDIR": str(tmp_path),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    program = "import denspi.dense.onnx_encoder, time; time.sleep(0.5)"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []
