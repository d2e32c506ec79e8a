"""The command that trains, as tests call it: a table of settings becomes a file, arguments an exit code.
And Ctrl-C in the middle."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from denspi.training import __main__ as command

LOOP = {"epochs": 2, "learning_rate": 3e-3, "average": 0.9}


def save_toml(path: Path, table: dict[str, Any]) -> Path:
    def value(v: Any) -> str:
        if isinstance(v, dict):
            return "{" + ", ".join(f"{k} = {value(x)}" for k, x in v.items()) + "}"
        return json.dumps(v)  # strings, numbers and booleans read the same in TOML

    path.write_text("".join(f"{key} = {value(v)}\n" for key, v in table.items()))
    return path


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["denspi.training", *map(str, arguments)])
    return command.main()


def interrupt(patch: pytest.MonkeyPatch, task: Any, after: int) -> None:
    """Ctrl-C in the loss of step `after` + 1."""
    loss, calls = task.loss, 0

    def interrupted(self: Any, batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt
        return loss(self, batch)

    patch.setattr(task, "loss", interrupted)
