"""What both precisions promise: products from codes are those of decoded rows, and files bring them back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspi.dense.codec import RowCodec
from denspi.dense.compact import CompactQuantizer, load_compact, save_compact
from denspi.dense.compact_fit import fit_compact_quantizer
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.quantizer import Quantizer, fit_code, load_quantizer, save_quantizer
from denspi.errors import ModelError
from denspi.vectors import Floats, ParagraphVectors, QuestionVectors

DIM, KEY_DIM = 12, 5
Make = Callable[[int], RowCodec]


def rows(seed: int, count: int, dim: int = DIM) -> Floats:
    return np.random.default_rng([seed, dim]).normal(1, 2, size=(count, dim)).astype(np.float32)


def kinds(seed: int, key_dim: int = KEY_DIM) -> tuple[Floats, Floats, Floats, Floats]:
    return rows(seed, 60), rows(seed + 1, 60), rows(seed, 60, key_dim), rows(seed + 1, 60, key_dim)


def made_int8(seed: int, key_dim: int = KEY_DIM) -> Quantizer:
    return Quantizer(*(fit_code(each) for each in kinds(seed, key_dim)))


def made_compact(seed: int, key_dim: int = KEY_DIM) -> CompactQuantizer:
    asked = QuestionVectors(rows(seed + 2, 30), rows(seed + 3, 30), np.ones(30, np.float32))
    return fit_compact_quantizer(*kinds(seed, key_dim), asked, vector_bytes=8)


both = pytest.mark.parametrize("make", [made_int8, made_compact])


@both
@given(seed=st.integers(0, 1000), count=st.integers(0, 40), asked=st.integers(0, 4))
@settings(max_examples=30)
def test_products_are_those_of_decoded_rows(make: Make, seed: int, count: int, asked: int) -> None:
    codec = make(seed)
    questions = rows(seed + 5, asked)
    for code in (codec.start, codec.end):
        codes = code.encode(rows(seed + 6, count))
        assert codes.shape == (count, code.bytes_per_row)
        assert codes.nbytes == count * codec.vector_bytes
        found = code.inner_products(questions, codes)
        oracle = questions.astype(np.float64) @ code.decode(codes).astype(np.float64).T
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, oracle, rtol=1e-4, atol=1e-3)


@both
def test_many_rows_are_multiplied_as_each_alone(make: Make) -> None:
    code = make(1).start
    codes, questions = code.encode(rows(4, 5000)), rows(5, 3)
    found = code.inner_products(questions, codes)
    for at in (0, 2047, 2048, 4999):
        one = code.inner_products(questions, codes[at : at + 1])
        np.testing.assert_allclose(found[:, [at]], one, rtol=1e-4, atol=1e-4)


@both
def test_a_stored_paragraph_has_each_row_encoded_and_decoded(make: Make) -> None:
    codec, (starts, ends, start_keys, end_keys) = make(1), kinds(7)
    places, floats, masks = np.arange(60, dtype=np.int32), np.zeros(60, np.float32), np.ones(60, np.bool_)
    vectors = (starts, ends, start_keys, end_keys)
    stored = codec.stored(ParagraphVectors(places, places, *vectors, masks, masks, floats, floats))
    codes = codec.start, codec.end, codec.start_key, codec.end_key
    found = stored.starts, stored.ends, stored.start_keys, stored.end_keys
    for code, before, after in zip(codes, vectors, found, strict=True):
        assert np.array_equal(after, code.decode(code.encode(before)))
        assert after.dtype == np.float32
    assert stored.can_start is masks


@both
def test_it_fits_its_own_sizes_only(make: Make) -> None:
    assert make(1).fits(DIM, KEY_DIM)
    assert not make(1).fits(DIM, KEY_DIM + 1)
    assert not make(1).fits(DIM + 1, KEY_DIM)


@pytest.mark.parametrize("key_dim", [0, 1, 4, 5])
def test_compact_keys_take_four_bits_and_an_odd_one_eight(key_dim: int) -> None:
    codec = made_compact(1, key_dim)
    assert codec.key_bytes == (key_dim + 1) // 2
    assert codec.fits(DIM, key_dim)
    keys = rows(1, 60, key_dim)
    back = codec.start_key.decode(codec.start_key.encode(keys))
    assert back.shape == keys.shape
    assert (np.abs(back - keys) <= (np.ptp(keys, axis=0) if key_dim else 0)).all()


def test_a_compact_file_is_the_same_again_and_strict(tmp_path: Path) -> None:
    codec, path = made_compact(1), tmp_path / "compact.npz"
    save_compact(codec, path)
    loaded = load_compact(path)
    assert loaded.fingerprint == codec.fingerprint != made_compact(2).fingerprint
    save_compact(loaded, tmp_path / "again.npz")
    content = path.read_bytes()
    assert (tmp_path / "again.npz").read_bytes() == content
    for wrong in (b"", b"no", content[:300]):
        path.write_bytes(wrong)
        with pytest.raises(ModelError, match=r"compact\.npz: not a compact code \(.*copy or train"):
            load_compact(path)
    arrays = codec.arrays()
    del arrays["end_inverse"]
    np.savez(path, allow_pickle=False, **arrays)
    with pytest.raises(ModelError, match="end_inverse"):
        load_compact(path)
    save_quantizer(made_int8(1), path)
    with pytest.raises(ModelError, match="not a compact code"):
        load_compact(path)
    save_compact(codec, path)
    with pytest.raises(ModelError, match="not a quantizer"):
        load_quantizer(path)


def test_an_encoder_hands_out_the_codec_of_a_precision() -> None:
    int8, compact = made_int8(1), made_compact(1)

    class Bare(PhraseEncoder):
        def __init__(self, *codecs: RowCodec | None) -> None:
            self.quantizer, self.compact = codecs  # type: ignore[assignment]

    assert Bare(int8, compact).codec("int8") is int8
    assert Bare(int8, compact).codec("compact") is compact
    with pytest.raises(ModelError, match="the model has no compact code, which the index needs"):
        Bare(int8, None).codec("compact")
    with pytest.raises(ModelError, match="the model has no int8 code"):
        Bare(None, compact).codec("int8")
