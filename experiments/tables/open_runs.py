"""Runs in the open setting that the tables share: our strategies and the re-reading pipelines.

What became of each question is kept in a folder of states, as `denspi evaluate open --resume` keeps it, so
that a table goes on where it was interrupted. The searching and scoring is all denspi's own.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import paper
from pages import ROOT

from denspi.corpus.squad import SquadArticle, SquadParagraph
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.reader import Reader
from denspi.evaluation.open import OpenSettings, asked_questions, evaluate_open, evaluated, summarize
from denspi.evaluation.outcomes import Outcome, OutcomeFile, fingerprint
from denspi.search.searcher import Searcher
from denspi.text.answers import exact_match, f1

sys.path.append(str(ROOT / "benchmarks"))
from cold import OpenedAnew, drop_pages
from systems import TOP_DOCUMENTS, reread_tfidf

SHOW_EVERY_S = 20.0
TOP_PARAGRAPHS = 20
WITHOUT_SPARSE = "dense_first without words"


@dataclass(frozen=True)
class Ours:
    """A row of ours and the paper's that it stands beside."""

    settings: OpenSettings
    row: paper.OpenRow | None


OURS = {
    "sparse_first": Ours(OpenSettings("sparse_first"), paper.SFS),
    "dense_first": Ours(OpenSettings("dense_first"), paper.DFS),
    WITHOUT_SPARSE: Ours(OpenSettings("dense_first", sparse_weight=0.0), paper.NO_SPARSE),
    "hybrid": Ours(OpenSettings("hybrid"), paper.HYBRID),
    "exact": Ours(OpenSettings("exact"), None),
}


def spread(articles: Sequence[SquadArticle], count: int | None) -> list[SquadArticle]:
    """About so many questions, evenly spread over all of them; all where `count` is None."""
    asked = asked_questions(articles)
    if count is None or count >= len(asked):
        return list(articles)
    chosen = {asked[place * len(asked) // count][2].question_id for place in range(count)}
    kept = []
    for article in articles:
        paragraphs = [
            SquadParagraph(each.context, tuple(q for q in each.questions if q.question_id in chosen))
            for each in article.paragraphs
        ]
        paragraphs = [each for each in paragraphs if each.questions]
        if paragraphs:
            kept.append(SquadArticle(article.title, tuple(paragraphs)))
    return kept


class Shown:
    """Progress on standard error, now and then."""

    def __init__(self, name: str, total: int, done: int) -> None:
        self._name, self._total, self._done, self._right, self._asked = name, total, done, 0, 0
        self._began = self._last = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        """One more."""
        self._asked, self._right = self._asked + 1, self._right + outcome.em
        now, done = time.monotonic(), self._done + self._asked
        if now - self._last >= SHOW_EVERY_S or done == self._total:
            self._last = now
            left_s = (now - self._began) / self._asked * (self._total - done)
            em = 100 * self._right / self._asked
            text = f"{self._name}: {done} of {self._total}, EM {em:.1f}, {left_s / 60:.0f} min left"
            print(text, file=sys.stderr, flush=True)


def run_ours(
    name: str, settings: OpenSettings, searcher: Searcher, articles: Sequence[SquadArticle], states: Path
) -> dict[str, Any]:
    """One strategy over the questions of the articles."""
    with OutcomeFile(_state(states, name), evaluated(searcher, settings)) as file:
        asked = [question for _, _, question in asked_questions(articles)]
        known = file.of(asked)
        show = Shown(name, len(asked), len(known))

        def keep(outcome: Outcome) -> None:
            file.add(outcome)
            show(outcome)

        result = evaluate_open(searcher, articles, settings, known, keep)
        return _rounded(asdict(result)) | {"em_half_width": half_width(result.em, result.questions)}


def run_reread(
    name: str,
    by_document: bool,
    searcher: Searcher,
    reader: Reader,
    fingerprint_of_reader: str,
    articles: Sequence[SquadArticle],
    states: Path,
) -> dict[str, Any]:
    """tf-idf and a reader, which reads everything that it is given for each question anew.

    What another reader answered is not taken for its own.
    """
    count = TOP_DOCUMENTS if by_document else TOP_PARAGRAPHS
    ask = reread_tfidf(searcher, reader, count, by_document)
    settings, outcomes = OpenSettings(name), []
    asked = [question for _, _, question in asked_questions(articles)]
    state = _state(states, f"{name} {fingerprint_of_reader[:12]}")
    with OutcomeFile(state, evaluated(searcher, settings)) as file:
        known = file.of(asked)
        show = Shown(name, len(asked), len(known))
        for question in asked:
            if question.question_id not in known:
                started = time.perf_counter()
                answered = ask(question.text)
                seconds = time.perf_counter() - started
                references = [answer.text for answer in question.answers]
                right = exact_match(answered.text, references)
                outcome = Outcome(
                    question_id=question.question_id,
                    asked=fingerprint(question),
                    prediction=answered.text,
                    em=right,
                    f1=f1(answered.text, references),
                    top_k_em=right,
                    seconds=seconds,
                    is_alone=True,
                    documents=answered.texts_read,  # paragraphs, here
                    recall={},
                )
                file.add(outcome)
                show(outcome)
            outcomes.append(file.outcomes[question.question_id])
    result = _rounded(asdict(summarize(outcomes, settings)))
    result["paragraphs_read_per_question"] = result.pop("documents_per_question")
    for unknown in ("recall", "top_k_em", "k"):
        del result[unknown]
    return result | {"em_half_width": half_width(result["em"], len(outcomes))}


def seconds_from_disk(
    index: Path, encoder: PhraseEncoder, settings: OpenSettings, questions: Sequence[str]
) -> float:
    """Mean seconds of a question to an index that was just opened, none of its pages in memory.

    The caller must not hold the index open: what is mapped cannot be dropped.
    """
    return _from_disk(
        index,
        encoder,
        questions,
        lambda opened: (
            lambda text: opened.ask(text, settings.k, settings.strategy, sparse_weight=settings.sparse_weight)
        ),
    )


def reread_seconds_from_disk(
    index: Path, encoder: PhraseEncoder, reader: Reader, by_document: bool, questions: Sequence[str]
) -> float:
    """The same for a pipeline; its reader is loaded, as the model is."""
    count = TOP_DOCUMENTS if by_document else TOP_PARAGRAPHS
    return _from_disk(
        index, encoder, questions, lambda opened: reread_tfidf(opened, reader, count, by_document)
    )


def _from_disk(
    index: Path,
    encoder: PhraseEncoder,
    questions: Sequence[str],
    asking: Callable[[Searcher], Callable[[str], object]],
) -> float:
    taken = 0.0
    for text in questions:
        gc.collect()
        drop_pages(index)
        opened = Searcher(OpenedAnew(index, encoder))
        ask = asking(opened)
        started = time.perf_counter()
        ask(text)
        taken += time.perf_counter() - started
    return round(taken / max(1, len(questions)), 4)


def half_width(em: float, questions: int) -> float:
    """Of the 95% interval, in points."""
    right = em / 100
    return round(196 * math.sqrt(right * (1 - right) / max(1, questions)), 2)


def _state(states: Path, name: str) -> Path:
    states.mkdir(parents=True, exist_ok=True)
    return states / f"{name.replace(' ', '-')}.jsonl"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value
