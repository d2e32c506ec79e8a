"""One process or several: which device this one trains on, who speaks, and how they wait for each other."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist


def choose_device() -> torch.device:
    """One process per GPU under torchrun, else the one GPU, else the CPU."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        torch.backends.cuda.matmul.allow_tf32 = True
        # It plans anew for every shape, and ours vary with each batch.
        torch.backends.cuda.enable_cudnn_sdp(False)
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


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
