"""The open setting on tiny facts with the shipped model: every figure against a plain recomputation."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.tiny import save_facts

from denspi import Index, cli
from denspi.corpus import (
    SquadAnswer,
    SquadArticle,
    SquadParagraph,
    SquadQuestion,
    read_corpus,
    read_squad,
)
from denspi.errors import InputError
from denspi.evaluation.open import OpenResult, OpenSettings, asked_questions, evaluate_open, evaluated
from denspi.evaluation.outcomes import Outcome, OutcomeFile
from denspi.evaluation.recall import Reached
from denspi.index import directory
from denspi.search.candidates import Limits
from denspi.search.searcher import Searcher
from denspi.search.strategies import STRATEGIES
from denspi.search.view import SearchView
from denspi.search.why_not import Step
from denspi.text.answers import exact_match, mean_scores
from denspi.types import Document, Span

MISSING = "Article_5"


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "facts.json"
    save_facts(path, articles=6)
    return path


@pytest.fixture(scope="module")
def index(facts: Path) -> Path:
    """All articles but one; one of them under another id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "_fsync", lambda path, flags: None)
        with Index.create(facts.parent / "index", "small") as made:
            for each in read_corpus(facts):
                assert isinstance(each, Document)
                if each.document_id == "Article_1":
                    each = Document("first", each.title, each.text, each.paragraphs)
                if each.document_id != MISSING:
                    made.add([each])
            made.commit()
    return facts.parent / "index"


@pytest.fixture(scope="module")
def searcher(index: Path) -> Searcher:
    return Searcher(Index.open(index), compiled=False)


@pytest.fixture(scope="module")
def articles(facts: Path) -> list[SquadArticle]:
    return read_squad(facts)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_means_are_those_of_asking_one_by_one(
    strategy: str, searcher: Searcher, articles: list[SquadArticle]
) -> None:
    result = evaluate_open(searcher, articles, OpenSettings(strategy, k=3))
    asked = asked_questions(articles)
    references = [[answer.text for answer in question.answers] for _, _, question in asked]
    replies = [searcher.ask(question.text, 3, strategy) for _, _, question in asked]
    em, f1 = mean_scores([reply.answers[0].text if reply.answers else "" for reply in replies], references)
    top = [
        any(exact_match(answer.text, right) for answer in reply.answers)
        for reply, right in zip(replies, references, strict=True)
    ]
    assert (result.em, result.f1) == (pytest.approx(em), pytest.approx(f1))
    assert result.top_k_em == pytest.approx(100 * np.mean(top))
    assert result.top_k_em == pytest.approx(result.recall["answers"]["answer"])
    assert result.documents_per_question == np.mean([reply.documents_visited for reply in replies])
    assert (result.questions, result.k, result.strategy) == (54, 3, strategy)
    assert result.seconds_per_question > 0
    stages = {
        "sparse_first": ["index", "sparse", "candidates", "answers"],
        "dense_first": ["index", "dense", "candidates", "answers"],
        "hybrid": ["index", "sparse", "dense", "candidates", "answers"],
        "exact": ["index", "candidates", "answers"],
    }
    assert list(result.recall) == stages[strategy]


def traced(searcher: Searcher, articles: list[SquadArticle], settings: OpenSettings) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    evaluate_open(
        searcher, articles, settings, on_outcome=lambda each: found.update({each.question_id: each})
    )
    return found


def test_what_the_index_holds(searcher: Searcher, articles: list[SquadArticle]) -> None:
    """A stored answer is one that `why_not` does not call filtered."""
    outcomes = traced(searcher, articles, OpenSettings("exact"))
    for title, context, question in asked_questions(articles):
        reached = outcomes[question.question_id].recall["index"]
        if title == MISSING:
            assert reached == Reached(False, False, False)
            continue
        document_id = "first" if title == "Article_1" else title
        document = searcher.view.snapshot.document(document_id)
        assert document is not None
        steps = []
        for answer in question.answers:
            start = document.text.index(context) + answer.start_char
            span = Span(start, start + len(answer.text))
            steps.append(searcher.why_not(question.text, document_id, span).step)
        is_stored = any(step not in (Step.START_FILTERED, Step.END_FILTERED) for step in steps)
        assert reached.document
        assert reached.paragraph
        assert reached.answer == is_stored


def test_what_the_filter_drops_is_not_held(tmp_path: Path) -> None:
    text = (  # without articles, which make "for the" read as "for" does
        "In 1889 it was opened by Gustave Eiffel, whose company designed and built it for visitors of Paris. "
        "It is as high as any building of 81 storeys, and nothing so tall had ever been made by anybody else."
    )
    with Index.create(tmp_path / "index", "small") as made:
        made.add([Document("tower", "Tower", text, (Span(0, len(text)),))])
        made.commit()
    searcher = Searcher(Index.open(tmp_path / "index"), compiled=False)
    steps = {
        word: searcher.why_not("who ?", "tower", Span(*word.span())).step
        for word in re.finditer(r"\w+", text)
    }
    filtered = [word for word, step in steps.items() if step in (Step.START_FILTERED, Step.END_FILTERED)]
    assert 0 < len(filtered) < len(steps)
    questions = tuple(
        SquadQuestion(str(word.start()), "who ?", (SquadAnswer(word[0], word.start()),)) for word in steps
    )
    outcomes = traced(
        searcher, [SquadArticle("tower", (SquadParagraph(text, questions),))], OpenSettings("exact")
    )
    for word in steps:
        assert outcomes[str(word.start())].recall["index"].answer == (word not in filtered)


def test_what_retrieval_reaches(searcher: Searcher, articles: list[SquadArticle]) -> None:
    everything = Limits(top_documents=99, top_paragraphs=99, top_starts=10_000)
    for stage, strategy in (("sparse", "sparse_first"), ("sparse", "hybrid"), ("dense", "dense_first")):
        for outcome in traced(searcher, articles, OpenSettings(strategy, limits=everything)).values():
            is_there = outcome.recall["index"]
            if strategy == "dense_first":  # a paragraph without a start cannot be reached by starts
                assert outcome.recall[stage].document == is_there.document
                assert outcome.recall[stage].paragraph or not is_there.answer
            elif outcome.recall[stage].document:  # and one without a shared word not by words
                assert is_there.document
    nothing = Limits(phrases=1, top_documents=1, top_paragraphs=0, top_starts=1)
    narrow = evaluate_open(searcher, articles, OpenSettings("hybrid", limits=nothing)).recall
    wide = evaluate_open(searcher, articles, OpenSettings("hybrid", limits=everything)).recall
    assert narrow["sparse"] == {"document": 0, "paragraph": 0, "answer": 0}
    assert 0 < narrow["dense"]["answer"] < wide["dense"]["answer"]
    assert narrow["candidates"]["document"] <= narrow["dense"]["document"]
    assert narrow["candidates"]["answer"] < wide["candidates"]["answer"]


def without_times(result: OpenResult) -> dict[str, object]:
    return {
        name: getattr(result, name) for name in ("em", "f1", "top_k_em", "questions", "recall", "strategy")
    }


@pytest.mark.parametrize("strategy", ["hybrid", "exact"])
def test_batches_find_what_single_questions_find(
    strategy: str, searcher: Searcher, articles: list[SquadArticle], monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = evaluate_open(searcher, articles, OpenSettings(strategy))
    assert one_by_one.batch_seconds_per_question is None
    monkeypatch.setattr("denspi.evaluation.open.TIMED_QUESTIONS", 6)
    outcomes = traced(searcher, articles, OpenSettings(strategy))
    assert [each.is_alone for each in outcomes.values()] == [number % 9 == 0 for number in range(54)]
    assert list(outcomes) == [question.question_id for _, _, question in asked_questions(articles)]
    in_batches = evaluate_open(searcher, articles, OpenSettings(strategy))
    assert without_times(in_batches) == without_times(one_by_one)
    assert in_batches.batch_seconds_per_question is not None
    assert in_batches.batch_seconds_per_question > 0


def test_the_sparse_weight_reaches_the_search(
    searcher: Searcher, articles: list[SquadArticle], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights: list[float | None] = []
    weigh = searcher._asked

    def noted(questions: Sequence[str], view: SearchView, weight: float | None, *others: bool) -> object:
        weights.append(weight)
        return weigh(questions, view, weight, *others)

    monkeypatch.setattr(searcher, "_asked", noted)
    evaluate_open(searcher, articles[:1], OpenSettings("exact", sparse_weight=0.0))
    assert len(weights) > 1
    assert set(weights) == {0.0}  # the answers' and those of the stages


def test_it_goes_on_where_it_stopped(
    searcher: Searcher, articles: list[SquadArticle], tmp_path: Path
) -> None:
    whole = evaluate_open(searcher, articles)
    path, about = tmp_path / "state.jsonl", {"strategy": "hybrid", "generation": 1}
    asked: list[str] = []

    def keep(outcome: Outcome) -> None:
        file.add(outcome)
        asked.append(outcome.question_id)
        if len(asked) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), OutcomeFile(path, about) as file:
        evaluate_open(searcher, articles, known=dict(file.outcomes), on_outcome=keep)
    with path.open("a") as half:
        half.write('{"question_id": "cut')
    with OutcomeFile(path, about) as file:
        assert list(file.outcomes) == asked
        again = evaluate_open(searcher, articles, known=dict(file.outcomes), on_outcome=keep)
    assert without_times(again) == without_times(whole)
    assert len(asked) == len(set(asked)) == whole.questions
    with OutcomeFile(path, about) as file:
        nothing_left = evaluate_open(searcher, articles, known=file.outcomes, on_outcome=keep)
    assert nothing_left == again


def test_a_question_that_no_search_takes_counts_as_not_answered(
    searcher: Searcher, articles: list[SquadArticle]
) -> None:
    first = articles[0]
    blank = SquadQuestion("blank", "  ", (SquadAnswer("x", 0),))
    paragraph = SquadParagraph(first.paragraphs[0].context, (*first.paragraphs[0].questions, blank))
    kept: list[Outcome] = []
    whole = evaluate_open(searcher, [first])
    found = evaluate_open(
        searcher, [SquadArticle(first.title, (paragraph, *first.paragraphs[1:]))], on_outcome=kept.append
    )
    assert found.questions == len(kept) == whole.questions + 1
    assert found.em * found.questions == pytest.approx(whole.em * whole.questions)
    assert found.seconds_per_question > 0


def test_outcomes_of_another_question_with_the_same_id_are_not_taken(
    searcher: Searcher, articles: list[SquadArticle], tmp_path: Path
) -> None:
    (first, *_), about = articles[0].paragraphs[0].questions, {"strategy": "hybrid"}
    with OutcomeFile(tmp_path / "state", about) as file:
        evaluate_open(searcher, articles[:1], on_outcome=file.add)
        assert first.question_id in file.of([first])
        assert not file.of([SquadQuestion(first.question_id, "Another one?", first.answers)])
        assert not file.of([SquadQuestion(first.question_id, first.text, (SquadAnswer("other", 0),))])


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"no line end", "not the state of an evaluation"),
        (b"[1]\n", "not the state of an evaluation"),
        (
            b'{"strategy": "exact", "generation": 1}\n',
            "its evaluation has strategy 'exact', this one 'hybrid'",
        ),
        (b'{"strategy": "hybrid", "generation": 1}\n{"f1": 1}\n', ":2: not an outcome"),
    ],
)
def test_another_file_is_left_alone(content: bytes, finding: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"name another file") as raised:
        OutcomeFile(path, {"strategy": "hybrid", "generation": 1})
    assert finding in str(raised.value)
    assert path.read_bytes() == content


def test_the_command(index: Path, facts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state.jsonl"
    arguments = [
        "evaluate",
        "open",
        str(index),
        "--data",
        str(facts),
        "--limit",
        "10",
        "--resume",
        str(state),
    ]
    assert cli.run([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert captured.err == ""
    assert found.keys() >= {
        "em",
        "f1",
        "top_k_em",
        "questions",
        "seconds_per_question",
        "documents_per_question",
        "recall",
    }
    assert (found["questions"], found["strategy"], found["k"]) == (10, "hybrid", 5)
    assert found["recall"]["index"]["paragraph"] == 100
    kept = state.read_bytes()
    assert cli.run([*arguments, "--sparse-weight", "0"]) == 2
    assert "its evaluation has sparse_weight" in capsys.readouterr().err
    assert cli.run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found  # times too: nothing was asked again
    assert state.read_bytes() == kept
    assert cli.run(arguments) == 0
    assert capsys.readouterr().out.startswith(f"exact match {found['em']:.2f}, F1 ")


def test_it_runs_on_the_cores_that_it_may_use(
    index: Path, facts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(searcher: Searcher, *_: object) -> None:
        raise InputError(f"{searcher.threads} threads")

    monkeypatch.setattr("denspi.evaluation.open.evaluate_open", stop)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3})
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert cli.run(["evaluate", "open", str(index), "--data", str(facts)]) == 2
    assert capsys.readouterr().err == "denspi: 1 threads\n"


def test_an_interrupt_says_how_to_go_on(
    index: Path,
    facts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("denspi.evaluation.open._outcome", stop)
    state = tmp_path / "state"
    arguments = ["evaluate", "open", str(index), "--data", str(facts)]
    assert cli.run([*arguments, "--resume", str(state)]) == 130
    line = f"denspi: interrupted; the same command goes on after what {state} holds\n"
    assert capsys.readouterr().err == line
    assert cli.run(arguments) == 130
    assert capsys.readouterr().err == "denspi: interrupted\n"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"--data": "nowhere.json"}, "nowhere.json: no such file or folder"),
        ({"--strategy": "best"}, "strategy 'best': there is no such one; choose from "),
        ({"--limit": "0"}, "Invalid value for '--limit': "),
        ({"--resume": "nowhere/state"}, "nowhere/state: cannot be written: No such file or directory"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    changes: dict[str, str], line: str, index: Path, facts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"--data": str(facts)} | changes
    arguments = [part for pair in options.items() for part in pair]
    assert cli.run(["evaluate", "open", str(index), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"denspi: {line}")
    assert (captured.err.count("\n"), captured.out) == (1, "")


def test_an_id_that_stands_twice_is_refused(searcher: Searcher, articles: list[SquadArticle]) -> None:
    with pytest.raises(InputError, match="stands there twice"):
        evaluate_open(searcher, [*articles, *articles])


def test_outcomes_of_other_limits_are_not_taken(searcher: Searcher, tmp_path: Path) -> None:
    """A later version may have other defaults, and its questions other answers."""
    state, settings = tmp_path / "state.jsonl", OpenSettings(limits=Limits(top_starts=7))
    with OutcomeFile(state, evaluated(searcher, settings)):
        pass
    with pytest.raises(InputError, match="its evaluation has limits"):
        OutcomeFile(state, evaluated(searcher, OpenSettings()))


def test_outcomes_of_another_index_are_not_taken(
    index: Path, facts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As large, of as many documents, by the same model; only a name in it is another."""
    other, state = tmp_path / "index", tmp_path / "state.jsonl"
    with Index.create(other, "small") as made:
        for each in read_corpus(facts):
            assert isinstance(each, Document)
            if each.document_id not in (MISSING, "Article_1"):
                made.add([each])
            elif each.document_id == "Article_1":
                made.add([Document("other", each.title, each.text, each.paragraphs)])
        made.commit()
    asked = ["--data", str(facts), "--limit", "2", "--resume", str(state)]
    assert cli.run(["evaluate", "open", str(index), *asked]) == 0
    capsys.readouterr()
    assert cli.run(["evaluate", "open", str(other), *asked]) == 2
    assert "its evaluation has index" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["f1", "em", "prediction", "documents"])
def test_an_outcome_of_other_types_is_no_outcome(field: str, tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    with OutcomeFile(path, {"k": 5}) as file:
        file.add(Outcome("q", "print", "x", True, 1.0, True, 0.1, True, 3, {}))
    head, line = path.read_text().splitlines()
    path.write_text(head + "\n" + json.dumps(json.loads(line) | {field: ["x"]}) + "\n")
    with pytest.raises(InputError, match="not an outcome"):
        OutcomeFile(path, {"k": 5})
