"""The LSTM baseline: padding changes nothing, folders come back whole, and what it cannot do it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.tiny import save_tokenizer

from denspi.dense.export import export_phrase_model, export_reader_model
from denspi.dense.lstm import LstmBackbone, LstmSettings, make_lstm
from denspi.dense.model import PhraseModel, PhraseSettings, ReaderModel
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.dense.models import open_encoder
from denspi.errors import ModelError

SMALL = LstmSettings(embedding_dim=12, hidden_dim=16, layers=2, heads=2)


@pytest.fixture
def backbone() -> LstmBackbone:
    torch.manual_seed(0)
    return LstmBackbone(SMALL, vocab_size=120).eval()


@pytest.fixture
def saved(backbone: LstmBackbone, tmp_path: Path) -> Path:
    save_tokenizer(tmp_path / "tokenizer.json")
    save_model(PhraseModel(backbone, PhraseSettings(2)), tmp_path / "tokenizer.json", tmp_path / "model")
    return tmp_path / "model"


def test_padding_and_neighbours_change_nothing(backbone: LstmBackbone) -> None:
    short, long = torch.tensor([[2, 7, 8, 3]]), torch.tensor([[2, 9, 8, 7, 6, 5, 3]])
    ids, mask = torch.zeros((2, 9), dtype=torch.long), torch.zeros((2, 9), dtype=torch.long)
    for row, text in enumerate((short, long)):
        ids[row, : text.shape[1]], mask[row, : text.shape[1]] = text[0], 1
    together = backbone(ids, mask, torch.zeros_like(ids))
    assert together.shape == (2, 9, backbone.dim)
    for row, text in enumerate((short, long)):
        alone = backbone(text, torch.ones_like(text), torch.zeros_like(text))
        torch.testing.assert_close(together[row, : text.shape[1]], alone[0], atol=1e-6, rtol=0)


def test_it_reads_both_ways_and_knows_types(backbone: LstmBackbone) -> None:
    ids = torch.tensor([[2, 7, 8, 3]])
    mask, types = torch.ones_like(ids), torch.zeros_like(ids)
    before = backbone(ids, mask, types)
    for place in (1, 2):
        changed = ids.clone()
        changed[0, place] = 9
        moved = (backbone(changed, mask, types) - before).abs().amax(-1)[0]
        assert (moved > 1e-5).all()
    assert not torch.allclose(backbone(ids, mask, types + 1), before)


def test_a_folder_comes_back_whole(saved: Path, backbone: LstmBackbone) -> None:
    loaded = load_phrase_model(saved)
    assert isinstance(loaded.backbone, LstmBackbone)
    assert loaded.backbone.settings == SMALL
    for name, weight in backbone.state_dict().items():
        assert torch.equal(loaded.backbone.state_dict()[name], weight)
    assert make_lstm(backbone.record()).record() == backbone.record()
    (paragraph,) = open_encoder(saved).encode_paragraphs(["ada lives in oslo ."])
    assert len(paragraph) == 5


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"hidden_dim": 18}, "weights do not fit model.json"),
        ({"hidden_dim": 15}, "hidden_dim is even and a multiple of heads"),
        ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ({"depth": 3}, "unknown key 'depth'"),
    ],
)
def test_a_record_that_does_not_fit(saved: Path, changes: dict[str, object], line: str) -> None:
    record = json.loads((saved / "model.json").read_text())
    record["encoder"] |= changes
    (saved / "model.json").write_text(json.dumps(record))
    with pytest.raises(ModelError) as caught:
        load_phrase_model(saved)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_it_is_not_exported(saved: Path, backbone: LstmBackbone, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="model: has no transformers encoder and cannot be exported"):
        export_phrase_model(saved, tmp_path / "exported")
    save_model(ReaderModel(backbone), saved / "tokenizer.json", tmp_path / "reader")
    with pytest.raises(ModelError, match="reader: has no transformers encoder"):
        export_reader_model(tmp_path / "reader", tmp_path / "exported")


def test_sizes_that_make_no_sense() -> None:
    for wrong in ({"hidden_dim": 6, "heads": 4}, {"layers": 0}, {"dropout": 1.0}):
        with pytest.raises(ValueError, match=r"hidden_dim|positive|dropout"):
            LstmSettings(**wrong)


def test_mixed_precision_trains_it(backbone: LstmBackbone) -> None:
    """As on a GPU: the recurrence stays in float32, and every weight gets a gradient."""
    ids = torch.tensor([[2, 7, 8, 3], [2, 9, 3, 0]])
    mask = (ids > 0).long()
    exact = backbone(ids, mask, torch.zeros_like(ids))
    with torch.autocast("cpu", torch.bfloat16):
        hidden = backbone.train()(ids, mask, torch.zeros_like(ids))
        backbone.eval()
        again = backbone(ids, mask, torch.zeros_like(ids))
    torch.testing.assert_close(again.float(), exact, atol=0.05, rtol=0)
    torch.autograd.backward(hidden.float().square().mean() + hidden.float()[:, :, 0].mean())
    assert all(weights.grad is not None for weights in backbone.parameters())
