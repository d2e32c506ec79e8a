"""What is seen of a run: one line on a terminal, a line now and then elsewhere, never silence."""

import io
import json
import re
import sys
import time
from pathlib import Path

import pytest
import torch

from denspi.training.progress import Progress
from denspi.training.status_line import StatusLine


class Screen(io.StringIO):
    """Standard error that is a terminal, or is not."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, steps: int, total: int) -> str:
    """What stands on the screen after `steps` of `total` steps, one validation and an interrupt."""
    screen = Screen(is_terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    progress = Progress(folder, total, is_quiet=False)

    def train() -> None:
        with progress.begin(0):
            for step in range(1, steps + 1):
                progress.step(step, {"loss": torch.tensor(2.0), "a_long_part_of_the_loss": torch.tensor(1.0)})
            progress.validating(1)
            progress.scores(1, steps, {"em": 61.5})
            progress.step(steps + 1, {"loss": torch.tensor(3.0)})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    return screen.getvalue()


def test_a_terminal_has_one_line_that_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StatusLine, "TERMINAL_SECONDS", 0.0)
    shown = told(tmp_path, monkeypatch, is_terminal=True, steps=7, total=3000)
    states = shown.split("\r\033[K")
    assert re.fullmatch(r"step 7/3,000  [\d.]+ steps/s  0:0\d:\d\d left  loss 2\.000.*", states[7])
    assert states[8:10] == ["epoch 1: validating", "epoch 1: em 61.5\n"]
    assert all(len(state.rstrip("\n")) < 80 for state in states)  # what wraps cannot be written over
    assert shown.endswith("\n")  # whatever says why it stopped has a line of its own
    assert shown.count("\n") == 2


@pytest.mark.parametrize(
    ("seconds", "pace"), [(4.0, "2.5 steps/s"), (10.0, "1.0 steps/s"), (25.0, "2.5 s a step")]
)
def test_slow_steps_have_a_pace_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, pace: str
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    screen = Screen(is_terminal=False)
    monkeypatch.setattr(sys, "stderr", screen)
    progress = Progress(tmp_path, 20, is_quiet=False)
    with progress.begin(0):
        for step in range(1, 11):
            clock[0] = seconds * step / 10
            progress.step(step, {"loss": torch.tensor(2.0)})
    last = screen.getvalue().splitlines()[-1]
    assert last.startswith(f"step 10/20  {pace}  0:00:{round(seconds):02} left")


def test_a_terminal_is_not_flooded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatusLine, "TERMINAL_SECONDS", 1e9)
    shown = told(tmp_path, monkeypatch, is_terminal=True, steps=100, total=3000)
    assert "step" not in shown


def test_elsewhere_there_is_a_line_for_each_tenth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = told(tmp_path, monkeypatch, is_terminal=False, steps=300, total=1000).splitlines()
    assert [line.split()[1] for line in lines] == ["100/1,000", "200/1,000", "300/1,000", "1:"]
    assert "\033" not in "".join(lines)


def test_elsewhere_there_is_a_line_for_each_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatusLine, "FILE_SECONDS", 0.0)
    lines = told(tmp_path, monkeypatch, is_terminal=False, steps=3, total=1000).splitlines()
    assert [line.split()[1] for line in lines] == ["1/1,000", "2/1,000", "3/1,000", "1:", "4/1,000"]


def test_what_is_shown_changes_nothing_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatusLine, "TERMINAL_SECONDS", 0.0)
    monkeypatch.setattr(Progress, "EVERY", 4)
    progress = Progress(tmp_path, 8, is_quiet=False)
    monkeypatch.setattr(sys, "stderr", Screen(True))
    with progress.begin(0):
        for step in range(1, 9):
            progress.step(step, {"loss": torch.tensor(float(step))})
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(record["step"], record["loss"]) for record in records] == [(4, 2.5), (8, 6.5)]


def test_other_processes_are_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(tmp_path, 1, is_quiet=True)
    with progress.begin(0):
        progress.step(1, {"loss": torch.tensor(1.0)})
    assert capsys.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []
