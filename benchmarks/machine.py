"""Where and on what a figure was measured: recorded with every result. And how results are written."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def machine(packages: Sequence[str], cores_used: int = 1) -> dict[str, Any]:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "src", "benchmarks", "experiments"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "cpu": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "cores_used": cores_used,
        "load_average_at_start": os.getloadavg(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "commit": commit.stdout.strip() if commit.returncode == 0 else "none yet (working tree)",
        # A figure of code that no commit holds must not pass for one of the commit before it.
        "has_uncommitted_code": bool(changed.stdout.strip()),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def described(about: dict[str, Any]) -> str:
    """One line for a page; wants the load at the end as well."""
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    changes = " with changes that are not committed" if about["has_uncommitted_code"] else ""
    return (
        f"{about['date']}; {about['cpu']}, {about['cores']} cores, {about['cores_used']} used where nothing"
        f" else is said; load average {about['load_average_at_start'][0]:.1f} at the start,"
        f" {about['load_average_at_end'][0]:.1f} at the end; Python {about['python']}, {packages}; commit"
        f" {about['commit']}{changes}."
    )


def write_results(output: Path, results: dict[str, Any], page: str) -> None:
    """The figures as JSON, and beside it the same as a page."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    output.with_suffix(".md").write_text(page, encoding="utf-8")


def percentiles(values: Sequence[float]) -> dict[str, float]:
    return (
        {f"p{share}": round(float(np.percentile(values, share)), 3) for share in (50, 95)} if values else {}
    )


def anonymous_bytes() -> int:
    """Memory of this process that no file stands behind; pages of an index, which can go, do not count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status: no RssAnon; this benchmark needs Linux")
