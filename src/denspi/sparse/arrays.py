"""Arrays as .npy files: written piece by piece, opened as memory maps, checked. Never pickles.

A file that is missing, cut short, of another type or shape is an InputError that names the file.
Durability (fsync, rename) is the caller's business.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from types import TracebackType
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import DTypeLike, NDArray

from denspi.errors import TOO_MANY_FILES, InputError, StorageError

_HEADER_LIMIT_BYTES = 10 + (1 << 16)  # magic, version, length, and what two bytes can count
_ALIGNMENT_BYTES = 8
_UNREADABLE = (ValueError, EOFError, TypeError, SyntaxError, TokenError, MemoryError, RecursionError)


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


class ArrayDamagedError(InputError):
    """A stored array is missing or is not what it should be; `finding` is without the next step."""

    def __init__(self, path: Path, finding: str) -> None:
        self.finding = f"{path}: {finding}"
        super().__init__(f"{self.finding}; the file is damaged, rebuild the sparse index")


def map_file(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file, as a memory map."""
    try:
        is_empty = not path.stat().st_size  # nothing can be mapped
        return np.zeros(0, np.uint8) if is_empty else np.memmap(path, np.uint8, "r").view(np.ndarray)
    except FileNotFoundError:
        raise ArrayDamagedError(path, "missing") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise StorageError(f"{path}: {TOO_MANY_FILES}") from None
        raise ArrayDamagedError(path, f"not readable ({error})") from None


Source = Callable[[Path], NDArray[np.uint8]]
"""Gives the bytes of a file: `map_file`, or one of an index, which opens only what it has checksums of."""


def open_array(path: Path, *dtypes: DTypeLike, source: Source = map_file) -> NDArray[Any]:
    """A view of a one-dimensional array that has one of `dtypes`. The header may be a stranger's."""
    stored = source(path)
    file = BytesIO(stored[:_HEADER_LIMIT_BYTES].tobytes())
    try:
        if npy_format.read_magic(file) != (1, 0):
            raise ValueError("another version of the format")
        shape, fortran_order, dtype = npy_format.read_array_header_1_0(file)
    except _UNREADABLE as error:
        finding = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ArrayDamagedError(path, f"not a readable array ({finding[:100]})") from None
    if len(shape) != 1 or fortran_order or dtype not in [np.dtype(each) for each in dtypes]:
        expected = " or ".join(str(np.dtype(each)) for each in dtypes)
        raise ArrayDamagedError(path, f"holds something other than a list of {expected}")
    values = stored[file.tell() :]
    require(shape[0] * dtype.itemsize == len(values), path, f"has {len(values)} bytes for {shape[0]} values")
    require(file.tell() % _ALIGNMENT_BYTES == 0, path, "not aligned")
    return values.view(dtype)


def require(holds: bool | np.bool_, path: Path, finding: str) -> None:
    """Raise unless `holds`: one line that names the file and what is wrong in it."""
    if not holds:
        raise ArrayDamagedError(path, finding)
