"""The phrase model: sizes of the split, coherency, the ablations, pooling."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import save_encoder

from denspi.dense.backbone import Backbone, load_backbone
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.dense.torch_encoder import TorchRuntime, layout_of
from denspi.text.tokens import Tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "encoder"
    save_encoder(path)
    return path


def make(folder: Path, settings: PhraseSettings) -> PhraseModel:
    second = load_backbone(str(folder)) if settings.independent_encoders else None
    torch.manual_seed(1)
    return PhraseModel(load_backbone(str(folder)), settings, second).eval()


IDS = torch.tensor([[2, 5, 15, 6, 3], [2, 7, 3, 0, 0]])
MASK = (IDS != 0).long()


@pytest.mark.parametrize(
    ("hidden", "coherency_dim", "vector_dim"),
    [(1024, 32, 480), (768, 16, 368), (384, 16, 176), (32, 0, 16), (33, 4, 12)],
)
def test_the_four_way_split(hidden: int, coherency_dim: int, vector_dim: int) -> None:
    """BERT-large's 1024 with 32 gives the paper's 480/480/32/32; an odd size leaves one dimension over."""

    class Encoder(torch.nn.Module):
        config = type(
            "Config", (), {"hidden_size": hidden, "max_position_embeddings": 8, "model_type": "bert"}
        )

        def get_input_embeddings(self) -> torch.nn.Embedding:
            return torch.nn.Embedding(1, hidden)

    settings = PhraseSettings(coherency_dim, "free" if coherency_dim else "none")
    model = PhraseModel(Backbone(Encoder()), settings)
    rows = torch.arange(hidden, dtype=torch.float32)[None]
    sizes = [part.shape[-1] for part in model._split(rows)]
    assert sizes == [vector_dim, vector_dim, coherency_dim, coherency_dim]
    used = torch.cat(list(model._split(rows)), dim=-1)
    assert torch.equal(used, rows[:, : 2 * (vector_dim + coherency_dim)])


@pytest.mark.parametrize(
    "settings",
    [
        PhraseSettings(4),
        PhraseSettings(4, "product"),
        PhraseSettings(0, "none"),
        PhraseSettings(4, linear_layer=True),
        PhraseSettings(4, "product", True, True, "mean"),
    ],
)
def test_rows_hold_the_parts_and_a_folder_holds_the_model(
    folder: Path, tmp_path: Path, settings: PhraseSettings
) -> None:
    model = make(folder, settings)
    layout = layout_of(model)
    with torch.no_grad():
        rows = model.rows(IDS, MASK, False)
        parts = model.paragraphs(IDS, MASK)
        filters = model.filter_logits(parts)
    assert rows.shape == (2, 5, layout.columns)
    split = layout.split(rows.numpy())
    for part, expected in zip(split, (*parts, *(f[..., 0] for f in filters)), strict=True):
        np.testing.assert_array_equal(part, expected.numpy())

    save_model(model, folder / "tokenizer.json", tmp_path / "saved")
    loaded = load_phrase_model(tmp_path / "saved")
    assert loaded.settings == settings
    assert not loaded.training
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name]), name
    with torch.no_grad():
        assert torch.equal(loaded.rows(IDS, MASK, True), model.rows(IDS, MASK, True))


def test_coherency_of_a_question(folder: Path) -> None:
    for coherency, dim in (("free", 4), ("none", 0)):
        model = make(folder, PhraseSettings(dim, coherency))
        assert torch.equal(model.questions(IDS, MASK).coherency, torch.ones(2))
    model = make(folder, PhraseSettings(4, "product"))
    with torch.no_grad():
        parts = model._split(model._hidden(IDS, MASK, True))
        questions = model.questions(IDS, MASK)
    expected = torch.stack([parts.start_key[q, 0] @ parts.end_key[q, 0] for q in range(2)])
    assert torch.allclose(questions.coherency, expected)
    assert torch.equal(questions.start, parts.start[:, 0])  # the first piece is the question's vector


def test_settings_that_contradict_each_other(folder: Path) -> None:
    with pytest.raises(ValueError, match="goes with coherency_dim = 0"):
        PhraseSettings(4, "none")
    with pytest.raises(ValueError, match="goes with coherency_dim = 0"):
        PhraseSettings(0, "free")
    with pytest.raises(ValueError, match="negative"):
        PhraseSettings(-1)
    with pytest.raises(ValueError, match="second backbone"):
        PhraseModel(load_backbone(str(folder)), PhraseSettings(4, independent_encoders=True))


def test_the_linear_layer_is_applied_before_the_split(folder: Path) -> None:
    plain, with_layer = make(folder, PhraseSettings(4)), make(folder, PhraseSettings(4, linear_layer=True))
    assert with_layer.linear is not None
    with torch.no_grad():
        hidden = plain.backbone(IDS, MASK, torch.zeros_like(IDS))
        expected = torch.cat(list(plain._split(with_layer.linear(hidden))), dim=-1)
        found = torch.cat(list(with_layer.paragraphs(IDS, MASK)), dim=-1)
    assert torch.allclose(found, expected, atol=1e-6)


def test_independent_encoders_share_nothing(folder: Path) -> None:
    model = make(folder, PhraseSettings(4, independent_encoders=True))
    assert model.question_backbone is not None
    own = {p.data_ptr() for p in model.backbone.parameters()}
    assert not own & {p.data_ptr() for p in model.question_backbone.parameters()}
    model.questions(IDS, MASK).start.sum().backward()
    assert all(p.grad is None for p in model.backbone.parameters())
    assert any(p.grad is not None for p in model.question_backbone.parameters())
    shared = make(folder, PhraseSettings(4))
    shared.questions(IDS, MASK).start.sum().backward()
    assert any(p.grad is not None for p in shared.backbone.parameters())


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("linear_layer", [False, True])
def test_training_and_search_pool_questions_alike(folder: Path, pooling: str, linear_layer: bool) -> None:
    model = make(folder, PhraseSettings(4, "product", linear_layer, question_pooling=pooling))
    tokenizer = Tokenizer(folder / "tokenizer.json")
    texts = ["which town ?", "what job does ada have", "who"]
    found = PhraseEncoder(tokenizer, TorchRuntime(model, tokenizer.pad_id)).encode_questions(texts)
    framed = [[tokenizer.cls_id, *ids.tolist(), tokenizer.sep_id] for ids in tokenizer.ids_batch(texts)]
    longest = max(map(len, framed))
    ids = torch.tensor([row + [tokenizer.pad_id] * (longest - len(row)) for row in framed])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in framed])
    with torch.no_grad():
        expected = model.questions(ids, mask)
    np.testing.assert_allclose(found.starts, expected.start.numpy(), atol=1e-5)
    np.testing.assert_allclose(found.ends, expected.end.numpy(), atol=1e-5)
    np.testing.assert_allclose(found.coherency, expected.coherency.numpy(), atol=1e-5)
