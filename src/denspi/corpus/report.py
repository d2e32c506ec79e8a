"""Counting what a corpus holds: documents, paragraphs and words of each given path, and what was skipped.

A word is a maximal run of characters that are not white space, counted inside paragraphs only. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from denspi.corpus.records import Item, Note, Skipped


@dataclass(slots=True)
class SourceCounts:
    """What one given path holds."""

    path: str
    documents: int = 0
    paragraphs: int = 0
    words: int = 0
    skipped: int = 0


@dataclass(slots=True)
class CorpusReport:
    """Counts per given path and in all, and the items that did not become documents, in the order met."""

    sources: list[SourceCounts]
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    total: SourceCounts = field(default_factory=lambda: SourceCounts("total"))

    @classmethod
    def of_paths(cls, paths: Sequence[str]) -> CorpusReport:
        """An empty report on these paths."""
        return cls([SourceCounts(path) for path in paths])

    def add(self, place: int, item: Item) -> None:
        """Count an item that came from the path at position `place`."""
        both = (self.sources[place], self.total)
        if isinstance(item, Skipped):
            for counts in both:
                counts.skipped += 1
            self.skipped.append(item)
        elif isinstance(item, Note):
            self.notes.append(item)
        else:
            words = sum(len(paragraph.split()) for paragraph in item.paragraph_texts())
            for counts in both:
                counts.documents += 1
                counts.paragraphs += len(item.paragraphs)
                counts.words += words

    def as_json(self) -> dict[str, object]:
        """What `denspi corpus --json` prints."""
        total = self.total
        return {
            "documents": total.documents,
            "paragraphs": total.paragraphs,
            "words": total.words,
            "skipped": [asdict(skipped) for skipped in self.skipped],
            "notes": [asdict(note) for note in self.notes],
            "sources": [asdict(counts) for counts in self.sources],
        }
