"""Text -> vectors with the torch runtime: nothing depends on the batch, every word has one row."""

import numpy as np
import pytest
import torch
from tests.tiny import save_encoder

from denspi.dense.backbone import load_backbone
from denspi.dense.encoder import PhraseEncoder, WindowSettings
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.dense.torch_encoder import TorchRuntime, torch_encoder
from denspi.text.tokens import Tokenizer, word_spans
from denspi.vectors import ParagraphVectors

TEXTS = [
    "ada lives in oslo and works as a baker .",
    "bram",
    "Cleo's [SEP] 42nd café, in York!",
    "",
    "  \n",
    "dov lives in lima . " * 30,  # 150 pieces: more than the encoder's 128 positions
    "elif works as a nurse in graz and finn in cork .",
    "cafe\u0301\r\n\u200bna\u00efve\u200b \U0001d4b3 \U0001f469\u200d\U0001f680 \u0301 \ufeff\x00 5\u00b2 "
    + "z" * 150,
]
FIELDS = ("starts", "ends", "start_keys", "end_keys", "start_logits", "end_logits")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[PhraseModel, Tokenizer]:
    folder = tmp_path_factory.mktemp("model") / "encoder"
    save_encoder(folder)
    torch.manual_seed(1)
    model = PhraseModel(load_backbone(str(folder)), PhraseSettings(4)).eval()
    return model, Tokenizer(folder / "tokenizer.json")


def test_vectors_do_not_depend_on_the_batch(model: tuple[PhraseModel, Tokenizer]) -> None:
    encoder = torch_encoder(*model)
    together = list(encoder.encode_paragraphs(TEXTS))
    reversed_order = list(encoder.encode_paragraphs(reversed(TEXTS)))[::-1]
    small_groups = list(torch_encoder(*model, WindowSettings(batch=2)).encode_paragraphs(TEXTS))
    for number, text in enumerate(TEXTS):
        (alone,) = encoder.encode_paragraphs([text])
        for other in (together[number], reversed_order[number], small_groups[number]):
            for name in FIELDS:
                np.testing.assert_allclose(getattr(other, name), getattr(alone, name), atol=1e-5)
    questions = ["which town ?", "what job does ada have in oslo ?", "who"]
    rows = encoder.encode_questions(questions)
    for number, question in enumerate(questions):
        np.testing.assert_allclose(
            encoder.encode_questions([question]).starts[0], rows.starts[number], atol=1e-5
        )


@pytest.mark.parametrize(
    "settings", [WindowSettings(), WindowSettings(size=20, overlap=8), WindowSettings(7, 6)]
)
def test_one_row_for_each_word_however_it_is_cut(
    model: tuple[PhraseModel, Tokenizer], settings: WindowSettings
) -> None:
    encoder = torch_encoder(*model, settings)
    for text, vectors in zip(TEXTS, encoder.encode_paragraphs(TEXTS), strict=True):
        starts, ends = word_spans(text)
        assert vectors.word_starts.tolist() == starts.tolist()
        assert vectors.word_ends.tolist() == ends.tolist()
        for name in (*FIELDS, "can_start", "can_end"):
            assert len(getattr(vectors, name)) == len(starts)
        assert np.isfinite(vectors.starts).all()


def slow(model: PhraseModel, tokenizer: Tokenizer, text: str) -> ParagraphVectors:
    """One short paragraph by the definition, word by word."""
    tokens = tokenizer.tokenize(text)
    ids = torch.tensor([[tokenizer.cls_id, *tokens.ids.tolist(), tokenizer.sep_id]])
    with torch.no_grad():
        parts = model.paragraphs(ids, torch.ones_like(ids))
        start_logits, end_logits = model.filter_logits(parts)
    first, last = tokens.first_piece + 1, tokens.last_piece + 1
    return ParagraphVectors(
        tokens.word_starts,
        tokens.word_ends,
        parts.start[0].numpy()[first],
        parts.end[0].numpy()[last],
        parts.start_key[0].numpy()[first],
        parts.end_key[0].numpy()[last],
        first > 0,
        last > 0,
        start_logits[0, :, 0].numpy()[first],
        end_logits[0, :, 0].numpy()[last],
    )


def test_a_word_starts_with_its_first_piece_and_ends_with_its_last(
    model: tuple[PhraseModel, Tokenizer],
) -> None:
    for text in (TEXTS[0], TEXTS[2], "zzz qx9"):
        (found,) = torch_encoder(*model).encode_paragraphs([text])
        expected = slow(*model, text)
        assert found.can_start.all()
        for name in FIELDS:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5)


def test_a_long_paragraph_agrees_with_the_window_that_has_most_context(
    model: tuple[PhraseModel, Tokenizer],
) -> None:
    text = TEXTS[5]
    (found,) = torch_encoder(*model, WindowSettings(size=100, overlap=40)).encode_paragraphs([text])
    head = slow(*model, " ".join(text.split()[:100]))  # one piece a word: the first window
    np.testing.assert_allclose(found.starts[:75], head.starts[:75], atol=1e-5)
    assert not np.allclose(found.starts[76:80], head.starts[76:80], atol=1e-5)  # from the next window on


def test_empty_input(model: tuple[PhraseModel, Tokenizer]) -> None:
    encoder = torch_encoder(*model)
    (empty,) = encoder.encode_paragraphs([""])
    assert len(empty) == 0
    assert empty.starts.shape == (0, 12)
    assert list(encoder.encode_paragraphs([])) == []
    assert encoder.encode_questions([]).starts.shape == (0, 12)
    assert encoder.encode_questions([""]).starts.shape == (1, 12)


def test_special_tokens_in_a_text_are_text(model: tuple[PhraseModel, Tokenizer]) -> None:
    phrase_model, tokenizer = model
    seen: list[np.ndarray] = []

    class Spy(TorchRuntime):
        def rows(self, framed, is_question):  # type: ignore[no-untyped-def]
            seen.extend(framed)
            return super().rows(framed, is_question)

    encoder = PhraseEncoder(tokenizer, Spy(phrase_model, tokenizer.pad_id))
    (vectors,) = encoder.encode_paragraphs(["ada [SEP] [CLS] oslo"])
    encoder.encode_questions(["[SEP] ?"])
    assert len(vectors) == 8  # "[", "SEP", "]", ...
    special = {tokenizer.cls_id, tokenizer.sep_id}
    for ids in seen:
        assert (ids[0], ids[-1]) == (tokenizer.cls_id, tokenizer.sep_id)
        assert not special & set(ids[1:-1].tolist())


def test_a_long_question_is_cut(model: tuple[PhraseModel, Tokenizer]) -> None:
    encoder = torch_encoder(*model, WindowSettings(question_pieces=5))
    rows = encoder.encode_questions(["who is it in oslo", "who is it in oslo and lima and riga"])
    np.testing.assert_allclose(rows.starts[0], rows.starts[1], atol=1e-5)
    for settings in (WindowSettings(), WindowSettings(question_pieces=500)):  # the encoder takes 128
        rows = torch_encoder(*model, settings).encode_questions(["which town ? " * 100])
        assert rows.starts.shape == (1, 12)
