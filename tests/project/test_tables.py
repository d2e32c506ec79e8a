"""What the scripts of the paper's tables calculate themselves, against slow and obvious ways."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.project.figures import load_script

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.evaluation.open import asked_questions

pytest.importorskip("bm25s")


def articles(paragraphs: list[int]) -> list[SquadArticle]:
    """An article for each number, of one paragraph with so many questions."""
    return [
        SquadArticle(
            f"Article {place}",
            (
                SquadParagraph(
                    "text",
                    tuple(
                        SquadQuestion(f"{place}-{number}", "?", (SquadAnswer("text", 0),))
                        for number in range(count)
                    ),
                ),
            ),
        )
        for place, count in enumerate(paragraphs)
    ]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 40))
def test_a_spread_sample_is_even(paragraphs: list[int], count: int) -> None:
    given_articles = articles(paragraphs)
    every = [question.question_id for _, _, question in asked_questions(given_articles)]
    sample = load_script("experiments/tables/open_runs.py").spread(given_articles, count)
    kept = [question.question_id for _, _, question in asked_questions(sample)]
    assert len(kept) == min(count, len(every))
    places = [every.index(each) for each in kept]
    assert places == sorted(places)
    if len(kept) > 1:
        steps = np.diff(places)
        assert steps.max() - steps.min() <= 1


@given(st.lists(st.integers(0, 60), max_size=8))
def test_phrases_are_counted(words: list[int]) -> None:
    stored = SimpleNamespace(whole=lambda: np.array(words, np.uint32))
    snapshot = SimpleNamespace(segments=[SimpleNamespace(paragraph_words=stored)])
    expected = sum(
        1 for count in words for start in range(count) for end in range(start, min(count, start + 20))
    )
    assert load_script("experiments/tables/size.py").count_phrases(snapshot) == expected


@given(st.integers(1, 600), st.integers(1, 12))
def test_systems_take_turns_and_none_comes_right_after_another_with_its_questions(
    questions: int, systems: int
) -> None:
    """What one has read is in the caches: whoever is asked the same next would look faster."""
    rounds = list(load_script("benchmarks/query.py").rounds(questions, systems))
    for system in range(systems):
        asked = [place for shifts in rounds for place in shifts[system]]
        assert sorted(asked) == list(range(questions))
    if len(rounds) >= systems:
        for shifts in rounds:
            assert len({places.start for places in shifts}) == systems


def test_ratios_are_over_the_questions_that_both_were_asked() -> None:
    query = load_script("benchmarks/query.py")
    ours = query.Taken({0: 1.0, 1: 2.0, 2: 8.0}, {0: 1.0, 1: 1.0, 2: 1.0})
    few = query.Taken({2: 80.0}, {2: 3.0})
    found = query.ratios({query.OURS: ours, "few": few})
    assert found == {"few": {"wall": 10.0, "cpu": 3.0}}


def test_without_a_reader_what_was_measured_of_it_stays(tmp_path: Path) -> None:
    query = load_script("benchmarks/query.py")
    output, asked = tmp_path / "query.json", {"questions": 500, "document_questions": 30}
    assert query.last_rereading(output, asked, 9) == {}
    last = asked | {
        "index": {"paragraphs": 9},
        "reader": "r",
        "batch": {"questions": 9},
        "machine": {"date": "then", "commit": "old", "load": 1},
        "systems": {"hybrid": {"em": 1, "wall_ms": {"p50": 2}}, "re-read 1": {"em": 3}},
        "times_slower_than_hybrid": {"exact": 4, "re-read 1": 5},
    }
    ours = {"systems": {"hybrid": {"em": 6, "wall_ms": {"p50": 9}}}, "times_slower_than_hybrid": {"exact": 7}}
    for _ in range(2):  # what is kept is kept again
        output.write_text(json.dumps(last))
        assert query.last_rereading(output, asked, 9) == last
        found = query.with_rereading(ours, last)
        assert found == {
            "reader": "r",
            "batch": {"questions": 9},
            "systems": ours["systems"] | {"re-read 1": {"em": 3}},
            "times_slower_than_hybrid": {"exact": 7, "re-read 1": 5},
            "rereading_measured": {"date": "then", "commit": "old", "hybrid_wall_ms": {"p50": 2}},
        }
        last |= found | {"machine": {"date": "now", "commit": "new"}}
    for other, paragraphs in ((asked | {"document_questions": 20}, 9), (asked, 8)):
        with pytest.raises(SystemExit, match=r"re-reading was measured with .*, now .*; name a reader"):
            query.last_rereading(output, other, paragraphs)
    output.write_text(json.dumps(last | {"reader": None}))
    assert query.last_rereading(output, asked, 8) == {}


def test_what_one_reader_answered_is_not_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load_script("experiments/tables/open_runs.py")
    monkeypatch.setattr(script, "evaluated", lambda *_: {"index": "the same"})
    monkeypatch.setattr(
        script,
        "reread_tfidf",
        lambda _searcher, reader, *_: lambda _question: SimpleNamespace(text=reader, texts_read=1),
    )

    def run(reader: str) -> float:
        asked = articles([3])
        return float(script.run_reread("re-read", False, None, reader, reader * 9, asked, tmp_path)["em"])

    assert [run("text"), run("other"), run("text")] == [100, 0, 100]


def test_every_trained_model_has_its_row_in_table_1() -> None:
    runs = load_script("experiments/training/runs.py").RUNS
    table = load_script("experiments/tables/table1.py")
    rows = {name for part in (table.READERS, table.AGNOSTIC, table.ABLATIONS) for name in part}
    no_longer_made = {"ablation-lengths-by-chance"}
    assert rows - no_longer_made == {name for name, run in runs.items() if run.stage != "ask"}


def test_points_of_a_growing_index_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted behind the second of three steps: the index is past the first two, which stay."""
    script = load_script("experiments/tables/collection_growth.py")
    (tmp_path / "index").mkdir()
    grown: list[int] = []
    system = {"em": 50.0, "f1": 60.0, "top_k_em": 70.0, "questions": 7, "seconds_per_question": 0.1}

    def grow(_folder: Path, _data: Path, words: int) -> None:
        if words == 2_000_000 and grown.count(words) == 0:
            grown.append(words)
            raise KeyboardInterrupt
        grown.append(words)

    def measure(*_: object) -> dict[str, Any]:
        point = {"documents": 1, "words": 10 + grown[-1], "starts": 3, "segments": 1, "bytes_per_word": 5.0}
        return point | {"systems": {"hybrid": system | {"documents_per_question": 1.0}}}

    for name, stand_in in (("grow", grow), ("measure", measure), ("read_squad", lambda _: [])):
        monkeypatch.setattr(script, name, stand_in)
    monkeypatch.setattr(script, "spread", lambda *_: [])
    options = {"--index": "index", "--data": "data", "--scratch": "scratch", "--output": "growth.json"}
    arguments = [part for option, name in options.items() for part in (option, str(tmp_path / name))]

    def run(limit: int) -> list[int]:
        steps = ["--millions", "0", "1", "2", "--limit", str(limit)]
        monkeypatch.setattr(sys, "argv", ["collection_growth.py", *arguments, *steps])
        script.main()
        return [each["words"] for each in json.loads((tmp_path / "growth.json").read_text())["points"]]

    with pytest.raises(KeyboardInterrupt):
        run(7)
    assert run(7) == run(7) == [10, 1_000_010, 2_000_010]
    assert grown == [0, 1_000_000, 2_000_000, 2_000_000]
    with pytest.raises(SystemExit, match="measured with 7 questions, not 8"):
        run(8)


def test_an_index_that_has_grown_further_is_not_measured_as_a_smaller_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load_script("experiments/tables/collection_growth.py")
    every = [SimpleNamespace(document_id=str(number)) for number in range(4)]
    monkeypatch.setattr(script, "first_articles", lambda _data, words: iter(every[: min(words, 4)]))
    added: list[str] = []

    class Stored:
        """An index of two articles."""

        def __enter__(self) -> Stored:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def snapshot(self) -> SimpleNamespace:
            return SimpleNamespace(find=lambda name: (0, 0) if name in "01" else None)

        def add(self, documents: list[SimpleNamespace], _show: object) -> None:
            added.extend(each.document_id for each in documents)

        def commit(self) -> None:
            pass

    monkeypatch.setattr(script, "Index", SimpleNamespace(open=lambda _: Stored()))
    monkeypatch.setattr(script, "size_of", lambda _: SimpleNamespace(words=1))
    with pytest.raises(SystemExit, match="holds more than 1 words of Wikipedia"):
        script.grow(tmp_path, tmp_path, 1)
    script.grow(tmp_path, tmp_path, 2)
    assert added == []
    script.grow(tmp_path, tmp_path, 4)
    assert added == ["2", "3"]


def test_the_half_width_is_that_of_a_binomial() -> None:
    half_width = load_script("experiments/tables/open_runs.py").half_width
    assert half_width(50.0, 100) == pytest.approx(9.8)
    assert half_width(0.0, 100) == 0
