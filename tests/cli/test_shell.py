"""The shell around the commands: help, version, how it fails, and what it must not load."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import denspi
from denspi import cli
from denspi.errors import InputError, StoppedError

HEAVY = (
    "numpy",
    "scipy",
    "numba",
    "tokenizers",
    "onnxruntime",
    "onnx",
    "torch",
    "transformers",
    "pypdf",
    "selectolax",
    "rich",
    "matplotlib",
)


@pytest.fixture
def failing_command(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """A command `break` that raises whatever the test puts into the list."""
    raises: list[BaseException] = []
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.command("break")
    def break_command() -> None:
        raise raises[0]

    @app.callback()
    def root() -> None: ...

    monkeypatch.setattr(cli, "app", app)
    return raises


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_the_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 0
    printed = capsys.readouterr().out
    assert "Usage: denspi" in printed
    assert "demo" in printed


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"denspi {denspi.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["corpse"], "denspi: No such command 'corpse'. Did you mean 'corpus'? See 'denspi --help'."),
        (["zzz"], "denspi: No such command 'zzz'. See 'denspi --help'."),
        (["--loud"], "denspi: No such option: --loud. See 'denspi --help'."),
        (["demo", "--loud"], "denspi: No such option: --loud. See 'denspi demo --help'."),
        (["corpus"], "denspi: Missing argument 'PATH'. See 'denspi corpus --help'."),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err == expected + "\n"
    assert captured.out == ""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("notes.txt: no such file;\ncheck the path"), "notes.txt: no such file; check the path"),
        (OSError(errno.ENOSPC, "No space left on device", "out.json"), "out.json: No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
        (typer.Abort(), "stopped"),
    ],
)
def test_what_the_user_can_put_right_is_one_line_and_exit_2(
    error: Exception, line: str, failing_command: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing_command.append(error)
    assert cli.run(["break"]) == 2
    assert capsys.readouterr().err == f"denspi: {line}\n"


def test_an_interrupt_is_one_line_and_exit_130(
    failing_command: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing_command.append(KeyboardInterrupt())
    assert cli.run(["break"]) == 130
    assert capsys.readouterr().err == "denspi: interrupted\n"


def test_an_interrupt_while_it_is_still_loading_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    found = subprocess.run(
        [sys.executable, "-m", "denspi", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "denspi: interrupted\n")


def test_an_interrupt_may_say_how_to_go_on(
    failing_command: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing_command.append(StoppedError("interrupted; add --resume"))
    assert cli.run(["break"]) == 130
    assert capsys.readouterr().err == "denspi: interrupted; add --resume\n"


def test_a_command_chooses_its_exit_code(failing_command: list[BaseException]) -> None:
    failing_command.append(typer.Exit(3))
    assert cli.run(["break"]) == 3


def test_a_bug_is_not_hidden(failing_command: list[BaseException]) -> None:
    failing_command.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.run(["break"])


def test_a_closed_pipe_is_quiet() -> None:
    """As in ``denspi --help | head -0``: the reader is gone before anything is written."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read(); from denspi.cli import main; main()", "--help"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == ""
    assert process.returncode == cli.EXIT_BROKEN_PIPE


def test_python_m_denspi_is_the_same_command() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "denspi", "zzz"], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 2
    assert finished.stderr == "denspi: No such command 'zzz'. See 'denspi --help'.\n"


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["demo", "--help"], ["corpus", "--help"], ["evaluate", "reading", "--help"]],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    program = f"import sys, denspi.cli; denspi.cli.run({arguments}); print(*sys.modules, file=sys.stderr)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in finished.stderr.split()}
    assert loaded.isdisjoint(HEAVY)
