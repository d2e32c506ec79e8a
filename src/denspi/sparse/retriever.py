"""Sparse retrieval over one folder, text in and numbers out: frequencies, one segment and its norms together.

For small collections that are built once (the demo, the benchmarks). The live index holds many segments under
one pinned idf and ties the same parts together itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from denspi.sparse.build import build_segment
from denspi.sparse.layout import Segment
from denspi.sparse.norms import Norms, compute_norms
from denspi.sparse.postings import Postings
from denspi.sparse.tfidf import SparseQuestion, UnitFrequencies, weigh_question
from denspi.sparse.topk import Hits
from denspi.types import Document


class SparseRetriever:
    """Documents are numbered in the order they came; paragraphs are numbered through all documents."""

    def __init__(self, postings: Postings, frequencies: UnitFrequencies) -> None:
        self.postings = postings
        self.frequencies = frequencies

    @classmethod
    def build(cls, documents: Iterable[Document], folder: Path) -> SparseRetriever:
        """Index `documents` into `folder`, in one pass over them, and open it."""
        segment = build_segment(documents, folder)
        frequencies = segment.frequencies()
        frequencies.save(folder)
        compute_norms(segment, frequencies).save(folder)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> SparseRetriever:
        """Map what `build` wrote; norms that were computed with other frequencies are refused."""
        segment, frequencies = Segment.open(folder), UnitFrequencies.open(folder)
        norms = Norms.open(folder, segment, frequencies.fingerprint())
        return cls(Postings(segment, norms), frequencies)

    def weigh(self, question: str) -> SparseQuestion:
        """The question as a sparse vector."""
        return weigh_question(question, self.frequencies)

    def top_documents(self, question: str, k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k documents closest to the question."""
        return self.postings.top_documents(self.weigh(question), k, allowed)

    def top_paragraphs(self, question: str, k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k paragraphs with the best sum of paragraph and document score."""
        return self.postings.top_paragraphs_by_both(self.weigh(question), k, allowed)
