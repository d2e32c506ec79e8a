"""Recorded graphs give the gradients of the plain encoder. Needs a GPU; elsewhere it is skipped."""

from pathlib import Path

import pytest
import torch
from tests.tiny import save_encoder

from denspi.dense.backbone import load_backbone
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.training.graphs import GraphReplay


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_replayed_gradients_are_the_plain_ones(tmp_path: Path) -> None:
    save_encoder(tmp_path / "encoder")
    backbone = load_backbone(str(tmp_path / "encoder")).cuda().train()
    for module in backbone.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model = PhraseModel(backbone, PhraseSettings(coherency_dim=4)).cuda().train()

    def gradients(step: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(step)
        ids = torch.randint(4, 60, (6, 20 + step), device="cuda")
        mask = torch.ones_like(ids)
        mask[0, 9:] = 0
        model.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            paragraphs, questions = model.paragraphs(ids, mask), model.questions(ids, mask)
            scores = torch.einsum("qd,pwd->qpw", questions.start, paragraphs.start)
        scores.float().logsumexp(2).sum().backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    plain = [gradients(step) for step in range(4)]
    backbone.replay = GraphReplay(backbone)
    for _ in range(2):
        for step in range(4):
            for name, gradient in gradients(step).items():
                expected = plain[step][name]
                assert (gradient - expected).norm() <= 0.05 * expected.norm() + 1e-5, name
