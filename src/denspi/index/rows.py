"""What an index stores of one paragraph, as arrays. Owns the record and its invariants; no I/O, no model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.errors import InputError

Codes = NDArray[np.int8] | NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class CodeLayout:
    """What the codes of an index look like, one row of a start or an end; what they mean, the model knows."""

    dtype: str  # int8 or uint8
    vector_bytes: int
    key_bytes: int


@dataclass(frozen=True, slots=True)
class ParagraphRows:
    """Rows ascend by word; characters count from the paragraph's own first character."""

    word_count: int
    start_words: NDArray[np.uint32]  # [start] number of the word in the paragraph
    start_chars: NDArray[np.uint32]  # [start] first character of that word
    starts: Codes  # [start, vector_bytes]
    start_keys: Codes  # [start, key_bytes]
    end_words: NDArray[np.uint32]  # [end]
    end_chars: NDArray[np.uint32]  # [end] one past the last character of that word
    ends: Codes  # [end, vector_bytes]
    end_keys: Codes  # [end, key_bytes]


def rows_of(offsets: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of these groups (paragraphs, lists), one after another; `offsets` is where each begins."""
    lengths = offsets[groups + 1] - offsets[groups]
    ends = np.cumsum(lengths)
    count = int(ends[-1]) if len(ends) else 0
    shifts = np.repeat(offsets[groups] - (ends - lengths), lengths)
    rows: NDArray[np.int64] = np.arange(count, dtype=np.int64) + shifts
    return rows


def check_rows(rows: ParagraphRows, characters: int, layout: CodeLayout, where: str) -> None:
    """Raise InputError unless `rows` can be the rows of a paragraph of so many characters; names `where`."""
    for side, words, chars, codes, keys in (
        ("start", rows.start_words, rows.start_chars, rows.starts, rows.start_keys),
        ("end", rows.end_words, rows.end_chars, rows.ends, rows.end_keys),
    ):
        count = len(words)
        if chars.shape != (count,) or words.ndim != 1:
            raise InputError(f"{where}: {count} {side} words but characters of shape {chars.shape}")
        if codes.shape != (count, layout.vector_bytes) or keys.shape != (count, layout.key_bytes):
            raise InputError(
                f"{where}: {side} rows of shape {codes.shape} and keys of shape {keys.shape}; this index has "
                f"({count}, {layout.vector_bytes}) and ({count}, {layout.key_bytes})"
            )
        if codes.dtype != layout.dtype or keys.dtype != layout.dtype:
            raise InputError(
                f"{where}: {side} rows are {codes.dtype} and {keys.dtype}; this index has {layout.dtype}"
            )
        if count and not _ascends_below(words, rows.word_count):
            raise InputError(f"{where}: {side} words do not ascend within {rows.word_count} words")
        if count and not 0 <= int(chars.min()) <= int(chars.max()) <= characters:
            raise InputError(f"{where}: {side} characters leave the paragraph of {characters} characters")


def _ascends_below(words: NDArray[np.integer], limit: int) -> bool:
    wide = words.astype(np.int64)
    return bool((wide[1:] > wide[:-1]).all()) and int(wide[0]) >= 0 and int(wide[-1]) < limit
