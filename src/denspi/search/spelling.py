"""Slips of the finger in a question, repaired by what the index holds. Pure; leaves alone what may be right.

A word is repaired only if it is unknown twice over: no text of the index holds it, and the model has no piece
for the whole of it. It becomes the word, one edit away, that fits best: that many texts hold, that the model
knows, that stands beside the same neighbours somewhere. An index counts hashes of words and no words, so an
id can be taken by something else: the caller says of the few best whether a text really holds them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from string import ascii_lowercase

import numpy as np

from denspi.sparse.ngrams import BUCKETS, bigram_id, hash_word, unigram_id, words
from denspi.sparse.stopwords import STOP_WORDS
from denspi.sparse.tfidf import UnitFrequencies

_WORD = re.compile(r"[^\W_]+")
_FEWEST_LETTERS, _MOST_LETTERS = 4, 24
_MOST_REPAIRS = 4  # who seems to slip more often writes another language
_FULLEST = 0.25  # with more of the ids taken, it says little that one is
_MOST_LOOKED_UP = 16  # candidates; all others that have an id in the index have less to speak for them
# Chosen on 2,000 questions of held-out training articles with a slip each: of 1,701 repairs 1,515 were right.
_KNOWN_BONUS = 3.0
_NEIGHBOUR_BONUS = 2.0
_FIRST_LETTER_COST = 2.0
_LEAST = 0.0

IsWord = Callable[[str], bool]


def repair_question(text: str, frequencies: UnitFrequencies, is_word: IsWord, is_held: IsWord) -> str:
    """The question with its slips repaired; the very same text where there is nothing to repair.

    `is_word`: whether the model knows a word; `is_held`: whether it stands in a text of the index.
    """
    if not 0 < len(frequencies.table) <= _FULLEST * BUCKETS:
        return text
    found = [match for match in _WORD.finditer(text) if match[0].lower() not in STOP_WORDS]
    unknown = [place for place, match in enumerate(found) if _is_unknown(match[0], frequencies, is_word)]
    if not 0 < len(unknown) <= _MOST_REPAIRS:
        return text
    hashes = [hash_word("".join(words(match[0]))) for match in found]
    for place in reversed(unknown):  # from the end, so that places before it stay
        before = hashes[place - 1] if place else None
        after = hashes[place + 1] if place + 1 < len(found) else None
        fitting = _fitting(found[place][0].lower(), before, after, frequencies, is_word)
        best = next(filter(is_held, fitting), None)
        if best is not None:
            best_cased = best.capitalize() if found[place][0][0].isupper() else best
            text = text[: found[place].start()] + best_cased + text[found[place].end() :]
            hashes[place] = hash_word(best)
    return text


def _is_unknown(word: str, frequencies: UnitFrequencies, is_word: IsWord) -> bool:
    if not (_FEWEST_LETTERS <= len(word) <= _MOST_LETTERS and word.isascii() and word.isalpha()):
        return False
    word = word.lower()
    return not _units(frequencies, [unigram_id(hash_word(word))])[0] and not is_word(word)


def _fitting(
    word: str, before: int | None, after: int | None, frequencies: UnitFrequencies, is_word: IsWord
) -> list[str]:
    """The candidates that most speaks for, best first."""
    candidates = sorted(set(_one_edit_away(word)) - STOP_WORDS)
    hashes = [hash_word(each) for each in candidates]
    units = _units(frequencies, [unigram_id(each) for each in hashes])
    scores: dict[str, float] = {}
    for candidate, hashed, count in zip(candidates, hashes, units, strict=True):
        if not count:
            continue
        pairs = [bigram_id(before, hashed)] if before is not None else []
        pairs += [bigram_id(hashed, after)] if after is not None else []
        score = math.log(count) + _NEIGHBOUR_BONUS * sum(map(bool, _units(frequencies, pairs)))
        score -= _FIRST_LETTER_COST * (candidate[0] != word[0])
        if score >= _LEAST:
            scores[candidate] = score + _KNOWN_BONUS * is_word(candidate)
    return sorted(scores, key=lambda each: -scores[each])[:_MOST_LOOKED_UP]


def _units(frequencies: UnitFrequencies, ids: list[int]) -> list[int]:
    """In how many paragraphs and titles each occurs."""
    return frequencies.table.look_up(np.array(ids, np.uint32))[0]


def _one_edit_away(word: str) -> Iterator[str]:
    """A letter left out, exchanged with the next, replaced or put in; the word itself may be among them."""
    for place in range(len(word) + 1):
        head, tail = word[:place], word[place:]
        for letter in ascii_lowercase:
            yield head + letter + tail
        if tail:
            yield head + tail[1:]
            yield head + tail[1:2] + tail[:1] + tail[2:]
            for letter in ascii_lowercase:
                yield head + letter + tail[1:]
