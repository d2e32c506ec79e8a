"""Text -> hashed uni- and bigrams. Owns what a word, an n-gram and its id are; never weighs anything.

An id depends on the text alone, not on the process, platform or corpus; docs/sparse.md defines it so that
another language can compute it. Questions, paragraphs and titles all go through the same function.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from denspi.sparse.stopwords import STOP_WORDS

SCHEME = "denspi-ngrams-1"  # goes into every fingerprint; change it when any id could change
BUCKET_BITS = 24
BUCKETS = 1 << BUCKET_BITS

_WORD = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_MEMO_LIMIT, _MEMO_CHARS = 1 << 20, 32  # words remembered before starting over: 150 MB at the very most
_FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93  # odd, so each multiplication loses nothing
_ALL_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class NgramCounts:
    """The n-grams of one text: ascending `ids` and how often each occurs."""

    ids: NDArray[np.uint32]  # [ngram]
    counts: NDArray[np.uint32]  # [ngram]


class _WordCodes(dict[str, int]):
    """word -> its 63-bit hash, or the bitwise complement of it (so a negative number) for a stop word."""

    def __missing__(self, word: str) -> int:
        hashed = hash_word(word)
        code = ~hashed if word in STOP_WORDS else hashed
        if len(word) <= _MEMO_CHARS:  # longer ones come once, from those who try how long a word may be
            if len(self) >= _MEMO_LIMIT:
                self.clear()
            self[word] = code
        return code


_word_codes = _WordCodes()


def hash_word(word: str) -> int:
    """The 63-bit hash of a word as `words` spells it; remembers nothing."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def unigram_id(hashed: int) -> int:
    """The id of a word by its hash."""
    return hashed & (BUCKETS - 1)


def bigram_id(first: int, second: int) -> int:
    """The id of two neighbours by their hashes."""
    mixed = (first * _FIRST + second) & _ALL_BITS
    mixed = ((mixed ^ mixed >> 32) * _SECOND) & _ALL_BITS
    return (mixed ^ mixed >> 32) >> (64 - BUCKET_BITS)


def words(text: str) -> list[str]:
    """The words of `text`: maximal runs of letters and digits, caseless and without accents."""
    if text.isascii():
        return _WORD.findall(text.lower())
    # Casefolding can compose anew (U+0130), so decompose on both sides of it (Unicode's D145).
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    return _WORD.findall(_ACCENTS.sub("", folded))


def count_ngrams(text: str) -> NgramCounts:
    """The hashed n-grams of one text with their counts.

    Plain integers: for one question they are three times as fast as the arrays of `hash_ngrams`.
    """
    counts: dict[int, int] = {}
    for ngram_id in _plain_ids([_word_codes[word] for word in words(text)]):
        counts[ngram_id] = counts.get(ngram_id, 0) + 1
    ids = sorted(counts)
    return NgramCounts(np.array(ids, np.uint32), np.array([counts[each] for each in ids], np.uint32))


def hash_ngrams(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Every n-gram occurrence of several texts at once: its id, and the number of the text it is from.

    Unigrams leave out stop words; a bigram is two neighbours among what is left, so it reaches across stop
    words and never holds one. A text of nothing but stop words ("The Who") keeps them all instead.
    No bigram crosses from one text into the next.
    """
    split = [words(text) for text in texts]
    lengths = np.fromiter(map(len, split), np.int64, len(split))
    codes = np.fromiter(
        (code for each in split for code in map(_word_codes.__getitem__, each)), np.int64, lengths.sum()
    )
    text_of = np.repeat(np.arange(len(texts), dtype=np.uint32), lengths)
    is_stop = codes < 0
    keeps_all = np.bincount(text_of[~is_stop], minlength=len(texts)) == 0
    kept = ~is_stop | keeps_all[text_of]
    codes, text_of = codes[kept], text_of[kept]
    hashes = np.where(codes < 0, ~codes, codes).astype(np.uint64)
    together = text_of[1:] == text_of[:-1]
    bigrams = _bigram_ids(hashes[:-1][together], hashes[1:][together])
    ids = np.concatenate([(hashes & np.uint64(BUCKETS - 1)).astype(np.uint32), bigrams])
    return ids, np.concatenate([text_of, text_of[1:][together]])


def name_ngrams(text: str) -> dict[int, str]:
    """id -> the n-gram as `words` spells it, for showing a match; "a / b" where two share an id."""
    found = words(text)
    kept = [word for word in found if word not in STOP_WORDS] or found
    names = kept + [f"{first} {second}" for first, second in pairwise(kept)]
    named: dict[int, str] = {}
    for ngram_id, name in zip(_plain_ids([_word_codes[word] for word in found]), names, strict=True):
        if ngram_id not in named:
            named[ngram_id] = name
        elif name not in named[ngram_id].split(" / "):
            named[ngram_id] += f" / {name}"
    return named


def _plain_ids(codes: list[int]) -> list[int]:
    """The ids of one text: its unigrams, then its bigrams. The definition; `hash_ngrams` is its fast form."""
    hashes = [code for code in codes if code >= 0] or [~code for code in codes]
    return [unigram_id(each) for each in hashes] + [bigram_id(*pair) for pair in pairwise(hashes)]


def _bigram_ids(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint32]:
    half = np.uint64(32)
    mixed = first * np.uint64(_FIRST) + second  # modulo 2^64, as all of this
    mixed ^= mixed >> half
    mixed *= np.uint64(_SECOND)
    mixed ^= mixed >> half
    return (mixed >> np.uint64(64 - BUCKET_BITS)).astype(np.uint32)
