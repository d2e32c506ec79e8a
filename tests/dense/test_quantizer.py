"""int8 codes: close inside the range, saturated outside, in order everywhere, the same on disk."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from denspi.dense.quantizer import Int8Code, Quantizer, fit_code, load_quantizer, save_quantizer
from denspi.errors import ModelError
from denspi.vectors import Floats, ParagraphVectors

finite = st.floats(-1e4, 1e4, width=32)
samples = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=finite)


def tolerance(code: Int8Code) -> Floats:
    """float32 itself rounds, the more the farther the range lies from zero."""
    return 4 * np.spacing(np.maximum(np.abs(code.lowest), np.abs(code.highest)))


@given(samples, st.data())
def test_inside_the_range_a_value_comes_back_within_half_a_step(rows: Floats, data: st.DataObject) -> None:
    code = fit_code(rows)
    shares = data.draw(arrays(np.float32, rows.shape, elements=st.floats(0, 1, width=32)))
    inside = code.lowest + shares * (code.highest - code.lowest)
    errors = np.abs(code.decode(code.encode(inside)) - inside)
    assert (errors <= code.max_error + tolerance(code)).all()


@given(samples)
def test_outside_it_saturates(rows: Floats) -> None:
    code = fit_code(rows)
    for way, ends in ((-1, code.lowest), (1, code.highest)):
        for far in (np.float32(1), np.float32(1e6)):
            found = code.decode(code.encode(ends + way * far * code.scale))
            assert (np.abs(found - ends) <= tolerance(code)).all()


@given(samples, st.data())
def test_order_is_kept(rows: Floats, data: st.DataObject) -> None:
    code = fit_code(rows)
    values = data.draw(arrays(np.float32, (9, rows.shape[1]), elements=finite))
    assert (np.diff(code.encode(np.sort(values, axis=0)).astype(int), axis=0) >= 0).all()


@given(samples)
def test_a_code_is_what_its_value_is_coded_as(rows: Floats) -> None:
    code = fit_code(rows)
    every = np.arange(-128, 128, dtype=np.int8)[:, None].repeat(rows.shape[1], axis=1)
    if (code.scale > 100 * tolerance(code)).all():  # else float32 cannot tell the steps apart
        assert (code.encode(code.decode(every)) == every).all()


def test_a_few_outliers_do_not_make_the_steps_coarse() -> None:
    rows = np.random.default_rng(0).normal(size=(30_000, 3)).astype(np.float32)
    plain = fit_code(rows)
    rows[:2, 1] = 1e3
    code = fit_code(rows)
    assert code.scale[1] < 3 * plain.scale[1] < rows[:, 1].max() / 255 / 10
    for other in (0, 2):
        assert code.scale[other] == plain.scale[other]


def test_what_it_was_fitted_to_lies_inside_with_a_little_room() -> None:
    rows = np.random.default_rng(0).normal(3, 2, size=(10_000, 2)).astype(np.float32)
    code = fit_code(rows)
    room = 0.05 * (rows.max(0) - rows.min(0))
    np.testing.assert_allclose(code.lowest, rows.min(0) - room, atol=1e-4)
    np.testing.assert_allclose(code.highest, rows.max(0) + room, atol=1e-4)


def test_a_dimension_that_never_varies_comes_back_as_it_is() -> None:
    code = fit_code(np.full((5, 2), 0.7, np.float32))
    assert (code.decode(code.encode(np.full((1, 2), 0.7, np.float32))) == np.float32(0.7)).all()


def test_inner_products_need_no_decoding() -> None:
    random = np.random.default_rng(0)
    rows, question = (random.normal(size=shape).astype(np.float32) for shape in ((50, 8), (8,)))
    code = fit_code(rows)
    codes = code.encode(rows)
    direct = question @ code.offset + codes.astype(np.float32) @ (question * code.scale)
    np.testing.assert_allclose(direct, code.decode(codes) @ question, atol=1e-4)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="no row"):
        fit_code(np.zeros((0, 3), np.float32))
    with pytest.raises(ValueError, match="not numbers"):
        fit_code(np.ones((2, 1), np.float32)).encode(np.array([[np.nan]], np.float32))
    for scale, offset in (([0.0], [0.0]), ([1.0], [np.inf]), ([1.0, 1.0], [0.0])):
        with pytest.raises(ValueError, match="scale"):
            Int8Code(np.array(scale, np.float32), np.array(offset, np.float32))


@pytest.fixture
def quantizer() -> Quantizer:
    random = np.random.default_rng(0)
    return Quantizer(*(fit_code(random.normal(size=(40, dim)).astype(np.float32)) for dim in (6, 6, 2, 2)))


def test_a_paragraph_as_an_index_has_it(quantizer: Quantizer) -> None:
    random = np.random.default_rng(1)
    starts, ends, start_keys, end_keys = (
        random.normal(size=(3, dim)).astype(np.float32) for dim in (6, 6, 2, 2)
    )
    words, can, logits = np.arange(3, dtype=np.int32), np.ones(3, np.bool_), np.zeros(3, np.float32)
    before = ParagraphVectors(words, words + 1, starts, ends, start_keys, end_keys, can, can, logits, logits)
    after = quantizer.stored(before)
    for rows, code in (
        ("starts", "start"),
        ("ends", "end"),
        ("start_keys", "start_key"),
        ("end_keys", "end_key"),
    ):
        one: Int8Code = getattr(quantizer, code)
        clipped = np.clip(getattr(before, rows), one.lowest, one.highest)
        assert (np.abs(getattr(after, rows) - clipped) <= one.max_error + tolerance(one)).all()
    assert after.word_starts is before.word_starts


def test_on_disk_it_is_the_same(quantizer: Quantizer, tmp_path: Path) -> None:
    save_quantizer(quantizer, tmp_path / "one.npz")
    loaded = load_quantizer(tmp_path / "one.npz")
    assert loaded.fingerprint == quantizer.fingerprint
    assert loaded.fits(6, 2)
    assert not loaded.fits(6, 3)
    for field in fields(Quantizer):
        ours, theirs = getattr(quantizer, field.name), getattr(loaded, field.name)
        assert (ours.scale == theirs.scale).all()
        assert (ours.offset == theirs.offset).all()
    save_quantizer(loaded, tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    other = Quantizer(quantizer.end, quantizer.start, quantizer.start_key, quantizer.end_key)
    assert other.fingerprint != quantizer.fingerprint


def test_models_without_coherency_have_empty_keys(quantizer: Quantizer, tmp_path: Path) -> None:
    none = fit_code(np.zeros((5, 0), np.float32))
    save_quantizer(Quantizer(quantizer.start, quantizer.end, none, none), tmp_path / "q.npz")
    assert load_quantizer(tmp_path / "q.npz").fits(6, 0)


def test_a_broken_file_is_one_line(quantizer: Quantizer, tmp_path: Path) -> None:
    path = tmp_path / "q.npz"
    save_quantizer(quantizer, path)
    whole = path.read_bytes()
    for content in (b"", b"nothing", whole[:300]):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="not a quantizer") as caught:
            load_quantizer(path)
        assert "\n" not in str(caught.value)
    np.savez(path, start_scale=np.ones(3))
    with pytest.raises(ModelError, match="not a quantizer"):
        load_quantizer(path)
    with pytest.raises(ModelError, match="not a quantizer"):
        load_quantizer(tmp_path / "none.npz")
