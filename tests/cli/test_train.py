"""`denspi train`: its options reach the function that both commands share, and its failures are one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from denspi import cli
from denspi.training import command


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, Path, tuple[str, ...], bool]]:
    found = []

    def train(config: Path, output: Path, overrides: Sequence[str] = (), is_resumed: bool = False) -> None:
        found.append((config, output, tuple(overrides), is_resumed))

    monkeypatch.setattr(command, "train", train)
    return found


def test_options(calls: list[tuple[Path, Path, tuple[str, ...], bool]]) -> None:
    assert cli.run(["train", "run.toml", "--output", "out"]) == 0
    options = ["--set", "seed=2", "--set", "phrase.loop.epochs=1", "--resume"]
    assert cli.run(["train", "run.toml", "--output", "out", *options]) == 0
    places = (Path("run.toml"), Path("out"))
    assert calls == [(*places, (), False), (*places, ("seed=2", "phrase.loop.epochs=1"), True)]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere.toml", "--output", "out"], "nowhere.toml: there is no such file"),
        (["run.toml", "--output", "out"], "run.toml: unknown key 'epochs'; known: "),
        (["run.toml", "--output", "used"], "used: already holds a run (reader); add --resume"),
        (["run.toml", "--output", "run.toml"], "run.toml: cannot be the output, run.toml is not a folder"),
        (["run.toml"], "Missing option '--output'. See 'denspi train --help'."),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    arguments: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text("epochs = 3\n")
    Path("used/reader").mkdir(parents=True)
    Path("used/reader/log.jsonl").touch()
    assert cli.run(["train", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"denspi: {line}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not Path("out").exists()


def test_ctrl_c_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_run", interrupted)
    assert cli.run(["train", "run.toml", "--output", "out"]) == 130
    assert capsys.readouterr().err == "denspi: interrupted; go on with the same command and --resume\n"
