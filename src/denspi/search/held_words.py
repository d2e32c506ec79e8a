"""Whether a word stands in the texts of an index. Ids of words can be shared, texts tell: it reads a few."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from denspi.index.segment import SegmentReader
from denspi.index.snapshot import Snapshot
from denspi.sparse.layout import COUNT_BITS
from denspi.sparse.ngrams import hash_word, unigram_id, words

_TEXTS_READ = 4  # of a segment: where none of them has the word, its id is most probably another's


def holds_word(snapshot: Snapshot, word: str) -> bool:
    """Whether one of the first texts that have its id has the word, as `words` spells it."""
    return any(word in words(text) for segment in snapshot.segments for text in _texts(segment, word))


def _texts(segment: SegmentReader, word: str) -> Iterator[str]:
    """Paragraphs and titles that may hold the word."""
    stored = segment.sparse
    (length,), (place,) = stored.lengths.look_up(np.array([unigram_id(hash_word(word))], np.uint32))
    for unit in (stored.read(place, place + min(length, _TEXTS_READ)) >> COUNT_BITS).tolist():
        document = int(stored.unit_documents[unit])
        if unit == stored.document_units[document]:
            yield segment.document(document).title
        else:
            paragraph = unit - document - 1  # the titles up to it lie before it
            yield segment.text_at(segment.paragraph_stretches(np.array([paragraph]))[0])
