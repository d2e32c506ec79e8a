"""What an index stores of a paragraph: its vectors, filtered by the model's thresholds, as codes.

Pure numpy. A model without thresholds keeps every word that can start or end a phrase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import tee

import numpy as np
from numpy.typing import NDArray

from denspi.dense.codec import RowCodec
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.filter import FilterThresholds, kept_ends, kept_starts
from denspi.errors import ModelError
from denspi.index.rows import ParagraphRows
from denspi.text.breaks import breaks_in
from denspi.vectors import MAX_PHRASE_WORDS, ParagraphVectors


def rows_of(
    paragraph: ParagraphVectors,
    thresholds: FilterThresholds | None,
    codec: RowCodec,
    breaks: Sequence[int] = (),
) -> ParagraphRows:
    """The kept rows of one paragraph, as codes; words and characters count from its own first.

    `breaks` are the characters where its text goes on behind a blank line.
    """
    numbers = word_numbers(paragraph.word_starts, breaks)
    starts = kept_starts(paragraph, thresholds) if thresholds else paragraph.can_start
    ends = kept_ends(paragraph, thresholds) if thresholds else paragraph.can_end
    return ParagraphRows(
        word_count=int(numbers[-1]) + 1 if len(numbers) else 0,
        start_words=numbers[starts],
        start_chars=paragraph.word_starts[starts].astype(np.uint32),
        starts=codec.start.encode(paragraph.starts[starts]),
        start_keys=codec.start_key.encode(paragraph.start_keys[starts]),
        end_words=numbers[ends],
        end_chars=paragraph.word_ends[ends].astype(np.uint32),
        ends=codec.end.encode(paragraph.ends[ends]),
        end_keys=codec.end_key.encode(paragraph.end_keys[ends]),
    )


def word_numbers(word_starts: NDArray[np.int32], breaks: Sequence[int]) -> NDArray[np.uint32]:
    """``[word]`` the number of each word. A break counts as many as a phrase may have: none crosses it."""
    behind = np.searchsorted(np.array(breaks, np.int64), word_starts, side="right")
    return (np.arange(len(word_starts)) + MAX_PHRASE_WORDS * behind).astype(np.uint32)


def encode_rows(
    encoder: PhraseEncoder, paragraphs: Iterable[str], precision: str = "int8"
) -> Iterator[ParagraphRows]:
    """The rows of each paragraph, in order; streamed. The encoder must have a codec of that precision."""
    codec = encoder.codec(precision)
    texts, encoded = tee(paragraphs)
    for vectors in encoder.encode_paragraphs(encoded):
        try:
            yield rows_of(vectors, encoder.filter_thresholds, codec, breaks_in(next(texts)))
        except ValueError as error:
            raise ModelError(f"the model cannot encode a paragraph ({error})") from None
