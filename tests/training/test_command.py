"""When an output folder may be used, and how a run ends that does not come to its end."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from denspi.errors import DenspiError, InputError, MissingExtraError, SettingsError, StoppedError, WorkerError
from denspi.training import __main__ as module
from denspi.training import command, run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text('data = "facts.json"\nencoder = "encoder"\n[reader]\n')
    return path


class FakeRun:
    """Stands in for `Run`: remembers what it was given, and raises what the test wants."""

    error: BaseException | None = None
    outputs: list[Path]

    def __init__(self, settings: Any, output: Path) -> None:
        self.outputs.append(output)

    def run(self) -> None:
        if self.error:
            raise self.error


@pytest.fixture
def fake_run(monkeypatch: pytest.MonkeyPatch) -> type[FakeRun]:
    fresh = type("Fresh", (FakeRun,), {"outputs": []})
    monkeypatch.setattr(run, "Run", fresh)
    return fresh


@pytest.mark.parametrize("trace", ["log.jsonl", "checkpoint.pt", "scores.json"])
def test_a_folder_with_a_run_needs_resume(
    config: Path, tmp_path: Path, fake_run: type[FakeRun], trace: str
) -> None:
    output = tmp_path / "out"
    (output / "phrase").mkdir(parents=True)
    (output / "phrase" / trace).touch()
    with pytest.raises(InputError, match=r"out: already holds a run \(phrase\); add --resume"):
        command.train(config, output)
    assert fake_run.outputs == []
    command.train(config, output, is_resumed=True)
    assert fake_run.outputs == [output]


def test_a_folder_with_anything_else_is_used(config: Path, tmp_path: Path, fake_run: type[FakeRun]) -> None:
    (tmp_path / "notes.txt").touch()
    command.train(config, tmp_path)
    command.train(config, tmp_path / "new" / "folder", is_resumed=True)  # nothing to resume is no mistake
    assert fake_run.outputs == [tmp_path, tmp_path / "new" / "folder"]
    assert not (tmp_path / "new").exists()


def test_an_output_that_cannot_be_written_is_refused_at_once(
    config: Path, tmp_path: Path, fake_run: type[FakeRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"run\.toml is not a folder"):
        command.train(config, config / "out")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=r"out: cannot be the output, .* is not writable"):
        command.train(config, tmp_path / "out")
    assert fake_run.outputs == []


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (KeyboardInterrupt(), StoppedError, "interrupted; go on with the same command and --resume"),
        (
            OSError(errno.ENOSPC, "No space left on device", "log.jsonl"),
            InputError,
            "log.jsonl: No space left on device; once that is put right, go on with --resume",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), InputError, "out: No space left on device;"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/tmp/x/model.onnx", None, "out/model.onnx"),
            InputError,
            "out/model.onnx: No space left on device;",  # a copy that could be read, and not be written
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB\nand much advice"),
            SettingsError,
            "the GPU's memory does not suffice; set graphs = false or run fewer at a time, and go on with",
        ),
        (
            RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. "),
            WorkerError,
            "a process that prepares batches has died, perhaps for want of memory; lower loop.workers,",
        ),
    ],
)
def test_how_a_run_ends(
    config: Path,
    tmp_path: Path,
    fake_run: type[FakeRun],
    error: BaseException,
    kind: type[DenspiError],
    line: str,
) -> None:
    fake_run.error = error
    with pytest.raises(kind) as raised:
        command.train(config, tmp_path / "out")
    assert line in str(raised.value)


def test_a_bug_is_not_hidden(config: Path, tmp_path: Path, fake_run: type[FakeRun]) -> None:
    for bug in (ZeroDivisionError("division by zero"), RuntimeError("index out of range")):
        fake_run.error = bug
        with pytest.raises(type(bug), match=str(bug)):
            command.train(config, tmp_path / "out")


@pytest.mark.parametrize("name", ["torch", "transformers", "safetensors"])
def test_without_the_extra_one_line_says_so(config: Path, tmp_path: Path, name: str) -> None:
    """In a process of its own: here the modules are loaded already."""
    code = (
        "import sys; sys.modules[sys.argv.pop(1)] = None; from denspi.training.__main__ import main; main()"
    )
    arguments = [sys.executable, "-c", code, name, str(config), "--output", str(tmp_path / "out")]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120).stderr
    assert said == f"denspi: {MissingExtraError('training', 'train')}\n"


def test_bad_use_of_the_module_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "run.toml"])
    with pytest.raises(SystemExit, match="2"):
        module.main()
    said = "the following arguments are required: --output. See 'python -m denspi.training --help'."
    assert capsys.readouterr().err == f"denspi: {said}\n"


def test_a_full_disk_keeps_the_checkpoint_before(tmp_path: Path) -> None:
    """A limit on file sizes stands in for a full disk; it needs a process of its own."""
    code = """
import resource, signal, sys, torch
from pathlib import Path
from denspi.training.checkpoint import Checkpoint
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
model = torch.nn.Linear(300, 300)
checkpoint = Checkpoint(Path(sys.argv[1]), {"model": model}, {}, torch.device("cpu"))
checkpoint.save(1)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.save(2)
except OSError as error:
    print(error.strerror, checkpoint.restore())
"""
    path = tmp_path / "checkpoint.pt"
    arguments = [sys.executable, "-c", code, str(path)]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120).stdout
    assert printed == "File too large 1\n"
    assert list(tmp_path.iterdir()) == [path]
