"""What is stored of a paragraph: exactly the words that the filter keeps, within the quantizer's error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.build.conftest import make_documents

from denspi.build.rows import encode_rows, rows_of
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.filter import FilterThresholds
from denspi.dense.quantizer import Quantizer, fit_code
from denspi.errors import ModelError
from denspi.index.rows import CodeLayout, check_rows
from denspi.vectors import MAX_PHRASE_WORDS, ParagraphVectors

PARAGRAPHS = [text for document in make_documents(8) for text in document.paragraph_texts()]


def random_paragraph(words: int, seed: int) -> ParagraphVectors:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, words)
    ends = np.cumsum(lengths + 1) - 1

    def floats(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    return ParagraphVectors(
        (ends - lengths).astype(np.int32),
        ends.astype(np.int32),
        floats(words, 12),
        floats(words, 12),
        floats(words, 4),
        floats(words, 4),
        random.random(words) < 0.9,
        random.random(words) < 0.9,
        floats(words),
        floats(words),
    )


def wide_quantizer() -> Quantizer:
    return Quantizer(*(fit_code(np.array([[-8.0] * d, [8.0] * d], np.float32)) for d in (12, 12, 4, 4)))


@given(st.integers(0, 40), st.integers(0, 99), st.floats(-2, 2, width=32), st.booleans())
def test_each_kept_word_has_its_own_row(words: int, seed: int, threshold: float, is_filtered: bool) -> None:
    paragraph, quantizer = random_paragraph(words, seed), wide_quantizer()
    rows = rows_of(paragraph, FilterThresholds(threshold, -threshold) if is_filtered else None, quantizer)
    assert rows.word_count == words
    characters = int(paragraph.word_ends[-1]) if words else 0
    check_rows(rows, characters, CodeLayout("int8", 12, 4), where="here")
    expected_starts = []
    expected_ends = []
    for word in range(words):  # the slow, obvious way
        if paragraph.can_start[word] and (not is_filtered or paragraph.start_logits[word] >= threshold):
            expected_starts.append(word)
        if paragraph.can_end[word] and (not is_filtered or paragraph.end_logits[word] >= -threshold):
            expected_ends.append(word)
    assert rows.start_words.tolist() == expected_starts
    assert rows.end_words.tolist() == expected_ends
    for row, word in enumerate(expected_starts):
        assert rows.start_chars[row] == paragraph.word_starts[word]
        back = quantizer.start.decode(rows.starts[row])
        assert (np.abs(back - paragraph.starts[word]) <= quantizer.start.max_error * 1.001).all()
        back = quantizer.start_key.decode(rows.start_keys[row])
        assert (np.abs(back - paragraph.start_keys[word]) <= quantizer.start_key.max_error * 1.001).all()
    for row, word in enumerate(expected_ends):
        assert rows.end_chars[row] == paragraph.word_ends[word]
        back = quantizer.end.decode(rows.ends[row])
        assert (np.abs(back - paragraph.ends[word]) <= quantizer.end.max_error * 1.001).all()
        back = quantizer.end_key.decode(rows.end_keys[row])
        assert (np.abs(back - paragraph.end_keys[word]) <= quantizer.end_key.max_error * 1.001).all()


@given(st.integers(1, 30), st.lists(st.integers(0, 200), max_size=4), st.integers(0, 99))
def test_no_phrase_reaches_over_a_break(words: int, breaks: list[int], seed: int) -> None:
    paragraph, quantizer = random_paragraph(words, seed), wide_quantizer()
    paragraph = replace(paragraph, can_start=np.ones(words, bool), can_end=np.ones(words, bool))
    rows = rows_of(paragraph, None, quantizer, sorted(breaks))
    check_rows(rows, int(paragraph.word_ends[-1]), CodeLayout("int8", 12, 4), where="here")
    for first in range(words):
        for last in range(first, words):
            begin, end = paragraph.word_starts[first], paragraph.word_starts[last]
            is_phrase = int(rows.end_words[last]) - int(rows.start_words[first]) < MAX_PHRASE_WORDS
            is_cut = any(begin < place <= end for place in breaks)
            assert is_phrase == (not is_cut and last - first < MAX_PHRASE_WORDS)


def test_a_models_own_rows_keep_some_words_and_drop_others(encoder: PhraseEncoder) -> None:
    rows = list(encode_rows(encoder, PARAGRAPHS))
    assert len(rows) == len(PARAGRAPHS)
    words = sum(each.word_count for each in rows)
    for name in ("start_words", "end_words"):
        assert 0.1 * words < sum(len(getattr(each, name)) for each in rows) < 0.9 * words


def test_the_precision_says_which_codes_the_rows_are(encoder: PhraseEncoder) -> None:
    assert encoder.compact is not None
    layout = CodeLayout("uint8", encoder.compact.vector_bytes, encoder.compact.key_bytes)
    both = zip(encode_rows(encoder, PARAGRAPHS), encode_rows(encoder, PARAGRAPHS, "compact"), strict=True)
    for int8, compact in both:
        check_rows(compact, 10_000, layout, where="here")
        assert compact.start_words.tolist() == int8.start_words.tolist()
        assert compact.end_chars.tolist() == int8.end_chars.tolist()


def test_a_model_without_a_quantizer_is_refused(encoder: PhraseEncoder) -> None:
    bare = PhraseEncoder(encoder.tokenizer, encoder.runtime)
    with pytest.raises(ModelError, match="has no int8 code"):
        list(encode_rows(bare, PARAGRAPHS))


def test_vectors_that_are_not_numbers_are_refused(encoder: PhraseEncoder) -> None:
    broken = replace(random_paragraph(5, 0), starts=np.full((5, 12), np.nan, np.float32))

    class Broken(PhraseEncoder):
        def encode_paragraphs(self, paragraphs):  # type: ignore[no-untyped-def]
            return iter([broken])

    found = Broken(encoder.tokenizer, encoder.runtime, quantizer=wide_quantizer())
    with pytest.raises(ModelError, match="not numbers"):
        list(encode_rows(found, ["x"]))
