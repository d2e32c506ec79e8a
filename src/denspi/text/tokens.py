"""Word pieces with character offsets into the original text, from a ``tokenizer.json``.

Owns the definition of a word (a maximal run of letters, digits and their marks, or a single other sign) and
with it which pieces may start or end an answer. Never adds special tokens, never truncates, never pads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as _Backend

from denspi.errors import ModelError


@dataclass(frozen=True, slots=True)
class Tokens:
    """The word pieces of one text and the words that they lie in.

    ``text[starts[i]:ends[i]]`` is what piece i covers; ``text[word_starts[w]:word_ends[w]]`` is word w. A
    phrase starts only at a `word_initial` piece and ends only at a `word_final` one. `first_piece` and
    `last_piece` are those pieces of each word, -1 where the word's border is hidden inside a piece.
    """

    ids: NDArray[np.int32]  # [piece]
    starts: NDArray[np.int32]  # [piece]
    ends: NDArray[np.int32]  # [piece]
    word_initial: NDArray[np.bool_]  # [piece]
    word_final: NDArray[np.bool_]  # [piece]
    word_starts: NDArray[np.int32]  # [word]
    word_ends: NDArray[np.int32]  # [word]
    first_piece: NDArray[np.int32]  # [word]
    last_piece: NDArray[np.int32]  # [word]

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer:
    """A ``tokenizer.json`` with its truncation and padding switched off.

    Both are commonly stored on at 128 pieces, which would cut long texts without a word.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ModelError(f"{path}: there is no such file; a model folder holds a tokenizer.json")
        try:
            self._backend = _Backend.from_file(str(path))
        except Exception as error:  # the library raises bare Exception on a bad file
            raise ModelError(f"{path}: not a tokenizer.json ({error})") from None
        padding = self._backend.padding
        self._backend.no_truncation()
        self._backend.no_padding()
        # What a text says is text: a document that contains "[SEP]" must not steer the model.
        self._backend.encode_special_tokens = True
        frame = self._backend.encode("").ids
        if len(frame) != 2:
            raise ModelError(
                f"{path}: frames a text with {len(frame)} special tokens; expected 2, as BERT does"
            )
        self.cls_id, self.sep_id = frame
        self.pad_id = int(padding["pad_id"]) if padding else 0

    @property
    def vocab_size(self) -> int:
        """Rows that a table of all pieces needs; ids may have gaps."""
        return max(self._backend.get_vocab().values()) + 1

    def tokenize(self, text: str) -> Tokens:
        """The pieces of one text."""
        return self.tokenize_batch([text])[0]

    def tokenize_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """The pieces of each text; the same as one at a time, faster."""
        return [
            _tokens(text, encoding.ids, encoding.offsets)
            for text, encoding in zip(texts, self._encodings(texts), strict=True)
        ]

    def ids_batch(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The piece ids of each text alone, for texts that nobody cuts phrases out of (questions)."""
        return [np.array(encoding.ids, dtype=np.int32) for encoding in self._encodings(texts)]

    def has_piece(self, text: str) -> bool:
        """Whether one piece stands for the whole of it, as for common words."""
        return self._backend.token_to_id(text) is not None

    def decode(self, ids: Sequence[int]) -> str:
        """Text that these pieces could stand for; special tokens are left out."""
        return self._backend.decode(list(ids))

    def _encodings(self, texts: Sequence[str]) -> list[Encoding]:
        # The library refuses lone surrogates, which JSON may carry; one sign each keeps every offset.
        clean = [t.encode("utf-8", "replace").decode() if _SURROGATE.search(t) else t for t in texts]
        return self._backend.encode_batch(clean, add_special_tokens=False)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _tokens(text: str, ids: list[int], offsets: list[tuple[int, int]]) -> Tokens:
    spans = np.array(offsets, dtype=np.int32).reshape(-1, 2)
    starts, ends = spans[:, 0], spans[:, 1]
    word_starts, word_ends = word_spans(text)
    first_piece = np.full(len(word_starts), -1, dtype=np.int32)
    last_piece = first_piece.copy()
    initial, final = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    covers = np.flatnonzero(ends > starts)  # a normalizer may leave a piece that stands for no character
    if len(word_starts) and len(covers):
        first_word = np.searchsorted(word_starts, starts[covers], side="right") - 1
        last_word = np.searchsorted(word_starts, ends[covers] - 1, side="right") - 1
        initial[covers] = (first_word >= 0) & (word_starts[first_word] == starts[covers])
        final[covers] = (last_word >= 0) & (word_ends[last_word] == ends[covers])
        # Reversed: where two pieces stand for one character, the word starts at the first of them.
        first_piece[first_word[initial[covers]][::-1]] = covers[initial[covers]][::-1]
        last_piece[last_word[final[covers]]] = covers[final[covers]]
    return Tokens(
        np.array(ids, dtype=np.int32),
        starts,
        ends,
        initial,
        final,
        word_starts,
        word_ends,
        first_piece,
        last_piece,
    )


_SPACE, _LETTER, _SIGN, _MARK, _UNSEEN = range(5)
_KINDS = np.full(0x110000, _UNSEEN, dtype=np.uint8)  # of every character, filled in as they are met


def word_spans(text: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Start and end characters of every word of the text, in order."""
    kinds = np.full(len(text) + 2, _SPACE, dtype=np.uint8)  # a space before the text, and one behind it
    kinds[1:-1] = _kinds(text)
    belongs = kinds
    is_mark = kinds == _MARK
    if is_mark.any():
        # A mark goes on with what it stands on: a word, a sign or, after a space, the mark that is the sign.
        base = np.maximum.accumulate(np.where(is_mark, 0, np.arange(len(kinds))))
        belongs = np.where(is_mark & (kinds[base] == _SPACE), _SIGN, kinds[base])
    is_start = kinds[1:] == _SIGN
    is_start |= (kinds[1:] == _LETTER) & (belongs[:-1] != _LETTER)
    is_start |= is_mark[1:] & (kinds[:-1] == _SPACE)
    is_end = (kinds[:-1] != _SPACE) & (is_start | (kinds[1:] == _SPACE))
    return np.flatnonzero(is_start).astype(np.int32), np.flatnonzero(is_end).astype(np.int32)


def _kinds(text: str) -> NDArray[np.uint8]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _KINDS[codes]
    if (kinds == _UNSEEN).any():
        for code in set(codes[kinds == _UNSEEN].tolist()):
            _KINDS[code] = _kind(chr(code))
        kinds = _KINDS[codes]
    return kinds


def _kind(character: str) -> int:
    """Of letters and digits one kind; combining marks are those of letters and signs that precede them."""
    if character.isalnum():
        return _LETTER
    if character.isspace():
        return _SPACE
    return _MARK if unicodedata.category(character).startswith("M") else _SIGN
