"""How fast a phrase model trains, and what batches of similar lengths save beside batches by chance.

Whole steps, from paragraphs to new weights, over the same paragraphs put together in both ways, in turns, so
that a busy machine slows them alike. Padding is counted over a whole epoch; none at all is the bound.

    python benchmarks/training.py --encoder encoders/minilm-l6 --data ../shared/data/squad/train-v1.1.json.gz
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from denspi.corpus.squad import read_squad
from denspi.dense.backbone import load_backbone
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.text.tokens import Tokenizer
from denspi.training.examples import Limits, make_examples
from denspi.training.phrase_task import PhraseTask
from denspi.training.settings import PhraseLoss, PhraseStage
from machine import machine

STAGE = PhraseStage(loss=PhraseLoss(in_batch=0.5), batch=24, article_group=4)
ROUNDS = 3
Batches = list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", type=Path, required=True, help="an encoder folder")
    parser.add_argument("--data", type=Path, required=True, help="a file in SQuAD's layout")
    parser.add_argument("--output", type=Path, default=Path("docs/results/training.json"))
    parser.add_argument("--steps", type=int, default=16, help="steps in a round")
    arguments = parser.parse_args()
    tokenizer = Tokenizer(arguments.encoder / "tokenizer.json")
    examples = make_examples(read_squad(arguments.data), tokenizer, Limits())
    model = PhraseModel(load_backbone(str(arguments.encoder)), PhraseSettings(question_pooling="mean"))
    task = PhraseTask(model.train(), tokenizer, examples, [], STAGE, seed=1)
    lengths = np.array([len(example.tokens) + 2 for example in task.examples])
    epoch = task.order(0)
    ways = {"similar lengths": epoch[: arguments.steps], "by chance": by_chance(epoch[: arguments.steps])}
    results: dict[str, Any] = {
        "command": f"python benchmarks/training.py --encoder {arguments.encoder.name}"
        f" --data {arguments.data.name} --steps {arguments.steps}",
        "machine": machine(("numpy", "torch", "transformers"), torch.get_num_threads()),
        "steps": arguments.steps,
        "padding": {
            "similar lengths": round(padding(epoch, lengths), 3),
            "by chance": round(padding(by_chance(epoch), lengths), 3),
        },
    }
    optimizer = torch.optim.AdamW(model.parameters())
    step(task, optimizer, ways["by chance"][0])  # warm
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, batches in ways.items():
            began = time.perf_counter()
            for batch in batches:
                step(task, optimizer, batch)
            seconds[name].append(time.perf_counter() - began)
    paragraphs = sum(map(len, epoch[: arguments.steps]))
    results["paragraphs_per_s"] = {
        name: round(paragraphs / float(np.median(each)), 2) for name, each in seconds.items()
    }
    ratios = np.array(seconds["by chance"]) / np.array(seconds["similar lengths"])
    results["times_as_fast"] = round(float(np.median(ratios)), 2)
    results["machine"]["load_average_at_end"] = os.getloadavg()
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def by_chance(batches: Batches) -> Batches:
    """The same paragraphs, whatever their lengths."""
    items = np.random.default_rng(0).permutation(np.concatenate(batches)).tolist()
    return [items[at : at + STAGE.batch] for at in range(0, len(items), STAGE.batch)]


def padding(batches: Batches, lengths: np.ndarray[Any, Any]) -> float:
    """The share of all pieces that are none."""
    computed = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1 - sum(int(lengths[batch].sum()) for batch in batches) / computed


def step(task: PhraseTask, optimizer: torch.optim.Optimizer, batch: list[int]) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = task.loss(task.collate(batch, 0))
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(task.model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
