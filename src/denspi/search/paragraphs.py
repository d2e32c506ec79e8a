"""Paragraphs for a question by the sparse half alone, over documents held in memory. No model, no phrases.

For small collections: the sample corpus, tests, tutorials. The postings are built in a folder that the caller
names and may throw away afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from denspi.sparse import SparseRetriever, explain_paragraph
from denspi.types import Document


@dataclass(frozen=True, slots=True)
class FoundParagraph:
    """A paragraph of a document, why it was found and how well it fits."""

    document: Document
    paragraph_number: int  # within the document, from 0
    score: float  # of the paragraph and of its document, summed, as every phrase in it would get it
    ngrams: tuple[str, ...]  # what question and paragraph share, heaviest first

    @property
    def text(self) -> str:
        """The paragraph itself."""
        return self.document.paragraphs[self.paragraph_number].of(self.document.text)


class ParagraphSearch:
    """Sparse search over the paragraphs of some documents."""

    def __init__(self, documents: Sequence[Document], folder: Path) -> None:
        self._retriever = SparseRetriever.build(documents, folder)
        self._places = [(each, number) for each in documents for number in range(len(each.paragraphs))]

    def find(self, question: str, k: int = 5) -> list[FoundParagraph]:
        """The k best paragraphs, best first; fewer where fewer share a word with the question."""
        hits = self._retriever.top_paragraphs(question, k)
        found = []
        for paragraph, score in zip(hits.numbers.tolist(), hits.scores.tolist(), strict=True):
            document, number = self._places[paragraph]
            found.append(FoundParagraph(document, number, score, self._shared(question, paragraph)))
        return found

    def _shared(self, question: str, paragraph: int) -> tuple[str, ...]:
        matches = explain_paragraph(self._retriever.postings, self._retriever.weigh(question), paragraph)
        return tuple(match.ngram for match in matches)
