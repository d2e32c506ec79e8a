"""The compact tier: rows of floats as a few dozen bytes, and inner products with them.

A row is turned into components that questions tell apart best (`compact_fit`), the strongest get 8 bits, the
next 4, the rest none; one byte more makes up for what the row lost in length. Fitted in training and shipped
with the model, never fitted to a corpus. docs/results/index-size.md says what it costs and what it beat.

One row of codes, bytes in this order:

    0                   correction: 2 ** ((byte - 128) / 128)
    1 .. wide           one component each, the strongest first
    wide + 1 ..         two components each: of the n that are left, number i in the low four bits of byte i
                        and number n / 2 + i in its high four

    component = lowest + step * code,   row = mean + correction * (components @ inverse)

There is no useful bound for a single row (a component that is left out may be large); `compact_error` states
the error on given rows and questions. Before the correction, a kept component is off by at most half a step
inside its range.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from denspi.dense.codec import RowCodec, load_arrays, save_arrays
from denspi.vectors import Floats

Bytes = NDArray[np.uint8]
COMPACT = "compact.npz"
"""Its file in a model folder."""

_BLOCK = 2048  # rows that are unpacked to floats at a time: they stay in the cache
CORRECTION = np.exp2((np.arange(256) - 128) / 128).astype(np.float32)
"""The factor that each byte of correction stands for; from doubles, or the last bit is the processor's."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Evenly spaced levels for each column, 256 for the first `wide` and 16 for the others."""

    lowest: Floats  # [column] the value of code 0
    step: Floats  # [column], positive
    wide: int

    def __post_init__(self) -> None:
        if self.lowest.ndim != 1 or self.lowest.shape != self.step.shape:
            raise ValueError("lowest and step are one row of the same length")
        if not (np.isfinite(self.lowest).all() and np.isfinite(self.step).all() and (self.step > 0).all()):
            raise ValueError("steps are positive, lowest values finite")
        if not 0 <= self.wide <= len(self.step) or (len(self.step) - self.wide) % 2:
            raise ValueError("columns of four bits come in pairs, after the wide ones")

    @property
    def dim(self) -> int:
        """Columns of a row."""
        return len(self.step)

    @property
    def bytes_per_row(self) -> int:
        """What a row of codes takes."""
        return self.wide + (len(self.step) - self.wide) // 2

    def encode(self, rows: NDArray[np.floating]) -> Bytes:
        """Bytes ``[row, bytes_per_row]`` of rows ``[row, column]``; `ValueError` on what is not a number."""
        codes = np.rint((rows - self.lowest.astype(np.float64)) / self.step)
        if np.isnan(codes).any():
            raise ValueError("a vector holds values that are not numbers")
        wide = codes[:, : self.wide].clip(0, 255).astype(np.uint8)
        narrow = codes[:, self.wide :].clip(0, 15).astype(np.uint8)
        half = narrow.shape[1] // 2
        return np.concatenate([wide, narrow[:, :half] | narrow[:, half:] << 4], axis=1)

    def unpack(self, packed: Bytes) -> Floats:
        """The codes ``[row, column]`` as floats, to be multiplied."""
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != self.bytes_per_row:
            raise ValueError(
                f"rows of {self.bytes_per_row} bytes expected, not {packed.dtype} {packed.shape}"
            )
        codes = np.empty((len(packed), len(self.step)), np.float32)
        narrow = packed[:, self.wide :]
        codes[:, : self.wide] = packed[:, : self.wide]
        codes[:, self.wide : self.bytes_per_row] = narrow & 15
        codes[:, self.bytes_per_row :] = narrow >> 4
        return codes

    def decode(self, packed: Bytes) -> Floats:
        """Rows ``[row, column]`` of bytes ``[row, bytes_per_row]``."""
        return self.lowest + self.step * self.unpack(packed)


@dataclass(frozen=True, slots=True, eq=False)
class CompactCode:
    """The code of one kind of vector: start or end."""

    mean: Floats  # [dim]
    basis: Floats  # [dim, component] to all components, the strongest first
    inverse: Floats  # [kept, dim] back from those that the grid keeps
    grid: Grid  # over the kept ones, the first of the components

    def __post_init__(self) -> None:
        dim, kept = len(self.mean), len(self.grid.step)
        if self.basis.shape != (dim, dim) or self.inverse.shape != (kept, dim) or kept > dim:
            raise ValueError("basis is [dim, dim] and inverse [kept, dim], with the grid's columns kept")
        if not all(np.isfinite(each).all() for each in (self.mean, self.basis, self.inverse)):
            raise ValueError("mean, basis and inverse are finite")

    @property
    def dim(self) -> int:
        """Values in a row."""
        return len(self.mean)

    @property
    def bytes_per_row(self) -> int:
        """What a row of codes takes, the correction included."""
        return 1 + self.grid.bytes_per_row

    def encode(self, rows: Floats) -> Bytes:
        """Bytes ``[row, bytes_per_row]`` of rows ``[row, dim]``; `ValueError` on what is not a number."""
        # In doubles, so that a row's codes do not depend on the rows that are multiplied beside it.
        components = (rows.astype(np.float64) - self.mean) @ self.basis
        kept = components[:, : len(self.grid.step)]
        packed = self.grid.encode(kept)
        # Scaled so that its product with the true row is right (as RaBitQ does): a question close to a row
        # would otherwise find it too far away, and those are the rows that matter.
        wanted = (components * components).sum(1)
        found = (kept * self.grid.decode(packed)).sum(1)
        ratio = np.divide(wanted, found, out=np.ones_like(wanted), where=(wanted > 0) & (found > 0))
        logarithm = np.log2(ratio.clip(0.5, 2))
        correction = np.rint(128 * logarithm + 128).clip(0, 255).astype(np.uint8)
        return np.concatenate([correction[:, None], packed], axis=1)

    def decode(self, packed: Bytes) -> Floats:
        """Rows ``[row, dim]`` of bytes ``[row, bytes_per_row]``."""
        components = self.grid.decode(packed[:, 1:]) * CORRECTION[packed[:, 0]][:, None]
        return np.asarray(components @ self.inverse + self.mean, np.float32)

    def inner_products(self, questions: Floats, packed: Bytes) -> Floats:
        """``[question, row]``: questions ``[question, dim]`` times rows of bytes, which are not decoded.

        question . row = question . mean + correction * (question' . lowest + (question' * step) . code),
        with question' = inverse @ question.
        """
        asked = questions @ self.inverse.T  # [question, kept]
        weights = (asked * self.grid.step).T
        shift, base = asked @ self.grid.lowest, questions @ self.mean
        products = np.empty((len(questions), len(packed)), np.float32)
        for first in range(0, len(packed), _BLOCK):
            block = packed[first : first + _BLOCK]
            found = self.grid.unpack(block[:, 1:]) @ weights + shift
            found *= CORRECTION[block[:, 0]][:, None]
            products[:, first : first + _BLOCK] = (found + base).T
        return products


@dataclass(frozen=True, slots=True, eq=False)
class CompactQuantizer(RowCodec):
    """The codec of a compact index."""

    precision: ClassVar[str] = "compact"
    start: CompactCode
    end: CompactCode
    start_key: Grid
    end_key: Grid

    def __post_init__(self) -> None:
        sides = ((self.start, self.start_key), (self.end, self.end_key))
        first, second = ((vector.bytes_per_row, key.bytes_per_row) for vector, key in sides)
        if first != second:
            raise ValueError(f"starts take {first} bytes a row and ends {second}; both take the same")

    @property
    def fingerprint(self) -> str:
        """The same for two quantizers exactly if they give the same codes and read them alike."""
        digest = hashlib.sha256()
        for name, array in sorted(self.arrays().items()):
            digest.update(f"{name} {array.shape} {array.dtype.str} ".encode() + array.tobytes())
        return digest.hexdigest()

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All of it as little-endian arrays by name, for a file."""
        found: dict[str, NDArray[np.generic]] = {}
        for name, code in (("start", self.start), ("end", self.end)):
            found |= _grid_arrays(name, code.grid)
            found |= {f"{name}_{part}": getattr(code, part).astype("<f4") for part in _CODE_PARTS}
        return found | _grid_arrays("start_key", self.start_key) | _grid_arrays("end_key", self.end_key)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> CompactQuantizer:
        """What `arrays` gave; `KeyError` or `ValueError` on anything else."""
        return cls(
            _code("start", arrays),
            _code("end", arrays),
            _grid("start_key", arrays),
            _grid("end_key", arrays),
        )


def save_compact(quantizer: CompactQuantizer, path: Path) -> None:
    """Write a .npz of all arrays; the same bytes for the same quantizer."""
    save_arrays(quantizer.arrays(), path)


def load_compact(path: Path) -> CompactQuantizer:
    """What `save_compact` wrote, or `ModelError`."""
    return load_arrays(path, CompactQuantizer.from_arrays, "a compact code")


_CODE_PARTS = ("mean", "basis", "inverse")


def _grid_arrays(name: str, grid: Grid) -> dict[str, NDArray[np.generic]]:
    return {
        f"{name}_lowest": grid.lowest.astype("<f4"),
        f"{name}_step": grid.step.astype("<f4"),
        f"{name}_wide": np.array(grid.wide, "<i4"),
    }


def _code(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> CompactCode:
    mean, basis, inverse = (_floats(arrays[f"{name}_{part}"]) for part in _CODE_PARTS)
    return CompactCode(mean, basis, inverse, _grid(name, arrays))


def _grid(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> Grid:
    lowest, step, wide = (arrays[f"{name}_{part}"] for part in ("lowest", "step", "wide"))
    if wide.shape != () or wide.dtype.kind != "i":
        raise ValueError(f"{name}_wide is not one integer")
    return Grid(_floats(lowest), _floats(step), int(wide[()]))


def _floats(array: NDArray[np.generic]) -> Floats:
    if array.dtype.kind != "f":
        raise ValueError(f"floats expected, not {array.dtype}")
    return np.asarray(array, np.float32)
