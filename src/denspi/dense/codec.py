"""How rows are stored, whatever the precision: floats to codes, codes to floats, questions times codes. Pure.

`Quantizer` (int8) and `CompactQuantizer` (compact) are the two codecs. Whoever stores rows or reads stored
ones needs no more than this page of them. Also owns the file that a codec is in a model folder.
"""

from __future__ import annotations

import dataclasses
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from denspi.errors import ModelError
from denspi.vectors import Floats, ParagraphVectors

Made = TypeVar("Made")


class RowCode(Protocol):
    """The code of one kind of row."""

    @property
    def dim(self) -> int:
        """Values in a row."""

    @property
    def bytes_per_row(self) -> int:
        """What a row of codes takes."""

    def encode(self, rows: Floats, /) -> NDArray[Any]:
        """Codes ``[row, bytes_per_row]`` of rows ``[row, dim]``; `ValueError` on what is not a number."""

    def decode(self, codes: NDArray[Any], /) -> Floats:
        """Rows ``[row, dim]`` of codes ``[row, bytes_per_row]``, in float32."""


class VectorCode(RowCode, Protocol):
    """The code of start vectors, or of end vectors."""

    def inner_products(self, questions: Floats, codes: NDArray[Any], /) -> Floats:
        """``[question, row]``: questions ``[question, dim]`` times stored rows, which are not decoded."""


class RowCodec:
    """The codes of all that an index stores of a phrase model, under one precision."""

    __slots__ = ()
    precision: ClassVar[str]  # what the manifest of an index calls it
    start: VectorCode
    end: VectorCode
    start_key: RowCode
    end_key: RowCode

    @property
    def fingerprint(self) -> str:
        """The same for two codecs exactly if they give the same codes and read them alike."""
        raise NotImplementedError

    @property
    def vector_bytes(self) -> int:
        """What the codes of one start vector take; those of an end vector take as much."""
        return self.start.bytes_per_row

    @property
    def key_bytes(self) -> int:
        """What the codes of one coherency key take."""
        return self.start_key.bytes_per_row

    def fits(self, vector_dim: int, coherency_dim: int) -> bool:
        """Whether it was made for vectors and keys of these sizes."""
        sizes = [code.dim for code in (self.start, self.end, self.start_key, self.end_key)]
        return sizes == [vector_dim, vector_dim, coherency_dim, coherency_dim]

    def stored(self, paragraph: ParagraphVectors) -> ParagraphVectors:
        """The paragraph as it comes back from an index: every row encoded and decoded."""
        return dataclasses.replace(
            paragraph,
            starts=self.start.decode(self.start.encode(paragraph.starts)),
            ends=self.end.decode(self.end.encode(paragraph.ends)),
            start_keys=self.start_key.decode(self.start_key.encode(paragraph.start_keys)),
            end_keys=self.end_key.decode(self.end_key.encode(paragraph.end_keys)),
        )


def save_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write a .npz; the same bytes for the same arrays."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_arrays(path: Path, make: Callable[[Mapping[str, NDArray[Any]]], Made], what: str) -> Made:
    """What `make` makes of the arrays of a .npz; `ModelError`, which says `what` it is not, if it cannot."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return make(arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{path}: not {what} ({first}); copy or train the model again") from None
