"""The sparse model (paper, section 4.2): tf-idf over hashed uni- and bigrams, and postings to search it.

Order of use: `build_segment` -> `Segment.frequencies` (added up over segments) -> `compute_norms` ->
`Postings`; for a question `weigh_question`, then `Postings.top_documents` or `top_paragraphs`.
`SparseRetriever` does all of it for one folder. docs/sparse.md gives the definitions and why they are so.
"""

from denspi.sparse.build import build_segment, merge_segments
from denspi.sparse.layout import Segment
from denspi.sparse.ngrams import NgramCounts, count_ngrams
from denspi.sparse.norms import Norms, compute_norms
from denspi.sparse.postings import Postings
from denspi.sparse.rescoring import (
    Match,
    document_scores_of,
    explain_document,
    explain_paragraph,
    paragraph_scores_of,
)
from denspi.sparse.retriever import SparseRetriever
from denspi.sparse.tfidf import SparseQuestion, UnitFrequencies, weigh_question
from denspi.sparse.topk import Hits

__all__ = [
    "Hits",
    "Match",
    "NgramCounts",
    "Norms",
    "Postings",
    "Segment",
    "SparseQuestion",
    "SparseRetriever",
    "UnitFrequencies",
    "build_segment",
    "compute_norms",
    "count_ngrams",
    "document_scores_of",
    "explain_document",
    "explain_paragraph",
    "merge_segments",
    "paragraph_scores_of",
    "weigh_question",
]
