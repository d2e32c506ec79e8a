"""Scores and rankings against scipy; every fast path against the plain one."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from denspi.errors import InputError, MissingExtraError
from denspi.sparse import (
    Postings,
    SparseRetriever,
    document_scores_of,
    explain_document,
    explain_paragraph,
    paragraph_scores_of,
)
from denspi.sparse.compiled import add_up
from denspi.sparse.topk import top_positive
from denspi.types import Document

Make = Callable[..., Any]
QUESTIONS = [
    "Which river is Warsaw on?",
    "When was the Old Town of Warsaw rebuilt?",
    "Where was Beyonce born?",
    "album album album",
    "Who are The Who?",
    "to be or not to be",
    "zzyzx",
    "",
]
TEXT = st.text(alphabet="ab the", max_size=40)
COLLECTION = st.lists(st.tuples(TEXT, st.lists(TEXT.filter(bool), max_size=4)), min_size=1, max_size=6)


def plain_top(scores: NDArray[np.float64], k: int) -> list[int]:
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    return [number for number in order if scores[number] > 0][:k]


def check(postings: Postings, retriever: SparseRetriever, oracle: Any, text: str) -> None:
    question = retriever.weigh(text)
    paragraphs, documents = oracle.scores(text)
    by_paragraph, by_document = postings.paragraph_scores(question), postings.document_scores(question)
    np.testing.assert_allclose(by_paragraph, paragraphs, atol=1e-6)
    np.testing.assert_allclose(by_document, documents, atol=1e-6)
    both = by_paragraph + by_document[postings.documents_of_paragraphs()]
    compiled = Postings(postings.segment, postings.norms, compiled=True)
    asked = postings.asked(question, add_up)
    assert asked.paragraph_scores().tolist() == by_paragraph.tolist()
    assert asked.document_scores.tolist() == by_document.tolist()
    for k in (1, 3, 100, 10**13):
        for scores, hits in (
            (by_paragraph, postings.top_paragraphs(question, k)),
            (by_paragraph, compiled.top_paragraphs(question, k)),
            (by_document, postings.top_documents(question, k)),
            (by_document, asked.top_documents(k)),
            (both, postings.top_paragraphs_by_both(question, k)),
            (both, asked.top_paragraphs_by_both(k)),
        ):
            assert hits.numbers.tolist() == plain_top(scores, k)
            assert hits.scores.tolist() == scores[hits.numbers].tolist()
    every_paragraph, every_document = np.arange(len(paragraphs)), np.arange(len(documents))
    assert paragraph_scores_of(postings, question, every_paragraph).tolist() == by_paragraph.tolist()
    assert document_scores_of(postings, question, every_document).tolist() == by_document.tolist()


@pytest.mark.parametrize("text", QUESTIONS)
def test_scores_are_scipys(
    retriever: SparseRetriever, documents: list[Document], make_oracle: Make, text: str
) -> None:
    check(retriever.postings, retriever, make_oracle(documents), text)


def test_counts_that_no_posting_has_room_for(make_document: Make, make_oracle: Make, folder: Path) -> None:
    texts = (["tick " * 300], ["tick tock " * 40], ["tock"], ["tack " * 60] * 20)  # the last: 1,200 in all
    documents = [make_document(str(number), "Clock", *text) for number, text in enumerate(texts)]
    retriever = SparseRetriever.build(documents, folder)
    for text in ("tick", "tock tick", "clock", "tack", "tock tack"):
        check(retriever.postings, retriever, make_oracle(documents), text)


def test_a_missing_compiler_is_one_clear_line(
    retriever: SparseRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "denspi.sparse.compiled", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'denspi\[fast\]'"):
        Postings(retriever.postings.segment, retriever.postings.norms, compiled=True)


@given(collection=COLLECTION, text=TEXT)
def test_random_collections(
    make_document: Make,
    make_oracle: Make,
    tmp_path_factory: pytest.TempPathFactory,
    collection: list[tuple[str, list[str]]],
    text: str,
) -> None:
    documents = [
        make_document(str(number), title, *texts) for number, (title, texts) in enumerate(collection)
    ]
    retriever = SparseRetriever.build(documents, tmp_path_factory.mktemp("random"))
    check(retriever.postings, retriever, make_oracle(documents), text)


def test_ranking_is_scipys(retriever: SparseRetriever, documents: list[Document], make_oracle: Make) -> None:
    paragraphs, _ = make_oracle(documents).scores("Which river is Warsaw on?")
    question = retriever.weigh("Which river is Warsaw on?")
    assert retriever.postings.top_paragraphs(question, 3).numbers[0] == np.argmax(paragraphs)


def test_equal_paragraphs_tie_and_the_lower_number_wins(retriever: SparseRetriever) -> None:
    hits = retriever.postings.top_paragraphs(retriever.weigh("Old Town heritage site"), 2)
    assert hits.numbers.tolist() == [1, 6]
    assert hits.scores[0] == hits.scores[1]


def test_stop_word_titles_are_found(retriever: SparseRetriever) -> None:
    assert retriever.top_documents("The Who", 1).numbers.tolist() == [1]
    assert retriever.top_paragraphs("The Who", 1).numbers.tolist() == [2]  # through its document alone


def test_accents_and_their_forms_match(retriever: SparseRetriever) -> None:
    found = [
        retriever.top_documents(text, 1)
        for text in ("Beyonce", "BEYONCÉ", "beyoncé", unicodedata.normalize("NFD", "Beyoncé"))
    ]
    assert {hits.numbers[0] for hits in found} == {3}
    assert len({hits.scores[0] for hits in found}) == 1


def test_one_document_and_one_topic_do_not_vanish(make_document: Make, tmp_path: Any) -> None:
    alone = SparseRetriever.build([make_document("a", "", "old town")], tmp_path / "one")
    assert alone.top_paragraphs("the old town?", 5).scores[0] == pytest.approx(2.0)  # two cosines of 1
    topic = [make_document(str(number), "Town", "old town", f"town number {number}") for number in range(5)]
    retriever = SparseRetriever.build(topic, tmp_path / "topic")
    assert len(retriever.top_paragraphs("town", 20).numbers) == 10
    assert retriever.top_documents("town 3", 1).numbers.tolist() == [3]


def test_an_empty_collection_answers_nothing(tmp_path: Any) -> None:
    retriever = SparseRetriever.build([], tmp_path / "none")
    assert len(retriever.top_paragraphs("old town", 5).numbers) == 0
    assert len(retriever.top_documents("old town", 5).numbers) == 0


def test_forbidden_ones_are_left_out_before_the_cut(retriever: SparseRetriever) -> None:
    question, postings = retriever.weigh("Old Town of Warsaw"), retriever.postings
    allowed = np.ones(postings.segment.paragraph_count, np.bool_)
    allowed[1] = False
    assert postings.top_paragraphs(question, 1, allowed).numbers.tolist() == [6]
    both = (
        postings.paragraph_scores(question)
        + postings.document_scores(question)[postings.documents_of_paragraphs()]
    )
    both[1] = 0
    for k in (1, 3, 10):
        assert postings.top_paragraphs_by_both(question, k, allowed).numbers.tolist() == plain_top(both, k)
    only_last = np.array([False, False, False, False, True])
    assert postings.top_documents(question, 5, only_last).numbers.tolist() == [4]
    with pytest.raises(InputError, match="mask of allowed paragraphs"):
        postings.top_paragraphs(question, 1, allowed[:-1])


@pytest.mark.parametrize("text", QUESTIONS)
def test_explanations_add_up(retriever: SparseRetriever, text: str) -> None:
    question, postings = retriever.weigh(text), retriever.postings
    for paragraph, score in enumerate(postings.paragraph_scores(question)):
        assert sum(
            match.score for match in explain_paragraph(postings, question, paragraph)
        ) == pytest.approx(score)
    for document, score in enumerate(postings.document_scores(question)):
        assert sum(match.score for match in explain_document(postings, question, document)) == pytest.approx(
            score
        )


def test_an_explanation_names_ngrams_and_counts(retriever: SparseRetriever) -> None:
    matches = explain_paragraph(retriever.postings, retriever.weigh("Where is the Old Town?"), 1)
    assert {(match.ngram, match.count) for match in matches} == {("old town", 2), ("old", 2), ("town", 2)}
    (album,) = explain_paragraph(retriever.postings, retriever.weigh("album"), 5)
    assert album.count == 300  # more than a posting can hold


def test_no_such_paragraph(retriever: SparseRetriever) -> None:
    with pytest.raises(InputError, match="no such paragraph"):
        explain_paragraph(retriever.postings, retriever.weigh("album"), 7)


def test_threads_do_not_disturb_each_other(retriever: SparseRetriever) -> None:
    def ask(text: str) -> list[int]:
        return retriever.postings.top_paragraphs(retriever.weigh(text), 5).numbers.tolist()

    expected = [ask(text) for text in QUESTIONS] * 50
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, QUESTIONS * 50)) == expected


@given(st.lists(st.integers(-1, 5), max_size=3000), st.integers(0, 40))
def test_top_positive(scores: list[int], k: int) -> None:
    hits = top_positive(np.array(scores, np.float64), k)
    assert hits.numbers.tolist() == plain_top(np.array(scores, np.float64), k)
