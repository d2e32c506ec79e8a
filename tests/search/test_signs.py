"""Signs by themselves are indexed as words are, and are never an answer."""

from __future__ import annotations

import pytest

from denspi import Document, Index, InputError, Searcher, Span
from denspi.build import rows
from denspi.build.rows import rows_of
from denspi.index import directory
from denspi.search.why_not import Step

TEXT = "Version 2.3.1 was released (see below) by the core team on 2021-03-04."
QUESTIONS = ["Which version was released?", "Where?", "Who released it?", "When is the meeting?"]


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    folder = tmp_path_factory.mktemp("signs") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        # Without a filter, which might leave no sign.
        patch.setattr(rows, "rows_of", lambda vectors, _, *others: rows_of(vectors, None, *others))
        with Index.create(folder) as made:
            made.add([Document(f"d{n}", "Notes", TEXT, (Span(0, len(TEXT)),)) for n in range(14)])
            made.commit()
    return Searcher(Index.open(folder), compiled=False)


@pytest.mark.parametrize("strategy", ["hybrid", "exact"])
def test_every_answer_has_a_letter_or_a_digit(searcher: Searcher, strategy: str) -> None:
    for question in QUESTIONS:
        answers = searcher.answer(question, 10, strategy)
        assert answers
        assert all(any(sign.isalnum() for sign in answer.text) for answer in answers)


def test_why_a_sign_is_no_answer(searcher: Searcher) -> None:
    places = [n for n, sign in enumerate(TEXT) if sign in "()."]
    steps = {searcher.why_not(QUESTIONS[0], "d0", Span(n, n + 1)).step for n in places}
    assert steps <= {Step.NO_WORD, Step.BORDERS}
    assert Step.NO_WORD in steps


def test_a_place_beyond_the_listed_evidence_is_not_called_beaten(searcher: Searcher) -> None:
    (best, *_) = searcher.answer(QUESTIONS[0], 1)
    listed = {best.document_id, *(each.document_id for each in best.evidence)}
    left_out = next(f"d{n}" for n in range(14) if f"d{n}" not in listed)
    why = searcher.why_not(QUESTIONS[0], left_out, best.span, 1)
    assert why.step == Step.ANSWER
    assert "which lists 10 other places" in why.reason


def test_a_batch_names_what_it_cannot_ask(searcher: Searcher) -> None:
    with pytest.raises(InputError, match="question 2: the question is empty"):
        searcher.answer_batch(["who?", " ", "when?"])
    with pytest.raises(InputError, match="a batch is a list of questions"):
        searcher.answer_batch("who?")
    with pytest.raises(InputError, match="not a probability"):
        searcher.answer("who?", min_confidence=2)
    with pytest.raises(InputError, match=r"2\.5 answers"):
        searcher.answer("who?", k=2.5)  # type: ignore[arg-type]
