"""What each of two processes runs in `test_run`: a whole run through `Run`; every rank keeps its weights.

python -m torch.distributed.run --nproc_per_node 2 tests/training/two_ranks.py CONFIG OUTPUT [STEPS]

With STEPS, both are interrupted once after so many steps, and then go on.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from denspi.settings import load_settings
from denspi.training import run
from denspi.training.phrase_task import PhraseTask
from denspi.training.settings import RunSettings

if __name__ == "__main__":
    config, output = map(Path, sys.argv[1:3])
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    torch.set_num_threads(1)
    fit, loss = run.fit, PhraseTask.loss

    def fit_and_keep(task, *arguments):  # type: ignore[no-untyped-def]
        scores = fit(task, *arguments)
        torch.save(task.model.state_dict(), output / f"rank-{dist.get_rank()}.pt")
        return scores

    def interrupted(task, batch):  # type: ignore[no-untyped-def]
        global steps
        steps -= 1
        if steps == -1:
            raise KeyboardInterrupt
        return loss(task, batch)

    run.fit = fit_and_keep
    settings = load_settings(config, RunSettings)
    if steps > 0:
        PhraseTask.loss = interrupted  # type: ignore[method-assign]
        try:
            run.Run(settings, output).run()
        except KeyboardInterrupt:
            dist.barrier()  # the first process may still be writing the checkpoint
        else:
            raise AssertionError("was not interrupted")
    run.Run(settings, output).run()
    dist.destroy_process_group()
