"""What a table says of the files of a part, and a manifest of a part. Pure; both may come from a stranger."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.index.blocks import block_count
from denspi.index.jsonfields import Fields

DTYPES = {name: np.dtype(name) for name in ("int8", "uint8", "uint16", "uint32", "uint64", "float32")}
PART_NAME = re.compile(r"[0-9]{6,12}-(segment|norms|fit|tombstones|lists)")
_COMPONENT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,60}(\.npy)?")
TABLE_LIMIT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class PartRef:
    """What a manifest says of a part: its folder, and the size and SHA-256 of its table."""

    folder: str
    table_bytes: int
    table_sha256: str

    def encoded(self) -> dict[str, object]:
        """As JSON."""
        return {
            "folder": self.folder,
            "table_bytes": self.table_bytes,
            "table_sha256": self.table_sha256,
        }

    @classmethod
    def of(cls, fields: Fields) -> PartRef:
        """From JSON; the folder's name is checked, so no path leaves the index."""
        folder = fields.text("folder")
        if not PART_NAME.fullmatch(folder):
            raise fields.damaged("folder", "the name of a part")
        return cls(folder, fields.count("table_bytes", TABLE_LIMIT_BYTES), fields.text("table_sha256", 64))


@dataclass(frozen=True, slots=True)
class Component:
    """One entry of a table."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    sums: NDArray[np.uint32]  # [block]

    @property
    def size_bytes(self) -> int:
        """What shape and type need."""
        size = DTYPES[self.dtype].itemsize
        for length in self.shape:
            size *= length
        return size

    @property
    def columns(self) -> int | None:
        """Values in a row; None where a row is one value."""
        return self.shape[1] if len(self.shape) > 1 else None

    def encoded(self) -> dict[str, object]:
        """As JSON; sums as eight hexadecimal digits each."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "bytes": self.size_bytes,
            "checksums": self.sums.astype(">u4").tobytes().hex(),
        }

    @classmethod
    def of(cls, fields: Fields) -> Component:
        """From JSON, with everything that can be checked without the file."""
        name, dtype, shape = fields.text("name"), fields.text("dtype"), fields.counts("shape")
        if not _COMPONENT_NAME.fullmatch(name):
            raise fields.damaged("name", "the name of a component")
        if dtype not in DTYPES:
            raise fields.damaged("dtype", f"one of {', '.join(DTYPES)}")
        if not 1 <= len(shape) <= 2:
            raise fields.damaged("shape", "one or two lengths")
        size, digits = fields.count("bytes", 1 << 50), fields.text("checksums", TABLE_LIMIT_BYTES)
        component = cls(name, dtype, shape, np.zeros(0, np.uint32))
        if size != component.size_bytes:
            raise fields.damaged("bytes", f"{component.size_bytes}, as its shape needs")
        if len(digits) != 8 * block_count(size) or not re.fullmatch("[0-9a-f]*", digits):
            raise fields.damaged("checksums", f"{block_count(size)} checksums")
        sums = np.frombuffer(bytes.fromhex(digits), ">u4").astype(np.uint32)
        return cls(name, dtype, shape, sums)
