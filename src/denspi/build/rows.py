"""What an index stores of a paragraph: its vectors, filtered by the model's thresholds, as codes.

Pure numpy. A model without thresholds keeps every word that can start or end a phrase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from denspi.dense.codec import RowCodec
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.filter import FilterThresholds, kept_ends, kept_starts
from denspi.errors import ModelError
from denspi.index.rows import ParagraphRows
from denspi.vectors import ParagraphVectors


def rows_of(
    paragraph: ParagraphVectors, thresholds: FilterThresholds | None, codec: RowCodec
) -> ParagraphRows:
    """The kept rows of one paragraph, as codes; words and characters count from its own first."""
    starts = kept_starts(paragraph, thresholds) if thresholds else paragraph.can_start
    ends = kept_ends(paragraph, thresholds) if thresholds else paragraph.can_end
    return ParagraphRows(
        word_count=len(paragraph),
        start_words=np.flatnonzero(starts).astype(np.uint32),
        start_chars=paragraph.word_starts[starts].astype(np.uint32),
        starts=codec.start.encode(paragraph.starts[starts]),
        start_keys=codec.start_key.encode(paragraph.start_keys[starts]),
        end_words=np.flatnonzero(ends).astype(np.uint32),
        end_chars=paragraph.word_ends[ends].astype(np.uint32),
        ends=codec.end.encode(paragraph.ends[ends]),
        end_keys=codec.end_key.encode(paragraph.end_keys[ends]),
    )


def encode_rows(
    encoder: PhraseEncoder, paragraphs: Iterable[str], precision: str = "int8"
) -> Iterator[ParagraphRows]:
    """The rows of each paragraph, in order; streamed. The encoder must have a codec of that precision."""
    codec = encoder.codec(precision)
    for vectors in encoder.encode_paragraphs(paragraphs):
        try:
            yield rows_of(vectors, encoder.filter_thresholds, codec)
        except ValueError as error:
            raise ModelError(f"the model cannot encode a paragraph ({error})") from None
