"""How long one question takes to meet a row of each code, on one core: numpy as shipped, and a compiled loop.

The codes take turns and the fastest of several rounds counts, so that what else the machine does hits all of
them alike; read the figures as ratios.
"""

from __future__ import annotations

import time

import numba
import numpy as np

from denspi.dense.compact_fit import fit_compact
from denspi.dense.quantizer import fit_code

_ROWS, _ROUNDS, _BLOCK = 400_000, 7, 2048
_CORRECTIONS = np.exp2((np.arange(256) - 128) / 128).astype(np.float32)


def scan_speeds(rows, questions) -> list[dict[str, float | str]]:
    """Nanoseconds a row for int8 and for compact codes of several sizes."""
    chosen = np.random.default_rng(0).integers(0, len(rows), _ROWS)
    int8 = fit_code(rows)
    codes = int8.encode(rows)[chosen]
    asked = questions[:1]
    weights = asked[0] * int8.scale
    ways = {
        ("int8", codes.shape[1]): (
            lambda: _int8_numpy(codes, weights),
            lambda: _int8_compiled(codes, weights),
        )
    }
    for size in (112, 80, 56, 32):
        code = fit_compact(rows, questions, size)
        packed = code.encode(rows)[chosen]
        prepared = (asked[0] @ code.inverse.T) * code.grid.step
        wide, low, high = (
            prepared[: code.grid.wide],
            prepared[code.grid.wide : code.grid.bytes_per_row],
            prepared[code.grid.bytes_per_row :],
        )
        ways["compact", size] = (
            lambda code=code, packed=packed: code.inner_products(asked, packed),
            lambda packed=packed, wide=wide, low=low, high=high: _compact_compiled(
                packed, wide, low, high, _CORRECTIONS
            ),
        )
    times = {name: [np.inf, np.inf] for name in ways}
    for turn in range(_ROUNDS + 1):
        for name, functions in ways.items():
            for n, function in enumerate(functions):
                began = time.perf_counter()
                function()
                if turn:  # the first compiles
                    times[name][n] = min(times[name][n], (time.perf_counter() - began) / _ROWS * 1e9)
    return [
        {"code": name, "vector_bytes": size, "numpy_ns": numpy_ns, "compiled_ns": compiled_ns}
        for (name, size), (numpy_ns, compiled_ns) in times.items()
    ]


def _int8_numpy(codes, weights):
    found = np.empty(len(codes), np.float32)
    for first in range(0, len(codes), _BLOCK):
        found[first : first + _BLOCK] = codes[first : first + _BLOCK].astype(np.float32) @ weights
    return found


@numba.njit(fastmath=True)
def _int8_compiled(codes, weights):
    found = np.empty(len(codes), np.float32)
    for i in range(len(codes)):
        total = np.float32(0)
        for d in range(codes.shape[1]):
            total += weights[d] * np.float32(codes[i, d])
        found[i] = total
    return found


@numba.njit(fastmath=True)
def _compact_compiled(packed, wide, low, high, corrections):
    found = np.empty(len(packed), np.float32)
    for i in range(len(packed)):
        first, second, third = np.float32(0), np.float32(0), np.float32(0)
        row, pairs = packed[i, 1 : 1 + len(wide)], packed[i, 1 + len(wide) :]
        for d in range(len(wide)):
            first += wide[d] * np.float32(row[d])
        for d in range(len(low)):
            second += low[d] * np.float32(pairs[d] & 15)
            third += high[d] * np.float32(pairs[d] >> 4)
        found[i] = (first + second + third) * corrections[packed[i, 0]]
    return found
