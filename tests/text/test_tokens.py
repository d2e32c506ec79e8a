import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer, word_spans


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A small word-piece tokenizer that, like the pretrained ones, is stored with truncation on."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "20th", "cafe", "of"]
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces += [*letters, *(f"##{c}" for c in letters), *"-.,()$%'\"/", "##ing"]
    backend = Backend(WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    backend.normalizer = BertNormalizer()
    backend.pre_tokenizer = BertPreTokenizer()
    backend.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    backend.add_special_tokens(["[PAD]", "[CLS]", "[SEP]"])
    backend.enable_truncation(8)
    backend.enable_padding(length=8)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    backend.save(str(path))
    return Tokenizer(path)


def test_stored_truncation_and_padding_are_switched_off(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.tokenize("of " * 50)) == 50
    assert len(tokenizer.tokenize("of")) == 1


def test_special_tokens_written_in_a_text_are_plain_text(tokenizer: Tokenizer) -> None:
    assert (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id) == (2, 3, 0)
    assert not {tokenizer.cls_id, tokenizer.sep_id} & set(tokenizer.tokenize("of [SEP] [CLS]").ids.tolist())


def test_words_are_runs_of_letters_and_digits_or_single_signs() -> None:
    text = "In 2003–04, the 20th-century’s $5.3bn_x (Café)"
    starts, ends = word_spans(text)
    words = [text[a:b] for a, b in zip(starts, ends, strict=True)]
    assert words == [
        *(
            "In",
            "2003",
            "–",
            "04",
            ",",
            "the",
            "20th",
            "-",
            "century",
            "’",
            "s",
            "$",
            "5",
            ".",
            "3bn",
            "_",
            "x",
        ),
        *("(", "Café", ")"),
    ]


def test_combining_marks_stay_with_their_letter() -> None:
    text = "cafe\u0301s नमस्ते"
    starts, ends = word_spans(text)
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == ["cafe\u0301s", "नमस्ते"]


def test_only_word_borders_may_start_or_end_an_answer(tokenizer: Tokenizer) -> None:
    text = "Cafe-owning"
    tokens = tokenizer.tokenize(text)
    pieces = [text[a:b] for a, b in zip(tokens.starts, tokens.ends, strict=True)]
    assert pieces == ["Cafe", "-", "o", "w", "n", "ing"]
    assert tokens.word_initial.tolist() == [True, True, True, False, False, False]
    assert tokens.word_final.tolist() == [True, True, False, False, False, True]
    assert tokens.first_piece.tolist() == [0, 1, 2]
    assert tokens.last_piece.tolist() == [0, 1, 5]


def words_by_the_book(text: str) -> list[tuple[int, int]]:
    """One character after the other: runs of letters and digits, single signs, each with its marks."""
    found: list[tuple[int, int]] = []
    run = False  # a word of letters goes on here
    for at, character in enumerate(text):
        touches = bool(found) and found[-1][1] == at
        is_mark = unicodedata.category(character).startswith("M")
        if character.isspace():
            run = False
            continue
        if touches and (is_mark or (run and character.isalnum())):
            found[-1] = found[-1][0], at + 1
        else:
            found.append((at, at + 1))
            run = character.isalnum()
    return found


@given(st.text(st.sampled_from("ab1½é中_.-– \n\u00a0\u0301\u093f\u20dd\u200d\ud800\U0001d165\U0001f600")))
def test_words_are_those_that_one_finds_character_by_character(text: str) -> None:
    assert [(int(a), int(b)) for a, b in zip(*word_spans(text), strict=True)] == words_by_the_book(text)


@given(st.text(st.characters()))
def test_words_of_any_characters_too(text: str) -> None:
    assert [(int(a), int(b)) for a, b in zip(*word_spans(text), strict=True)] == words_by_the_book(text)


@given(st.text())
def test_any_text_gives_offsets_that_say_what_they_cover(text: str) -> None:
    word_starts, word_ends = word_spans(text)
    covered = "".join(text[a:b] for a, b in zip(word_starts, word_ends, strict=True))
    assert covered == "".join(text.split()) or not text.isprintable()
    assert all(a < b for a, b in zip(word_starts, word_ends, strict=True))


@given(st.text(alphabet=st.characters(), max_size=80))
def test_pieces_lie_inside_the_text_in_order(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.tokenize(text)
    assert np.all(tokens.starts <= tokens.ends)
    assert np.all(tokens.ends <= len(text))
    assert np.all(np.diff(tokens.starts) >= 0)
    starts, ends = word_spans(text)
    assert set(tokens.starts[tokens.word_initial].tolist()) <= set(starts.tolist())
    assert set(tokens.ends[tokens.word_final].tolist()) <= set(ends.tolist())
    assert len(tokens.ids) == len(tokens.word_initial) == len(tokens.word_final)
    for word, (first, last) in enumerate(zip(tokens.first_piece, tokens.last_piece, strict=True)):
        assert first == -1 or (tokens.word_initial[first] and tokens.starts[first] == starts[word])
        assert last == -1 or (tokens.word_final[last] and tokens.ends[last] == ends[word])


@given(st.lists(st.text(max_size=30), max_size=5))
def test_a_batch_equals_one_at_a_time(tokenizer: Tokenizer, texts: list[str]) -> None:
    for together, text in zip(tokenizer.tokenize_batch(texts), texts, strict=True):
        assert np.array_equal(together.ids, tokenizer.tokenize(text).ids)
        assert np.array_equal(together.starts, tokenizer.tokenize(text).starts)


def test_lone_surrogates_keep_their_offsets(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.tokenize("of \ud800 cafe")
    assert "of \ud800 cafe"[tokens.starts[-1] : tokens.ends[-1]] == "cafe"


def test_a_missing_or_broken_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        Tokenizer(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(ModelError, match=r"not a tokenizer\.json"):
        Tokenizer(tmp_path / "tokenizer.json")
