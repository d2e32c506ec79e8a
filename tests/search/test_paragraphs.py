from pathlib import Path

import pytest

from denspi.search.paragraphs import ParagraphSearch
from denspi.types import Document, Span


def document(document_id: str, *paragraphs: str) -> Document:
    spans, start_char = [], 0
    for paragraph in paragraphs:
        spans.append(Span(start_char, start_char + len(paragraph)))
        start_char += len(paragraph) + 2
    return Document(document_id, document_id.title(), "\n\n".join(paragraphs), tuple(spans))


@pytest.fixture
def search(tmp_path: Path) -> ParagraphSearch:
    documents = [
        document("rivers", "The Danube flows to the Black Sea.", "The Nile flows north."),
        document("empty"),
        document("towers", "The Eiffel Tower stands in Paris.", "A black tower stands in the sea."),
    ]
    return ParagraphSearch(documents, tmp_path / "postings")


def test_best_first_with_place_and_reason(search: ParagraphSearch) -> None:
    best, second, *_ = search.find("Where does the Danube reach the Black Sea?")
    assert (best.document.document_id, best.paragraph_number) == ("rivers", 0)
    assert best.text == "The Danube flows to the Black Sea."
    assert set(best.ngrams) == {"danube", "black", "sea", "black sea"}
    assert best.ngrams[-1] in {"black", "sea"}  # two paragraphs hold these, so they weigh least
    assert best.score > second.score > 0


def test_k_cuts_and_nothing_shared_finds_nothing(search: ParagraphSearch) -> None:
    assert len(search.find("black tower in the sea", k=1)) == 1
    assert search.find("quantum chromodynamics") == []
    assert search.find("") == []
