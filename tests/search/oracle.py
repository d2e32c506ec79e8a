"""The slow and obvious search: every phrase of every live paragraph, one by one, in Python's own numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from denspi.search.fixed_point import FixedQuestion, KeyTables
from denspi.search.kernels import Side


@dataclass(frozen=True)
class Phrase:
    score: float
    paragraph: int
    start_row: int
    end_row: int


def unpacked(content: bytes, columns: int) -> list[int]:
    """Codes of a compact row, as docs/index-format.md has them: bytes, then low halves, then high halves."""
    wide = 2 * len(content) - columns
    pairs = content[wide:]
    return [*content[:wide], *(pair % 16 for pair in pairs), *(pair // 16 for pair in pairs)]


def dot(codes: np.ndarray, weights: np.ndarray) -> int:
    """The score of a row."""
    if codes.dtype == np.uint8:
        *of_codes, shift = (int(weight) for weight in weights)
        row = unpacked(codes.tobytes()[1:], len(of_codes))
        total = shift + sum(code * weight for code, weight in zip(row, of_codes, strict=True))
        return total * round(2 ** ((int(codes[0]) - 128) / 128) * 2**20) // 2**20
    return sum(int(code) * int(weight) for code, weight in zip(codes, weights, strict=True))


def key_product(tables: KeyTables, start_key: np.ndarray, end_key: np.ndarray) -> int:
    columns = tables.start.shape[1]
    places = [
        unpacked(key.tobytes(), columns) if key.dtype == np.uint8 else [int(code) + 128 for code in key]
        for key in (start_key, end_key)
    ]
    return sum(
        int(tables.start[a, d]) * int(tables.end[b, d]) for d, (a, b) in enumerate(zip(*places, strict=True))
    )


def all_phrases(
    question: FixedQuestion,
    tables: KeyTables,
    starts: Side,
    ends: Side,
    paragraph: int,
    sparse: float,
    max_words: int = 20,
) -> list[Phrase]:
    """Every phrase of a paragraph, by the formula in the contract of `fixed_point`."""
    found = []
    for i in range(*starts.offsets[paragraph : paragraph + 2].tolist()):
        start = question.step * dot(starts.codes[i], question.start_weights) + question.start_shift
        for j in range(*ends.offsets[paragraph : paragraph + 2].tolist()):
            if 0 <= int(ends.words[j]) - int(starts.words[i]) < max_words:
                end = question.step * dot(ends.codes[j], question.end_weights) + question.end_shift
                coherency = question.coherency_unit * key_product(tables, starts.keys[i], ends.keys[j])
                found.append(Phrase(((start + end) + coherency) + sparse, paragraph, i, j))
    return found


def offered(phrases: list[Phrase], starts: Side, ends: Side, count: int) -> list[Phrase]:
    """Of a paragraph's phrases: the best end of each start, then the best of these that do not overlap."""
    ranked = sorted(phrases, key=lambda p: (-p.score, p.start_row, p.end_row))
    best_of_start: dict[int, Phrase] = {}
    for phrase in ranked:
        best_of_start.setdefault(phrase.start_row, phrase)
    chosen: list[Phrase] = []
    for phrase in best_of_start.values():
        first, last = int(starts.words[phrase.start_row]), int(ends.words[phrase.end_row])
        if len(chosen) < count and all(
            last < int(starts.words[other.start_row]) or first > int(ends.words[other.end_row])
            for other in chosen
        ):
            chosen.append(phrase)
    return chosen
