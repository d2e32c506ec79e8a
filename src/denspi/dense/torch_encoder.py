"""The phrase model as a torch runtime: the GPU's path, and the oracle of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from denspi.dense.encoder import Ids, Layout, PhraseEncoder, WindowSettings
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.text.tokens import Tokenizer
from denspi.vectors import Floats


def layout_of(model: PhraseModel) -> Layout:
    """The columns that a model's rows have."""
    s: PhraseSettings = model.settings
    return Layout(model.vector_dim, s.coherency_dim, s.coherency == "product", s.question_pooling == "mean")


class TorchRuntime:
    """Runs a `PhraseModel` where its weights are; bfloat16 on a GPU if asked."""

    def __init__(self, model: PhraseModel, pad_id: int, use_bfloat16: bool = False) -> None:
        self.model, self.pad_id, self.use_bfloat16 = model, pad_id, use_bfloat16
        self.layout = layout_of(model)
        self.max_pieces = model.backbone.max_pieces

    @torch.no_grad()
    def rows(self, framed: Sequence[Ids], is_question: bool) -> list[Floats]:
        """Inputs of similar length are padded together, at most some 16,000 pieces at a time."""
        device = self.model.no_answer_bias.device
        results: list[Floats] = [np.empty(0, np.float32)] * len(framed)
        order = sorted(range(len(framed)), key=lambda n: len(framed[n]))
        while order:
            longest = len(framed[order[-1]])
            count = max(1, 16384 // longest)
            chosen, order = order[-count:], order[:-count]
            ids = np.full((len(chosen), longest), self.pad_id, np.int64)
            mask = np.zeros((len(chosen), longest), np.int64)
            for row, n in enumerate(chosen):
                ids[row, : len(framed[n])], mask[row, : len(framed[n])] = framed[n], 1
            with torch.autocast(device.type, torch.bfloat16, enabled=self.use_bfloat16):
                found = self.model.rows(
                    torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device), is_question
                )
            array = found.float().cpu().numpy()
            for row, n in enumerate(chosen):
                results[n] = array[row, : len(framed[n])]
        return results


def torch_encoder(
    model: PhraseModel,
    tokenizer: Tokenizer,
    settings: WindowSettings | None = None,
    use_bfloat16: bool = False,
) -> PhraseEncoder:
    """An encoder over a torch model."""
    runtime = TorchRuntime(model, tokenizer.pad_id, use_bfloat16)
    carried = model.filter_thresholds, model.quantizer, model.calibration, model.compact
    return PhraseEncoder(tokenizer, runtime, settings, *carried)
