"""Headers of arrays from a stranger: one line that names the file, whatever they say."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from denspi.errors import IndexDamagedError, InputError
from denspi.sparse.arrays import open_array, write_array
from denspi.sparse.table import CountTable

HEADER = "{{'descr':{descr},'fortran_order':False,'shape':({shape})}}"


@pytest.mark.parametrize(
    ("descr", "shape"),
    [("'<u4'", shape) for shape in ("-" * 5000 + "1,", "[" * 190 + "]" * 190, "1" * 5000 + ",", "1j,", "-4,")]
    + [(descr, "0,") for descr in ("'|O'", "[('a','<u4')]", "'<U9999999999'", "','*5000", "('<u4',(2,))")],
)
def test_any_header(tmp_path: Path, descr: str, shape: str) -> None:
    path, header = tmp_path / "x.npy", HEADER.format(descr=descr, shape=shape).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(InputError, match=r"x\.npy") as told:
        open_array(path, np.uint32)
    assert "\n" not in str(told.value)


def test_values_that_are_not_aligned(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    write_array(path, np.arange(4, dtype=np.uint32))
    content = path.read_bytes()
    (length,) = struct.unpack("<H", content[8:10])
    header = content[10 : 10 + length - 1] + b" \n"
    path.write_bytes(content[:8] + struct.pack("<H", length + 1) + header + content[10 + length :])
    with pytest.raises(InputError, match="not aligned"):
        open_array(path, np.uint32)


def test_a_large_count_that_is_missing(tmp_path: Path) -> None:
    ids = np.arange(0, 1 << 20, 1 << 15, dtype=np.uint32)
    CountTable.of(ids, np.full(len(ids), 7)).save(tmp_path, "t")
    write_array(tmp_path / "t-small.npy", np.full(len(ids), 255, np.uint8))
    table = CountTable.open(tmp_path, "t")
    assert table.finding() is not None
    with pytest.raises(IndexDamagedError, match="index is damaged"):
        table.look_up(ids)
