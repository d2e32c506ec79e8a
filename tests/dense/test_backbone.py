"""Encoders of several families: padding changes nothing, and what is no encoder is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, T5Config, T5Model

from denspi.dense.backbone import load_backbone
from denspi.errors import ModelError

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 50,
    "max_position_embeddings": 66,
    "pad_token_id": 1,
}
DEBERTA = {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}
FAMILIES: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16},
    "bert": {},
    "deberta-v2": DEBERTA,
    "distilbert": {"dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 64},
    "electra": {"embedding_size": 16},
    "modernbert": {"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3},
    "mpnet": {},
    "roberta": {},
}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_do_not_depend_on_padding(tmp_path: Path, family: str, attention: str) -> None:
    """In either form of attention, where the family has both: an export takes the plain one."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **(SMALL | FAMILIES[family]))  # type: ignore[no-untyped-call]
    AutoModel.from_config(config).save_pretrained(tmp_path)  # type: ignore[no-untyped-call]
    backbone = load_backbone(str(tmp_path)).eval()
    if attention == "eager":
        backbone.encoder.set_attn_implementation("eager")
    ids = torch.tensor([[2, 5, 6, 7, 8, 3], [2, 9, 3, 1, 1, 1]])
    mask, types = (ids != 1).long(), torch.zeros_like(ids)
    with torch.no_grad():
        together = backbone(ids, mask, types)
        alone = backbone(ids[1:, :3], mask[1:, :3], types[1:, :3])
        other = backbone(torch.tensor([[2, 10, 3]]), mask[1:, :3], types[1:, :3])
    torch.testing.assert_close(together[1, :3], alone[0], rtol=0, atol=1e-5)
    assert (alone[0, 0] - other[0, 0]).abs().max() > 1e-3  # a piece sees the others


def test_what_is_no_encoder_is_refused(tmp_path: Path) -> None:
    sizes = {"d_model": 32, "d_ff": 64, "num_layers": 1, "num_heads": 2, "d_kv": 16, "vocab_size": 50}
    T5Model(T5Config(**sizes)).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="not an encoder of BERT's kind") as caught:
        load_backbone(str(tmp_path))
    assert "\n" not in str(caught.value)
