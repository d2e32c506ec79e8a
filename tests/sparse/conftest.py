"""Small collections, and the slow, obvious oracle: scipy matrices from dictionaries of counted n-grams.

Test modules cannot import this file, so the functions come to them as fixtures.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from denspi.sparse import SparseRetriever
from denspi.sparse.stopwords import STOP_WORDS
from denspi.types import Document, Span

MASK = (1 << 64) - 1


def make_document(document_id: str, title: str, *paragraphs: str) -> Document:
    spans, start_char = [], 0
    for paragraph in paragraphs:
        spans.append(Span(start_char, start_char + len(paragraph)))
        start_char += len(paragraph) + 1
    return Document(document_id, title, "\n".join(paragraphs), tuple(spans))


def slow_ngrams(text: str) -> Counter[int]:
    """docs/sparse.md, word by word, in plain Python integers."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    found = re.findall(r"[^\W_]+", re.sub("[\u0300-\u036f]", "", folded))
    kept = [word for word in found if word not in STOP_WORDS] or found
    hashes = [
        int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little") >> 1 for word in kept
    ]
    counts = Counter(value % (1 << 24) for value in hashes)
    for first, second in pairwise(hashes):
        mixed = (first * 0x9E3779B97F4A7C15 + second) & MASK
        mixed ^= mixed >> 32
        mixed = (mixed * 0xD6E8FEB86659FD93) & MASK
        mixed ^= mixed >> 32
        counts[mixed >> 40] += 1
    return counts


@dataclass(frozen=True)
class Oracle:
    """What the scores should be, by matrix products over the n-grams that occur."""

    units: list[Counter[int]]
    paragraphs: list[Counter[int]]
    documents: list[Counter[int]]

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Oracle:
        titles = [slow_ngrams(each.title) for each in documents]
        texts = [[slow_ngrams(text) for text in each.paragraph_texts()] for each in documents]
        paragraphs = [counts for each in texts for counts in each]
        whole = [sum(each, title) for title, each in zip(titles, texts, strict=True)]
        return cls([*titles, *paragraphs], paragraphs, whole)

    def scores(self, question: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of all paragraphs, and of all documents."""
        asked = slow_ngrams(question)
        columns = {ngram_id: column for column, ngram_id in enumerate(sorted({*asked}.union(*self.units)))}
        held = _matrix(self.units, columns) > 0
        frequency = np.asarray(held.sum(axis=0)).ravel()
        idf = np.log1p((len(self.units) - frequency + 0.5) / (frequency + 0.5))
        vector = _weigh(_matrix([asked], columns), idf).T
        paragraphs = _weigh(_matrix(self.paragraphs, columns), idf) @ vector
        documents = _weigh(_matrix(self.documents, columns), idf) @ vector
        return paragraphs.toarray().ravel(), documents.toarray().ravel()


def _matrix(counted: Sequence[Counter[int]], columns: dict[int, int]) -> csr_matrix:
    rows = [row for row, counts in enumerate(counted) for _ in counts]
    places = [columns[ngram_id] for counts in counted for ngram_id in counts]
    values = [float(count) for counts in counted for count in counts.values()]
    return csr_matrix((values, (rows, places)), shape=(len(counted), max(1, len(columns))))


def _weigh(counts: csr_matrix, idf: NDArray[np.float64]) -> csr_matrix:
    weights = counts.log1p() @ diags(idf) if len(idf) else counts
    lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
    return diags(1 / np.where(lengths > 0, lengths, 1)) @ weights


@pytest.fixture(scope="session", name="slow_ngrams")
def _slow_ngrams() -> Callable[[str], Counter[int]]:
    return slow_ngrams


@pytest.fixture(scope="session", name="make_document")
def _make_document() -> Callable[..., Document]:
    return make_document


@pytest.fixture(scope="session")
def make_oracle() -> Callable[[Sequence[Document]], Oracle]:
    return Oracle.of


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    return [
        make_document(
            "warsaw",
            "Warsaw",
            "Warsaw is the capital of Poland. It stands on the Vistula river.",
            "The Old Town of Warsaw was rebuilt after the war; the Old Town is a heritage site.",
        ),
        make_document("who", "The Who", "They were an English rock band, formed in London in 1964."),
        make_document("empty", "Nothing at all"),
        make_document(
            "beyonce",
            "Beyoncé",
            "Beyoncé Giselle Knowles was born in Houston, Texas.",
            "Her first album came out in 2003, and the album sold well.",
            "album " * 300 + "and one other word",
        ),
        make_document(
            "twin",
            "Twin",
            "The Old Town of Warsaw was rebuilt after the war; the Old Town is a heritage site.",
        ),
    ]


@pytest.fixture(scope="session")
def retriever(documents: list[Document], tmp_path_factory: pytest.TempPathFactory) -> SparseRetriever:
    return SparseRetriever.build(documents, tmp_path_factory.mktemp("sparse") / "index")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"
