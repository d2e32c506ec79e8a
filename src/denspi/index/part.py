"""A part: a folder of component files, written once, and the table that lists them with their checksums.

Segments, norms, frequencies and tombstones are all parts. A component is one file: little-endian values, row
after row, without a header; or a .npy file, stored as bytes. The manifest holds the checksum of the table.
"""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from denspi.errors import IndexDamagedError
from denspi.index.blocks import BLOCK_BYTES, BlockSums, Checked
from denspi.index.components import DTYPES, Component, PartRef
from denspi.index.directory import LEASED as TABLE
from denspi.index.directory import Directory
from denspi.index.jsonfields import Fields, canonical, parse_json

_CHUNK_BYTES = 1 << 22
_MOST_READ_BYTES = 1 << 15


class PartWriter:
    """Writes a part; nothing of it counts before `finish` has returned its reference."""

    def __init__(self, directory: Directory, folder: str) -> None:
        self.directory = directory
        self.folder = folder
        self.path = directory.make_folder(folder)
        self._components: list[Component] = []

    def array(self, name: str, dtype: DTypeLike, *row_shape: int) -> ComponentWriter:
        """A new component to append rows to."""
        file = self.directory.create_file(self.folder, name)
        return ComponentWriter(self, file, name, np.dtype(dtype), row_shape)

    def whole(self, name: str, values: NDArray[Any]) -> None:
        """A new component, written at once."""
        with self.array(name, values.dtype, *values.shape[1:]) as writer:
            writer.append(values)

    def adopt(self, name: str) -> None:
        """Take in a file that someone else has written into `path`."""
        sums = BlockSums()
        with self.directory.open_file(self.folder, name) as file:
            while piece := file.read(_CHUNK_BYTES):
                sums.add(piece)
        self.add(Component(name, "uint8", (sums.size_bytes,), sums.array()))

    def adopt_arrays(self) -> None:
        """Take in all .npy files in `path`."""
        for path in sorted(self.path.glob("*.npy")):
            self.adopt(path.name)

    def add(self, component: Component) -> None:
        """List a component whose file is complete."""
        self._components.append(component)

    def finish(self) -> PartRef:
        """Write the table and bring everything onto the disk."""
        listed = sorted(self._components, key=lambda each: each.name)
        content = canonical(
            {"block_bytes": BLOCK_BYTES, "components": [component.encoded() for component in listed]}
        )
        with self.directory.create_file(self.folder, TABLE) as file, self.directory.reporting():
            file.write(content)
            file.flush()
        self.directory.sync(self.folder, [*(each.name for each in listed), TABLE])
        return PartRef(self.folder, len(content), hashlib.sha256(content).hexdigest())


class ComponentWriter:
    """Appends rows to one component; a context manager."""

    def __init__(
        self, part: PartWriter, file: BinaryIO, name: str, dtype: np.dtype[Any], row_shape: tuple[int, ...]
    ) -> None:
        self._part, self._file, self._name = part, file, name
        self.dtype, self._row_shape = dtype, row_shape
        self._sums = BlockSums()
        self.length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Add rows at the end; their values must fit the type."""
        content = np.ascontiguousarray(values, self.dtype.newbyteorder("<"))
        assert content.shape[1:] == self._row_shape, (self._name, content.shape)
        self.length += len(content)
        if content.size:
            view = content.reshape(-1).view(np.uint8).data
            self._sums.add(view)
            with self._part.directory.reporting():
                self._file.write(view)

    def close(self) -> None:
        """Complete the file and list it."""
        with self._part.directory.reporting():
            self._file.close()
        shape = (self.length, *self._row_shape)
        self._part.add(Component(self._name, self.dtype.name, shape, self._sums.array()))

    def __enter__(self) -> ComponentWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            _close_quietly(self._file)


class PartReader:
    """A part of some generation. Opening reads the table alone; it cannot be deleted while this lives."""

    def __init__(self, directory: Directory, ref: PartRef) -> None:
        lease = directory.lease(ref.folder)
        if lease is None:
            raise PartGoneError(
                f"{directory.path / ref.folder}: missing or no folder; the index is damaged, restore it "
                "from a copy or build it again"
            )
        self._lease = lease
        self.directory = directory
        self.ref = ref
        self.path: Path = directory.path / ref.folder
        try:
            self._components = {each.name: each for each in self._read_table()}
        except BaseException:
            self.release()
            raise
        self._opened: dict[str, Checked] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the table has a component of this name."""
        return name in self._components

    @property
    def components(self) -> tuple[Component, ...]:
        """What the table lists."""
        return tuple(self._components.values())

    @property
    def size_bytes(self) -> int:
        """Bytes on the disk, the table included."""
        return self.ref.table_bytes + sum(each.size_bytes for each in self._components.values())

    def get(self, name: str, *dtypes: str, columns: int | None = None) -> Checked:
        """The component `name`, which must have one of these types and as many columns."""
        found = self._components.get(name)
        where = f"{self.path / name}"
        if found is None:
            raise IndexDamagedError(
                f"{where}: missing from the table; the index is damaged, restore it from a copy or "
                "build it again"
            )
        row_shape = () if columns is None else (columns,)
        if found.dtype not in dtypes or found.shape[1:] != row_shape:
            raise IndexDamagedError(
                f"{where}: holds {found.dtype} of shape {found.shape}, expected {' or '.join(dtypes)} with "
                f"rows of shape {row_shape}; the index is damaged"
            )
        opened = self._opened.get(name)
        if opened is None:
            opened = self._opened[name] = self._open(found)
        return opened

    def length(self, name: str) -> int:
        """How many rows the table says that a component has; 0 where it has no bytes that vouch for any."""
        found = self._components.get(name)
        return found.shape[0] if found and found.size_bytes else 0

    def check_all(self) -> None:
        """Check every byte of every component, without keeping them in memory or open.

        A mapped component has a descriptor: checking hundreds of parts must not end with all of them.
        """
        for each in self.components:
            (self._opened.get(each.name) or self._open(each)).check_all()

    def release(self) -> None:
        """Allow the part to be deleted; what is mapped stays readable, what is not yet may be gone."""
        self._lease.close()

    def _open(self, component: Component) -> Checked:
        content = self._content(component)
        mapping = content if isinstance(content, mmap.mmap) else None
        stored = np.frombuffer(content, np.uint8)
        values = stored.view(DTYPES[component.dtype].newbyteorder("<")).reshape(component.shape)
        return Checked(str(self.path / component.name), values, stored, component.sums, mapping)

    def _content(self, component: Component) -> mmap.mmap | bytes:
        """Mapped, which keeps a descriptor; but read where it is small, so that many parts can be open."""
        path = self.path / component.name
        try:
            with self.directory.open_file(self.ref.folder, component.name) as file:
                size = file.seek(0, 2)
                if size != component.size_bytes:
                    raise IndexDamagedError(
                        f"{path}: has {size} bytes instead of {component.size_bytes}; restore the index from "
                        "a copy or build it again"
                    )
                with self.directory.reporting():
                    if size <= _MOST_READ_BYTES:
                        file.seek(0)
                        return file.read(size)
                    return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise IndexDamagedError(
                f"{path}: missing; restore the index from a copy or build it again"
            ) from None

    def _read_table(self) -> list[Component]:
        where = str(self.path / TABLE)
        content = self.directory.read(self.ref.folder, TABLE, self.ref.table_bytes)
        if content is None or hashlib.sha256(content).hexdigest() != self.ref.table_sha256:
            raise IndexDamagedError(
                f"{where}: is not the one that the manifest names; restore the index from a copy"
            )
        table = Fields(parse_json(content, where), where)
        if table.count("block_bytes") != BLOCK_BYTES:
            raise table.damaged("block_bytes", str(BLOCK_BYTES))
        return [Component.of(each) for each in table.each("components")]


class PartGoneError(IndexDamagedError):
    """A part that a manifest names is not there: damage, unless the manifest has been replaced meanwhile."""


def _close_quietly(file: BinaryIO) -> None:
    try:
        file.close()
    except OSError:  # the first failure is the one to report
        return
