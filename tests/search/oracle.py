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


def dot(codes: np.ndarray, weights: np.ndarray) -> int:
    return sum(int(code) * int(weight) for code, weight in zip(codes, weights, strict=True))


def key_product(tables: KeyTables, start_key: np.ndarray, end_key: np.ndarray) -> int:
    return sum(
        int(tables.start[int(a) + 128, d]) * int(tables.end[int(b) + 128, d])
        for d, (a, b) in enumerate(zip(start_key, end_key, strict=True))
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
