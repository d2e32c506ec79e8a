"""One process or several: which device this one trains on, who speaks, and how they wait for each other.

Runs that know nothing of each other are kept apart here too.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist

from denspi.errors import SettingsError
from denspi.index.locks import NO_WAIT, Wait, lock_file


def choose_device() -> torch.device:
    """One process per GPU under torchrun, else the one GPU, else the CPU."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        try:
            dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        except ValueError:  # a scheduler's variable; torchrun sets all of them
            raise SettingsError(
                f"WORLD_SIZE is {world}, and what goes with it is not set; start with torchrun, or unset it"
            ) from None
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        torch.backends.cuda.matmul.allow_tf32 = True
        # It plans anew for every shape, and ours vary with each batch.
        torch.backends.cuda.enable_cudnn_sdp(False)
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


@contextlib.contextmanager
def alone_in(folder: Path, wait: Wait = NO_WAIT, doing: str = "training into") -> Iterator[None]:
    """Within the block no other run may write to `folder`; the processes of one run count as one."""
    lock, path = None, folder / ".lock"
    if is_first():
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # some network file systems know no locks: nobody is kept out
            lock = lock_file(path, wait, doing)
    try:
        yield
    finally:
        if lock is not None:
            path.unlink(missing_ok=True)
            lock.release()


def give_back_gpu() -> None:
    """The memory of models that are no longer used, to other processes on the same GPU."""
    gc.collect()  # a model with graphs is in a cycle
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def is_first() -> bool:
    """Whether this process writes and speaks for all."""
    return not dist.is_initialized() or dist.get_rank() == 0


def wait() -> None:
    """Until every process is here: what one of them wrote, the others may read after this."""
    if dist.is_initialized():
        dist.barrier()


def say(line: str) -> None:
    """A line on standard error, once."""
    if is_first():
        print(line, file=sys.stderr, flush=True)
