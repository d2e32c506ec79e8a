"""From documents to answers with a real, tiny model: what the index stores is what flat float search sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.build.conftest import make_documents, save_model_folder
from tests.tiny import JOBS, PEOPLE, TOWNS

from denspi.build.index import Index
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.filter import kept_ends, kept_starts
from denspi.index import directory
from denspi.search.scoring import phrase_scores
from denspi.search.searcher import PAPER_SPARSE_WEIGHT, Searcher
from denspi.search.strategies import STRATEGIES
from denspi.sparse import document_scores_of, paragraph_scores_of
from denspi.types import Document, Span
from denspi.vectors import MAX_PHRASE_WORDS

QUESTIONS = ["where does ada live ?", "what job does bram have ?", "who lives in riga ?", "in which year ?"]


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return make_documents(25, seed=4)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, documents: list[Document]) -> Index:
    folder = tmp_path_factory.mktemp("answers")
    model = save_model_folder(folder / "model")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        with Index.create(folder / "index", str(model)) as made:
            made.add(documents)
            made.commit()
    return Index.open(folder / "index")


def float_best(
    encoder: PhraseEncoder, index: Index, documents: list[Document], question: str
) -> tuple[float, set[tuple[str, int, int]]]:
    """The best score by floats, and all places that come close to it."""
    snapshot = index.snapshot()
    vectors = encoder.encode_questions([question])
    assert encoder.quantizer is not None
    assert encoder.filter_thresholds is not None
    sparse = Searcher(index).asked(question).sparse
    scores = {}
    for document in documents:
        place = snapshot.find(document.document_id)
        assert place is not None
        reader = snapshot.segments[place.segment]
        number = np.array([place.document])
        for nth, (span, text) in enumerate(zip(document.paragraphs, document.paragraph_texts(), strict=True)):
            (whole,) = encoder.encode_paragraphs([text])
            stored = encoder.quantizer.stored(whole)
            stored.can_start[:] = kept_starts(whole, encoder.filter_thresholds)
            stored.can_end[:] = kept_ends(whole, encoder.filter_thresholds)
            paragraph = np.array([int(reader.document_paragraphs[place.document]) + nth])
            words = document_scores_of(reader.postings, sparse, number)[0]
            words += paragraph_scores_of(reader.postings, sparse, paragraph)[0]
            for (first, length), score in np.ndenumerate(phrase_scores(vectors, stored)[0]):
                if score > -np.inf:
                    start = span.start_char + int(whole.word_starts[first])
                    end = span.start_char + int(whole.word_ends[first + length])
                    scores[document.document_id, start, end] = float(score) + PAPER_SPARSE_WEIGHT * words
    best = max(scores.values())
    return best, {place for place, score in scores.items() if score > best - 0.01}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_best_answer_is_that_of_float_search(
    index: Index, documents: list[Document], question: str
) -> None:
    searcher = Searcher(index)
    score, places = float_best(searcher.encoder, index, documents, question)
    best = searcher.answer(question, k=1, strategy="exact", repair=False)[0]
    assert best.score == pytest.approx(score, abs=0.01)
    assert (best.document_id, best.span.start_char, best.span.end_char) in places


def test_strategies_and_batches_agree_with_exact(index: Index) -> None:
    searcher = Searcher(index)
    best = [searcher.answer(question, strategy="exact")[0] for question in QUESTIONS]
    assert [each[0] for each in searcher.answer_batch(QUESTIONS, strategy="hybrid")] == best
    for strategy in STRATEGIES:
        batch = searcher.answer_batch(QUESTIONS, strategy=strategy)
        assert batch == [searcher.answer(question, strategy=strategy) for question in QUESTIONS]


def test_answers_of_a_document_that_was_added_later(index: Index, tmp_path: Path) -> None:
    searcher = Searcher(index)
    (more,) = make_documents(1, seed=99)
    added = Document("new", more.title, more.text, more.paragraphs)
    index.add([added])
    index.commit()
    assert searcher.refresh()
    found = searcher.answer("who is it ?", k=1, where={"document_id": "new"})
    assert [each.document_id for each in found] == ["new"]
    index.delete("new")
    index.commit()
    assert searcher.refresh()
    assert searcher.answer("who is it ?", k=1, where={"document_id": "new"}) == []


def test_no_phrase_reaches_from_a_heading_into_its_text(index: Index) -> None:
    heading, text = " ".join((*PEOPLE, *TOWNS, *JOBS)), "ada lives in riga . " * 9
    apart = {}
    for gap in (" \n", "\n\n"):
        whole = heading + gap + text
        index.add([Document(repr(gap), "riga", whole, (Span(0, len(whole)),))])
        index.commit()
        place = index.snapshot().find(repr(gap))
        assert place is not None
        segment = index.snapshot().segments[place.segment]
        rows = segment.rows_of(int(segment.document_paragraphs[place.document]))
        starts = rows.start_words[rows.start_chars < len(heading)].astype(int)
        ends = rows.end_words[rows.end_chars > len(heading)].astype(int)
        apart[gap] = int(ends.min() - starts.max())
    assert apart[" \n"] < MAX_PHRASE_WORDS <= apart["\n\n"]
    lost = Searcher(index).why_not("who ?", repr("\n\n"), Span(0, len(heading) + 5))
    assert (lost.step, lost.reason) == ("paragraph", "a blank line runs through it, which no phrase crosses")
