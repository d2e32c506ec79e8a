"""Which kernels search an index: by the precision of its rows, and by what is installed."""

from __future__ import annotations

from denspi.index.manifest import ModelRecord
from denspi.search.compact_kernels import SCORE_DIM, CompactKernels
from denspi.search.compact_numbers import compact_products
from denspi.search.kernels import Kernels, compiled_kernels, fastest_kernels, numpy_kernels
from denspi.search.numpy_kernels import NumpyKernels, Products


def kernels_of(model: ModelRecord, compiled: bool | None = None) -> Kernels:
    """Compiled ones or numpy's, as asked for; by default the fastest that can be had."""
    is_compact = model.precision == "compact"
    sizes = SCORE_DIM if is_compact else model.vector_dim, model.coherency_dim
    if compiled is None:
        found = fastest_kernels(*sizes)
    else:
        found = compiled_kernels(*sizes) if compiled else numpy_kernels()
    return CompactKernels(found, _products_beside(found)) if is_compact else found


def _products_beside(kernels: Kernels) -> Products:
    if isinstance(kernels, NumpyKernels):
        return compact_products
    from denspi.search.compiled_compact import compiled_compact_products

    return compiled_compact_products
