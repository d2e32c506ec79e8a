"""What each of two processes runs in `test_run`: a whole run through `Run`; every rank keeps its weights.

python -m torch.distributed.run --nproc_per_node 2 tests/training/two_ranks.py CONFIG OUTPUT
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from denspi.settings import load_settings
from denspi.training import run
from denspi.training.settings import RunSettings

if __name__ == "__main__":
    config, output = map(Path, sys.argv[1:])
    torch.set_num_threads(1)
    fit = run.fit

    def fit_and_keep(task, *arguments):  # type: ignore[no-untyped-def]
        scores = fit(task, *arguments)
        torch.save(task.model.state_dict(), output / f"rank-{dist.get_rank()}.pt")
        return scores

    run.fit = fit_and_keep
    run.Run(load_settings(config, RunSettings), output).run()
    dist.destroy_process_group()
