"""Row maxima for many questions at once, compiled: in a vector register lie questions, not dimensions.

With the dimensions in the lanes, as for one question, every product ends in a sum across its register, which
costs as much as the product. Here nothing is summed across, and a row is widened once for all questions.
Nothing imports this unasked, as `compiled`. The numbers are integers of 32 bits, the same as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from denspi.search.kernels import NO_ROW

LANES = 16
"""Questions in a register of 512 bits; where registers are shorter, the compiler takes several."""
FEWEST_QUESTIONS = 8
"""From so many on, lanes that stand empty cost less than sums across registers would."""
_ROWS = 4  # at once: as many sums are under way as a multiplication takes cycles
_CHUNK = 16 * _ROWS  # rows that are widened at a time and then stay in the nearest cache


def maxima_of_many(
    codes: NDArray[np.int8],  # [row, dim]
    offsets: NDArray[np.int64],  # [paragraph + 1]
    weights: NDArray[np.int16],  # [question, dim]
    is_wanted: NDArray[np.bool_],  # [paragraph]
) -> NDArray[np.int32]:
    """``[question, paragraph]`` see `kernels.Kernels.maxima`."""
    count, dim = weights.shape
    groups, pairs = -(-count // LANES), max(1, -(-dim // 2))
    filled = np.zeros((groups * LANES, 2 * pairs), np.int16)
    filled[:count, :dim] = weights
    packed = np.ascontiguousarray(filled.reshape(groups, LANES, pairs, 2).transpose(0, 2, 1, 3))
    found = np.full((len(is_wanted), groups * LANES), NO_ROW, np.int32)
    _maxima(codes, offsets, packed, is_wanted, np.zeros((_CHUNK, 2 * pairs), np.int16), found)
    return np.ascontiguousarray(found[:, :count].T)


def _raise_maxima(builder: Any, rows: Any, weights: Any, maxima: Any, pairs: Any) -> None:
    """The code of `_raise`: `_ROWS` sums of products of pairs, then the maxima of each lane.

    Plain vector code without a word about the processor: a sum of two products of 16 bits each is one
    instruction on those that have it (`vpmaddwd`, or `vpdpwssd`, which adds it up as well).
    """
    index, lane = ir.IntType(64), ir.IntType(32)
    sums, shorts, longs = (
        ir.VectorType(lane, LANES),
        ir.VectorType(ir.IntType(16), 2 * LANES),
        ir.VectorType(lane, 2 * LANES),
    )
    row_bytes = builder.mul(pairs, index(4))
    before = builder.block
    loop, after = builder.append_basic_block("pairs"), builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    pair = builder.phi(index)
    pair.add_incoming(index(0), before)
    totals = [builder.phi(sums) for _ in range(_ROWS)]
    place = builder.add(weights, builder.mul(pair, index(4 * LANES)))
    factors = builder.sext(builder.load(builder.inttoptr(place, shorts.as_pointer()), align=2), longs)
    following = []
    for row, total in enumerate(totals):
        begin = builder.add(rows, builder.mul(row_bytes, index(row)))
        place = builder.add(begin, builder.mul(pair, index(4)))
        both = builder.load(builder.inttoptr(place, lane.as_pointer()), align=2)
        first = builder.insert_element(ir.Constant(sums, ir.Undefined), both, lane(0))
        in_all_lanes = builder.shuffle_vector(first, first, ir.Constant(sums, [0] * LANES))
        values = builder.sext(builder.bitcast(in_all_lanes, shorts), longs)
        products = builder.mul(values, factors, flags=["nsw"])
        of_each = [
            builder.shuffle_vector(products, products, ir.Constant(sums, list(range(which, 2 * LANES, 2))))
            for which in (0, 1)
        ]
        total.add_incoming(ir.Constant(sums, [0] * LANES), before)
        following.append(builder.add(total, builder.add(*of_each)))
        total.add_incoming(following[-1], loop)
    next_pair = builder.add(pair, index(1))
    pair.add_incoming(next_pair, loop)
    builder.cbranch(builder.icmp_signed("<", next_pair, pairs), loop, after)
    builder.position_at_end(after)
    place = builder.inttoptr(maxima, sums.as_pointer())
    best = builder.load(place, align=4)
    for total in following:
        best = builder.select(builder.icmp_signed(">", total, best), total, best)
    builder.store(best, place, align=4)


@intrinsic
def _raise(typing: Any, rows: Any, weights: Any, maxima: Any, pairs: Any) -> Any:
    """Raise `maxima` of `LANES` questions by `_ROWS` rows; all are addresses but `pairs`, at least 1."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _raise_maxima(builder, *arguments)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp), codegen


@njit(cache=True, nogil=True)
def _maxima(codes, offsets, packed, is_wanted, wide, found):  # type: ignore[no-untyped-def]
    groups, pairs, dim = packed.shape[0], packed.shape[1], codes.shape[1]
    wide_address, row_bytes = wide.ctypes.data, 4 * pairs
    packed_address, group_bytes = packed.ctypes.data, 4 * LANES * pairs
    found_address = found.ctypes.data
    for paragraph in range(len(is_wanted)):
        if is_wanted[paragraph]:
            stop = offsets[paragraph + 1]
            for first in range(offsets[paragraph], stop, _CHUNK):
                count = min(_CHUNK, stop - first)
                for i in range(count):
                    for d in range(dim):
                        wide[i, d] = codes[first + i, d]
                # The last row once more changes no maximum.
                while count % _ROWS:
                    wide[count] = wide[count - 1]
                    count += 1
                for group in range(groups):
                    weights = packed_address + group * group_bytes
                    maxima = found_address + 4 * LANES * (paragraph * groups + group)
                    for i in range(0, count, _ROWS):
                        _raise(wide_address + i * row_bytes, weights, maxima, pairs)  # type: ignore[call-arg]
