"""Arrays as .npy files: written piece by piece, opened as memory maps, checked. Never pickles.

A file that is missing, cut short, of another type or shape is an InputError that names the file.
Durability (fsync, rename) is the caller's business.
"""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError
from types import TracebackType
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import DTypeLike, NDArray

from denspi.errors import InputError


class ArrayWriter:
    """Appends to one one-dimensional .npy file; the header gets its true length at the end."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.length = 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        """Add `values` at the end; they must fit the type of the file."""
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).data)
        self.length += len(values)

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                self._file.seek(0)
                self._write_header()  # numpy pads headers for a length of any size: the same bytes long

    def _write_header(self) -> None:
        description = npy_format.dtype_to_descr(self.dtype)
        npy_format.write_array_header_1_0(
            self._file, {"descr": description, "fortran_order": False, "shape": (self.length,)}
        )


def write_array(path: Path, values: NDArray[Any]) -> None:
    """One array, written whole and little-endian."""
    with ArrayWriter(path, values.dtype) as writer:
        writer.append(values)


def open_array(path: Path, *dtypes: DTypeLike) -> NDArray[Any]:
    """A memory map of a one-dimensional array that has one of `dtypes`. The header may be a stranger's."""
    try:
        with path.open("rb") as file:
            if npy_format.read_magic(file) != (1, 0):
                raise ValueError("another version of the format")
            shape, fortran_order, dtype = npy_format.read_array_header_1_0(file)
            data_bytes, offset = path.stat().st_size - file.tell(), file.tell()
    except FileNotFoundError:
        raise InputError(f"{path}: missing; the sparse index is incomplete, rebuild it") from None
    except (OSError, ValueError, EOFError, TypeError, SyntaxError, TokenError, MemoryError) as error:
        finding = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: not a readable array ({finding}); rebuild the sparse index") from None
    if len(shape) != 1 or fortran_order or dtype not in [np.dtype(each) for each in dtypes]:
        expected = " or ".join(str(np.dtype(each)) for each in dtypes)
        raise InputError(f"{path}: holds something other than a list of {expected}; rebuild the sparse index")
    require(shape[0] * dtype.itemsize == data_bytes, path, f"has {data_bytes} bytes for {shape[0]} values")
    if not data_bytes:  # nothing can be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, "r", offset, shape).view(np.ndarray)


def require(holds: bool | np.bool_, path: Path, finding: str) -> None:
    """Raise unless `holds`: one line that names the file and what is wrong in it."""
    if not holds:
        raise InputError(f"{path}: {finding}; the file is damaged, rebuild the sparse index")
