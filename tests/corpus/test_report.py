from __future__ import annotations

from denspi.corpus import CorpusReport, Note, Skipped, SourceCounts, split_paragraphs
from denspi.types import Document


def document(text: str) -> Document:
    return Document("a", "a", text, split_paragraphs(text))


def test_counts() -> None:
    report = CorpusReport.of_paths(["one", "two"])
    report.add(0, document("Two words.\n\nAnd three more-words…"))
    report.add(1, document("1"))
    report.add(1, Skipped("two/x", "empty"))
    report.add(1, Note("two", "left out 1 hidden entry"))
    assert report.sources == [SourceCounts("one", 1, 2, 5, 0), SourceCounts("two", 1, 1, 1, 1)]
    assert report.total == SourceCounts("total", 2, 3, 6, 1)
    assert report.as_json() == {
        "documents": 2,
        "paragraphs": 3,
        "words": 6,
        "skipped": [{"source": "two/x", "reason": "empty"}],
        "notes": [{"source": "two", "text": "left out 1 hidden entry"}],
        "sources": [
            {"path": "one", "documents": 1, "paragraphs": 2, "words": 5, "skipped": 0},
            {"path": "two", "documents": 1, "paragraphs": 1, "words": 1, "skipped": 1},
        ],
    }


def test_the_total_costs_the_same_for_many_paths() -> None:
    report = CorpusReport.of_paths([str(number) for number in range(3)])
    assert report.total is report.total, "kept, and not summed up at each look"


def test_a_line_stays_a_line() -> None:
    assert str(Skipped("a\nb\x1b[31m", "é 'x'")) == "a\\nb\\x1b[31m: é 'x'"
