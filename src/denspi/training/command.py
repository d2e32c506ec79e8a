"""What ``denspi train`` and ``python -m denspi.training`` do once they have parsed their options.

Owns when an output folder may be used, and how a run ends that does not come to its end: every way out that
the user can do something about is a `DenspiError` of one line. Loads torch only when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from denspi.errors import InputError, MissingExtraError, SettingsError, StoppedError, WorkerError
from denspi.settings import load_settings

TRACES = ("log.jsonl", "checkpoint.pt", "scores.json")  # any of them in a stage's folder: a run was here


def train(config: Path, output: Path, overrides: Sequence[str] = (), is_resumed: bool = False) -> None:
    """Run the stages of `config`; each override is ``key=value``. A run that is there needs `is_resumed`."""
    try:
        _check_output(output, is_resumed)
        _run(config, output, overrides)
    except KeyboardInterrupt:
        raise StoppedError("interrupted; go on with the same command and --resume") from None
    except BrokenPipeError:  # nobody reads what we say; the caller knows what becomes of that
        raise
    except OSError as error:
        where = error.filename2 or error.filename or output  # of a copy, what could not be written
        finding = f"{where}: {error.strerror or error}"
        raise InputError(f"{finding}; once that is put right, go on with --resume") from error


def _check_output(output: Path, is_resumed: bool) -> None:
    """Refuse at once what would fail, or mix two runs, after minutes of work. Creates nothing."""
    there = next(path for path in (output, *output.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"{output}: cannot be the output, {there} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{output}: cannot be the output, {there} is not writable")
    found = sorted({path.parent.name for name in TRACES for path in output.glob(f"*/{name}")})
    if found and not is_resumed:
        raise InputError(
            f"{output}: already holds a run ({', '.join(found)}); add --resume to go on with it, "
            "or choose another folder"
        )


def _run(config: Path, output: Path, overrides: Sequence[str]) -> None:
    try:
        import torch
        import torch.distributed as dist

        from denspi.training.run import Run
        from denspi.training.settings import RunSettings
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "denspi":
            raise  # a fault of ours, which no installation puts right
        raise MissingExtraError("training", "train") from error
    try:
        Run(load_settings(config, RunSettings, overrides), output).run()
    except torch.OutOfMemoryError as error:
        raise SettingsError(
            "the GPU's memory does not suffice; set graphs = false or run fewer at a time, and go on with "
            "--resume; or lower batch of the stage, or limits"
        ) from error
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):  # torch has no class for it
            raise
        raise WorkerError(
            "a process that prepares batches has died, perhaps for want of memory; lower loop.workers, "
            "and go on with --resume"
        ) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
