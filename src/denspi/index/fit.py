"""Fitting idf: frequencies of the live documents, and norms under them. Both are parts of their own.

Segments hold counts only, so a fit touches none of them. A merge gathers the norms it finds: the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from denspi.index.components import PartRef
from denspi.index.manifest import Fit
from denspi.index.part import PartWriter
from denspi.index.segment import SegmentReader
from denspi.sparse.norms import Norms, compute_norms
from denspi.sparse.tfidf import UnitFrequencies

GROWTH = 2
"""A commit fits anew when the collection has this many times the units that were last fitted."""


def is_due(live_units: int, fitted: Fit | None) -> bool:
    """Whether a commit should fit: the first does, and every one that finds the collection doubled."""
    return fitted is None or live_units >= GROWTH * max(1, fitted.units)


def count_live(segments: Sequence[tuple[SegmentReader, NDArray[np.bool_]]]) -> UnitFrequencies:
    """Frequencies over the live documents of (segment, is_deleted): as if the others had never been there."""
    total = UnitFrequencies.of(0, np.zeros(0, np.uint32), np.zeros(0, np.int64))
    for segment, is_deleted in segments:
        total = total + segment.sparse.frequencies()
        if is_deleted.any():
            total = total - UnitFrequencies.fit(_unit_texts(segment, np.flatnonzero(is_deleted)))
    return total


def write_fit(part: PartWriter, frequencies: UnitFrequencies) -> Fit:
    """Store frequencies."""
    with part.directory.reporting():
        frequencies.save(part.path)
    part.adopt_arrays()
    return Fit(part.finish(), frequencies.fingerprint(), frequencies.unit_count)


def write_norms(part: PartWriter, norms: Norms) -> PartRef:
    """Store the norms of one segment."""
    with part.directory.reporting():
        norms.save(part.path)
    part.adopt_arrays()
    return part.finish()


def fitted_norms(segment: SegmentReader, frequencies: UnitFrequencies) -> Norms:
    """The norms of a segment under these frequencies."""
    return compute_norms(segment.sparse, frequencies)


def gathered_norms(sources: Sequence[tuple[SegmentReader, NDArray[np.bool_]]], fingerprint: str) -> Norms:
    """The norms of a segment merged from the kept documents of (segment, is_kept)."""
    units = [
        segment.norms.units[np.repeat(is_kept, np.diff(segment.sparse.document_units))]
        for segment, is_kept in sources
    ]
    documents = [segment.norms.documents[is_kept] for segment, is_kept in sources]
    return Norms(np.concatenate(units), np.concatenate(documents), fingerprint)


def _unit_texts(segment: SegmentReader, documents: NDArray[np.int64]) -> Iterator[str]:
    for number in documents.tolist():
        document = segment.document(number)
        yield document.title
        yield from document.paragraph_texts()
