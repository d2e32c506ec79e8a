"""What an index stores of a paragraph: its vectors, filtered by the model's thresholds and quantized.

Pure numpy. A model without thresholds keeps every word that can start or end a phrase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from denspi.dense.encoder import PhraseEncoder
from denspi.dense.filter import FilterThresholds, kept_ends, kept_starts
from denspi.dense.quantizer import Quantizer
from denspi.errors import ModelError
from denspi.index.rows import ParagraphRows
from denspi.vectors import ParagraphVectors


def rows_of(
    paragraph: ParagraphVectors, thresholds: FilterThresholds | None, quantizer: Quantizer
) -> ParagraphRows:
    """The kept rows of one paragraph, as codes; words and characters count from its own first."""
    starts = kept_starts(paragraph, thresholds) if thresholds else paragraph.can_start
    ends = kept_ends(paragraph, thresholds) if thresholds else paragraph.can_end
    return ParagraphRows(
        word_count=len(paragraph),
        start_words=np.flatnonzero(starts).astype(np.uint32),
        start_chars=paragraph.word_starts[starts].astype(np.uint32),
        starts=quantizer.start.encode(paragraph.starts[starts]),
        start_keys=quantizer.start_key.encode(paragraph.start_keys[starts]),
        end_words=np.flatnonzero(ends).astype(np.uint32),
        end_chars=paragraph.word_ends[ends].astype(np.uint32),
        ends=quantizer.end.encode(paragraph.ends[ends]),
        end_keys=quantizer.end_key.encode(paragraph.end_keys[ends]),
    )


def encode_rows(encoder: PhraseEncoder, paragraphs: Iterable[str]) -> Iterator[ParagraphRows]:
    """The rows of each paragraph, in order; streamed. The encoder must have a quantizer."""
    if encoder.quantizer is None:
        raise ModelError("the model has no quantizer, which an index needs; train its filter stage")
    for vectors in encoder.encode_paragraphs(paragraphs):
        try:
            yield rows_of(vectors, encoder.filter_thresholds, encoder.quantizer)
        except ValueError as error:
            raise ModelError(f"the model cannot encode a paragraph ({error})") from None
