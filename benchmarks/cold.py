"""The first question after an index is opened, with none of its bytes in memory.

Before each question the index is closed and the kernel is asked to drop the pages of every file of it
(posix_fadvise, POSIX_FADV_DONTNEED); how much of it is still in memory then, because another process has it
mapped, is measured (mincore) and told. The model and the compiled loops stay loaded: they belong to no index.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from denspi import Index
from denspi.dense.encoder import PhraseEncoder
from denspi.index.snapshot import Snapshot
from denspi.search.searcher import Searcher
from denspi.search.strategies import STRATEGIES
from machine import percentiles


class OpenedAnew:
    """An index that was just opened, with an encoder that was not: see `Searchable`."""

    def __init__(self, folder: Path, encoder: PhraseEncoder) -> None:
        self._index, self._encoder = Index.open(folder), encoder

    def snapshot(self) -> Snapshot:
        """The newest generation."""
        return self._index.snapshot()

    def encoder(self) -> PhraseEncoder:
        """The one that is loaded."""
        return self._encoder


def measure_cold(folder: Path, encoder: PhraseEncoder, questions: Sequence[str]) -> dict[str, Any]:
    """Milliseconds by strategy; every question finds the index closed and its pages dropped."""
    found: dict[str, Any] = {"questions": len(questions), "strategies": {}}
    resident = []
    gc.collect()  # what is still mapped cannot be dropped
    for name in STRATEGIES:
        first_ms, opening_ms = [], []
        for question in questions:
            drop_pages(folder)
            resident.append(resident_share(folder))
            started = time.perf_counter()
            searcher = Searcher(OpenedAnew(folder, encoder), compiled=True)
            opened = time.perf_counter()
            searcher.ask(question, strategy=name)
            first_ms.append(1000 * (time.perf_counter() - opened))
            opening_ms.append(1000 * (opened - started))
            del searcher
            gc.collect()
        found["strategies"][name] = {
            "opening_ms": percentiles(opening_ms),
            "first_question_ms": percentiles(first_ms),
        }
    found["resident_percent_after_dropping"] = round(100 * float(np.mean(resident)), 2) if resident else None
    return found


def drop_pages(folder: Path) -> None:
    for path in files_of(folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def resident_share(folder: Path) -> float:
    """How much of all files lies in memory."""
    mincore = ctypes.CDLL(None, use_errno=True).mincore
    pages = resident = 0
    for path in files_of(folder):
        size = path.stat().st_size
        if not size:
            continue
        # Private, so that ctypes may take the address; nothing is written.
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as mapped:
            count = -(-size // mmap.PAGESIZE)
            flags = (ctypes.c_ubyte * count)()
            anchor = ctypes.c_char.from_buffer(mapped)
            mincore(ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(size), flags)
            del anchor
            pages, resident = pages + count, resident + sum(flag & 1 for flag in flags)
    return resident / max(1, pages)


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
