"""The compact code against slow, obvious oracles: packing, decoding, inner products; what fitting is for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspi.dense.compact import CompactCode, CompactQuantizer, Grid
from denspi.dense.compact_fit import compact_error, fit_compact, fit_grid

DIM = 12


def made_rows(seed: int, count: int, dim: int = DIM) -> np.ndarray:
    """Rows whose dimensions hang together and differ in width, around a mean that is not zero."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((dim, dim)) * np.geomspace(3, 0.05, dim)[:, None]
    mean = rng.standard_normal(dim)
    return (rng.standard_normal((count, dim)) @ mixing + mean).astype(np.float32)


def made_code(seed: int, bytes_per_row: int, dim: int = DIM) -> CompactCode:
    return fit_compact(made_rows(seed, 400, dim), made_rows(seed + 1, 200, dim), bytes_per_row)


def slowly_decoded(code: CompactCode, row: bytes) -> list[float]:
    """One row by the layout in the module's first lines, a component at a time."""
    kept, wide = len(code.grid.step), code.grid.wide
    codes = [row[1 + at] for at in range(wide)]
    pairs = [row[1 + wide + at] for at in range((kept - wide) // 2)]
    codes += [pair % 16 for pair in pairs] + [pair // 16 for pair in pairs]
    correction = 2.0 ** ((row[0] - 128) / 128)
    found = [float(each) for each in code.mean]
    for number, each in enumerate(codes):
        component = float(code.grid.lowest[number]) + float(code.grid.step[number]) * each
        for d in range(len(found)):
            found[d] += correction * component * float(code.inverse[number, d])
    return found


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    wide, narrow = draw(st.integers(0, 5)), 2 * draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    lowest = rng.normal(size=wide + narrow).astype(np.float32)
    return Grid(lowest, rng.uniform(0.01, 2, wide + narrow).astype(np.float32), wide)


@given(grids(), st.integers(0, 20), st.integers(0, 10**6))
def test_every_code_of_a_grid_survives_packing(grid: Grid, count: int, seed: int) -> None:
    levels = np.where(np.arange(len(grid.step)) < grid.wide, 256, 16)
    codes = np.random.default_rng(seed).integers(0, levels, (count, len(levels)))
    packed = grid.encode(grid.lowest.astype(np.float64) + grid.step.astype(np.float64) * codes)
    assert packed.shape == (count, grid.bytes_per_row)
    assert np.array_equal(grid.unpack(packed), codes)


@given(grids(), st.integers(0, 10**6))
def test_a_grid_is_off_by_half_a_step_inside_its_range_and_saturates_outside(grid: Grid, seed: int) -> None:
    levels = np.where(np.arange(len(grid.step)) < grid.wide, 255, 15)
    highest = grid.lowest + grid.step * levels
    rows = np.random.default_rng(seed).uniform(grid.lowest, highest, (30, len(levels)))
    assert (abs(grid.decode(grid.encode(rows)) - rows) <= 0.5001 * grid.step + 1e-5).all()
    ends = grid.decode(grid.encode(np.stack([grid.lowest - 99, highest + 99])))
    assert np.allclose(ends, [grid.lowest, highest], atol=1e-5)


def test_the_first_half_of_the_narrow_components_lies_in_the_low_bits() -> None:
    grid = Grid(np.zeros(5, np.float32), np.ones(5, np.float32), wide=1)
    assert grid.encode(np.array([[200.0, 5, 6, 9, 10]])).tolist() == [[200, 5 + 16 * 9, 6 + 16 * 10]]


@given(st.integers(0, 1000), st.integers(2, 14), st.integers(1, 4))
@settings(max_examples=30)
def test_decoding_and_inner_products_follow_the_documented_layout(seed: int, width: int, asked: int) -> None:
    code = made_code(seed, width)
    assert 1 < code.bytes_per_row <= width
    packed = code.encode(made_rows(seed + 2, 9))
    oracle = np.array([slowly_decoded(code, row.tobytes()) for row in packed])
    assert np.allclose(code.decode(packed), oracle, rtol=1e-4, atol=1e-4)
    questions = made_rows(seed + 3, asked)
    found = code.inner_products(questions, packed)
    assert np.allclose(found, questions.astype(np.float64) @ oracle.T, rtol=1e-3, atol=1e-2)


@given(st.binary(min_size=3 * 7, max_size=3 * 7))
def test_any_bytes_are_rows(content: bytes) -> None:
    code = made_code(5, 7)
    assert code.bytes_per_row == 7
    packed = np.frombuffer(content, np.uint8).reshape(3, 7)
    assert np.allclose(code.decode(packed), [slowly_decoded(code, r.tobytes()) for r in packed], atol=1e-3)


def test_inner_products_of_many_rows_are_those_of_each() -> None:
    code, rows, questions = made_code(3, 7), made_rows(4, 5000), made_rows(5, 3)
    packed = code.encode(rows)
    found = code.inner_products(questions, packed)
    for at in (0, 2047, 2048, 4999):
        assert np.allclose(found[:, [at]], code.inner_products(questions, packed[at : at + 1]), rtol=1e-4)


@given(st.integers(0, 100), st.lists(st.integers(1, 70), min_size=1, max_size=6))
def test_the_codes_of_a_row_do_not_depend_on_its_neighbours(seed: int, cuts: list[int]) -> None:
    code, rows = made_code(1, 8), made_rows(seed, 200)
    parts = np.split(rows, np.cumsum(cuts)[np.cumsum(cuts) < 200])
    assert np.array_equal(code.encode(rows), np.concatenate([code.encode(part) for part in parts]))


def test_a_row_times_itself_is_right_but_for_the_rounding_of_the_correction() -> None:
    code, rows = made_code(7, 5), made_rows(7, 700)[400:]
    packed = code.encode(rows)
    components = (rows.astype(np.float64) - code.mean) @ code.basis
    kept = components[:, : len(code.grid.step)]
    stored = code.grid.decode(packed[:, 1:]) * np.exp2((packed[:, :1].astype(float) - 128) / 128)
    inside = (packed[:, 0] > 0) & (packed[:, 0] < 255)
    assert inside.mean() > 0.9
    ratio = (stored * kept).sum(1) / (components**2).sum(1)
    assert np.allclose(ratio[inside], 1, atol=0.003)


def test_more_bytes_bring_rows_and_scores_back_closer() -> None:
    rows, questions, asked = made_rows(1, 2000), made_rows(2, 500), made_rows(2, 550)[500:]
    errors = [
        compact_error(fit_compact(rows, questions, width), made_rows(1, 3000)[2000:], asked)
        for width in (3, 5, 7, 13)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01 < errors[0]


def test_bits_go_where_questions_look() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3000, 40)).astype(np.float32)
    rows[:, 20:] *= 3  # what varies most is what no question asks for
    questions = rng.standard_normal((500, 40)).astype(np.float32)
    questions[:, 20:] *= 0.01
    blind = fit_compact(rows, rng.standard_normal((500, 40)).astype(np.float32), 12)
    assert compact_error(fit_compact(rows, questions, 12), rows, questions) < 0.25
    assert compact_error(blind, rows, questions) > 0.75


def test_columns_that_never_vary_cost_nothing() -> None:
    rows = made_rows(1, 300)
    rows[:, [2, 5]] = [4.0, 0.0]
    code = fit_compact(rows, made_rows(2, 100), 2 + DIM)
    assert np.allclose(code.decode(code.encode(rows))[:, [2, 5]], [4, 0], atol=0.05)
    grid = fit_grid(np.full((5, 2), 3.0), 0)
    assert np.allclose(grid.decode(grid.encode(np.full((1, 2), 3.0))), 3)
    same = fit_compact(np.ones((4, 3), np.float32), np.ones((2, 3), np.float32), 4)
    assert np.allclose(same.decode(same.encode(np.ones((1, 3), np.float32))), 1)


@given(st.integers(0, 1000), st.integers(2, 16), st.integers(1, 15), st.integers(0, 15))
@settings(max_examples=40)
def test_rows_of_any_two_fits_take_the_same_bytes(seed: int, width: int, dim: int, varying: int) -> None:
    """However few dimensions vary, and however many bytes are left over: an index has one width."""
    rows = made_rows(seed, 30, dim)
    rows[:, varying:] = 1
    plain, flat = (fit_compact(each, made_rows(1, 20, dim), width) for each in (made_rows(2, 30, dim), rows))
    assert plain.bytes_per_row == flat.bytes_per_row == 1 + min(width - 1, dim)


def test_starts_and_ends_of_other_widths_are_refused() -> None:
    quantizer = made_quantizer()
    with pytest.raises(ValueError, match=r"starts take \(7, 2\) bytes a row and ends \(6, 2\)"):
        dataclasses.replace(quantizer, end=made_code(3, 6))


def made_quantizer() -> CompactQuantizer:
    keys = fit_grid(made_rows(9, 100, 4), 0)
    return CompactQuantizer(made_code(1, 7), made_code(3, 7), keys, fit_grid(made_rows(10, 100, 4), 0))


def test_a_quantizer_comes_back_from_its_arrays() -> None:
    quantizer = made_quantizer()
    again = CompactQuantizer.from_arrays(quantizer.arrays())
    assert again.fingerprint == quantizer.fingerprint
    assert (quantizer.vector_bytes, quantizer.key_bytes) == (7, 2)
    assert quantizer.fits(DIM, 4)
    assert not quantizer.fits(DIM, 6)
    rows = made_rows(4, 10)
    assert np.array_equal(again.end.encode(rows), quantizer.end.encode(rows))
    changed = {**quantizer.arrays(), "end_key_step": quantizer.end_key.step * 2}
    assert CompactQuantizer.from_arrays(changed).fingerprint != quantizer.fingerprint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("start_mean", np.zeros(3, np.float32)),
        ("start_basis", np.full((DIM, DIM), np.nan, np.float32)),
        ("end_step", np.zeros(4, np.float32)),
        ("end_lowest", np.zeros((2, 2), np.float32)),
        ("start_key_wide", np.array(9, np.int32)),
        ("start_key_wide", np.array([0, 1], np.int32)),
        ("start_inverse", np.zeros((2, 2), np.int64)),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(name: str, value: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        CompactQuantizer.from_arrays({**made_quantizer().arrays(), name: value})


def test_what_is_not_a_number_and_what_is_not_a_row_are_refused() -> None:
    code, rows = made_code(1, 6), made_rows(1, 3)
    rows[1, 2] = np.nan
    with pytest.raises(ValueError, match="not numbers"):
        code.encode(rows)
    packed = code.encode(made_rows(1, 3))
    for wrong in (packed[:, :-1], packed.astype(np.int16)):
        with pytest.raises(ValueError, match="bytes expected"):
            code.inner_products(made_rows(2, 1), wrong)
    with pytest.raises(ValueError, match="pairs"):
        dataclasses.replace(code.grid, wide=code.grid.wide + 1)
    for given_rows, asked, width in ((1, 5, 8), (5, 0, 8), (5, 5, 1)):
        with pytest.raises(ValueError, match="to fit"):
            fit_compact(made_rows(1, given_rows), made_rows(2, asked), width)
