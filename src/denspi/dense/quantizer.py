"""float32 <-> int8, one scale and offset per dimension (the paper's "Quantization").

    value = offset + scale * code,   code in -128..127

Fitted once in training and shipped with the model, never fitted to a corpus: codes of all indexes of a model
can be compared, and an inner product needs no decoding: q . value = q . offset + (q * scale) . code.
Inside the range a value comes back within half a step (`Int8Code.max_error`); outside it saturates.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from denspi.dense.codec import RowCodec, load_arrays, save_arrays
from denspi.vectors import Floats

Codes = NDArray[np.int8]
QUANTIZER = "quantizer.npz"
"""Its file in a model folder."""

_LOWEST, _HIGHEST = -128, 127
_BLOCK = 2048  # rows that are turned into floats at a time: they stay in the cache
# Measured on the small model (experiments/quantizer_ranges.py): the best phrases of questions lie at the ends
# of the ranges, so cutting them at quantiles, however small, costs more than finer steps give; a little more
# room than the fitted rows had costs least.
_ROOM = 1.1
# An outlier is no part of the range where it lies this many times as far out as one value in a thousand;
# trained dimensions stay below 2.
_OUTLIER = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Int8Code:
    """Scale and offset of every dimension of one kind of vector."""

    scale: Floats  # [dim], positive
    offset: Floats  # [dim], the value of code 0

    def __post_init__(self) -> None:
        if self.scale.ndim != 1 or self.scale.shape != self.offset.shape:
            raise ValueError("scale and offset are one row of the same length")
        if not (np.isfinite(self.scale).all() and np.isfinite(self.offset).all() and (self.scale > 0).all()):
            raise ValueError("scales are positive, offsets finite")

    @property
    def dim(self) -> int:
        """Values in a row."""
        return len(self.scale)

    @property
    def bytes_per_row(self) -> int:
        """What a row of codes takes: a byte for each value."""
        return len(self.scale)

    @property
    def max_error(self) -> Floats:
        """Half a step ``[dim]``: how far a value inside the range comes back from where it was, at most."""
        return self.scale * np.float32(0.5)

    @property
    def lowest(self) -> Floats:
        """The lower end of the range ``[dim]``; what lies below comes back as this."""
        return self.offset + self.scale * np.float32(_LOWEST)

    @property
    def highest(self) -> Floats:
        """The upper end of the range ``[dim]``."""
        return self.offset + self.scale * np.float32(_HIGHEST)

    def encode(self, rows: Floats) -> Codes:
        """Codes ``[..., dim]`` of rows ``[..., dim]``; `ValueError` on what is not a number."""
        codes = np.rint((rows - self.offset) / self.scale)
        if np.isnan(codes).any():
            raise ValueError("a vector holds values that are not numbers")
        saturated: Codes = codes.clip(_LOWEST, _HIGHEST).astype(np.int8)
        return saturated

    def decode(self, codes: Codes) -> Floats:
        """Rows ``[..., dim]`` of codes ``[..., dim]``."""
        return self.offset + self.scale * codes.astype(np.float32)

    def inner_products(self, questions: Floats, codes: Codes) -> Floats:
        """``[question, row]``: questions ``[question, dim]`` times rows of codes, which are not decoded."""
        weights, shift = questions * self.scale, questions @ self.offset
        products = np.empty((len(questions), len(codes)), np.float32)
        for first in range(0, len(codes), _BLOCK):
            block = codes[first : first + _BLOCK].astype(np.float32)
            products[:, first : first + _BLOCK] = weights @ block.T + shift[:, None]
        return products


@dataclass(frozen=True, slots=True, eq=False)
class Quantizer(RowCodec):
    """The codec of an int8 index."""

    precision: ClassVar[str] = "int8"
    start: Int8Code
    end: Int8Code
    start_key: Int8Code
    end_key: Int8Code

    @property
    def fingerprint(self) -> str:
        """The same for two quantizers exactly if they give the same codes and read them alike."""
        digest = hashlib.sha256()
        for name, array in sorted(_arrays(self).items()):
            digest.update(f"{name} {len(array)} ".encode() + array.astype("<f4").tobytes())
        return digest.hexdigest()


def fit_code(rows: Floats) -> Int8Code:
    """A range for each dimension of rows ``[row, dim]``: least to greatest value, and a tenth of that more.

    Far outliers are left out, so that a few of them do not make every step coarse; they saturate.
    """
    if not len(rows):
        raise ValueError("no row to fit a quantizer to")
    low, middle, high = np.quantile(rows, [0.001, 0.5, 0.999], axis=0)
    lowest, highest = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    lowest = np.where(low < middle, np.maximum(lowest, middle - _OUTLIER * (middle - low)), lowest)
    highest = np.where(high > middle, np.minimum(highest, middle + _OUTLIER * (high - middle)), highest)
    more = (highest - lowest) * (_ROOM - 1) / 2
    return _between(lowest - more, highest + more)


def save_quantizer(quantizer: Quantizer, path: Path) -> None:
    """Write a .npz of eight arrays; the same bytes for the same quantizer."""
    save_arrays(_arrays(quantizer), path)


def load_quantizer(path: Path) -> Quantizer:
    """What `save_quantizer` wrote, or `ModelError`."""
    return load_arrays(path, _of_arrays, "a quantizer")


def _of_arrays(arrays: Mapping[str, NDArray[Any]]) -> Quantizer:
    codes = [
        Int8Code(*(np.asarray(arrays[f"{field.name}_{part}"], np.float32) for part in ("scale", "offset")))
        for field in dataclasses.fields(Quantizer)
    ]
    return Quantizer(*codes)


def _arrays(quantizer: Quantizer) -> dict[str, Floats]:
    codes = {field.name: getattr(quantizer, field.name) for field in dataclasses.fields(quantizer)}
    return {
        f"{name}_{part}": getattr(code, part) for name, code in codes.items() for part in ("scale", "offset")
    }


def _between(low: NDArray[np.floating], high: NDArray[np.floating]) -> Int8Code:
    scale = ((high - low) / (_HIGHEST - _LOWEST)).astype(np.float32)
    varies = scale >= np.finfo(np.float32).tiny
    scale = np.where(varies, scale, np.float32(1))  # a dimension that never varies is code 0
    offset = np.where(varies, low - scale * np.float64(_LOWEST), low).astype(np.float32)
    return Int8Code(scale, offset)
