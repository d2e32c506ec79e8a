"""`Searcher`: questions in, answers out. Ties a model's encoder to a view of the index.

Threads may share one: a view is immutable, and `refresh` puts a new one in its place in one step; questions
that are under way finish on the generation they began with.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypedDict, Unpack

from denspi.build.cores import usable_cores
from denspi.dense.compact import CompactQuantizer
from denspi.dense.encoder import PhraseEncoder
from denspi.errors import InputError, ModelError
from denspi.index.snapshot import Snapshot
from denspi.search.answers import resolve
from denspi.search.asked import AskedQuestion
from denspi.search.batch import QUESTIONS_AT_ONCE, scan_together
from denspi.search.candidates import Candidates, Certificate, Limits, Strategy
from denspi.search.confidence import Confidence
from denspi.search.filters import Filter, Where
from denspi.search.fixed_point import fix_questions
from denspi.search.held_words import holds_word
from denspi.search.kernel_choice import kernels_of
from denspi.search.questions import clean_question, with_question_mark
from denspi.search.spelling import repair_question
from denspi.search.strategies import find_strategy
from denspi.search.view import SearchView
from denspi.search.why_not import WhyNot, why_not
from denspi.sparse.tfidf import weigh_question
from denspi.types import Answer, Span

DEFAULT_STRATEGY = "hybrid"
PAPER_SPARSE_WEIGHT = 0.05
"""For a model that was never calibrated."""
MAX_ANSWERS = 1000
MAX_SPARSE_WEIGHT = 1e6
_PHRASES_PER_ANSWER, _FEWEST_PHRASES, _MOST_PHRASES = 4, 20, 1 << 14


class Searchable(Protocol):
    """What a searcher needs of an index; `denspi.Index` has it."""

    def snapshot(self) -> Snapshot:
        """The newest generation."""

    def encoder(self) -> PhraseEncoder:
        """The encoder of the index's model."""


class SearchOptions(TypedDict, total=False):
    """What can be said about any search."""

    sparse_weight: float | None  # how much words count; the model's own by default, 0 to leave them out
    where: Where | Filter  # which documents may be found: {"language": "en"} or ["language=en"]
    min_confidence: float | None  # below this there is no answer at all
    explain: bool  # list the n-grams that match
    limits: Limits | None  # how far a strategy goes
    repair: bool  # read words that nobody knows as what was probably meant; on by default


@dataclass(frozen=True, slots=True)
class Reply:
    """The answers to one question, and what they took."""

    answers: list[Answer]
    strategy: str
    generation: int  # of the index that was searched
    documents_visited: int
    stages_ms: dict[str, float]
    certificate: Certificate | None  # what is proven, where the strategy proves something
    read_as: str | None = None  # the question with slips repaired, where there were any


class Searcher:
    """Answers questions from an index.

    `compiled` says whether to use the compiled loops (extra `fast`): by default where they are installed.
    They take some tenths of a second to load, which a single question does not earn back. A batch is spread
    over so many `threads`: by default, one for each core that the process may use.
    """

    def __init__(
        self, index: Searchable, *, compiled: bool | None = None, threads: int | None = None
    ) -> None:
        self.threads = usable_cores() if threads is None else max(1, threads)
        self.encoder = index.encoder()
        snapshot = index.snapshot()
        codec = self.encoder.codec(snapshot.model.precision)
        # A model's own fingerprint covers its int8 code alone.
        if isinstance(codec, CompactQuantizer) and codec.fingerprint != snapshot.model.quantizer:
            raise ModelError("the model's compact code is not the index's own; copy the model again")
        self._view = SearchView.of(snapshot, codec, kernels_of(snapshot.model, compiled))
        self._refreshing = threading.Lock()
        calibration = self.encoder.calibration
        self.sparse_weight = calibration.sparse_weight if calibration else PAPER_SPARSE_WEIGHT
        self._confidence = (
            Confidence(calibration.confidence_slope, calibration.confidence_intercept)
            if calibration
            else None
        )

    @property
    def view(self) -> SearchView:
        """The generation that the next question is put to."""
        return self._view

    def refresh(self) -> bool:
        """Go on to the newest generation; whether there is a newer one. Costs one small read if not."""
        with self._refreshing:
            newest = self._view.snapshot.refresh()
            if newest is self._view.snapshot:
                return False
            if not newest.model.gives_the_rows_of(self._view.snapshot.model):
                raise ModelError("the index was built anew with another model; open it again")
            self._view = self._view.on(newest)
            return True

    def answer(
        self, question: str, k: int = 5, strategy: str = DEFAULT_STRATEGY, **options: Unpack[SearchOptions]
    ) -> list[Answer]:
        """The k best answers, best first; none where the best is less sure than `min_confidence`."""
        return self.ask(question, k, strategy, **options).answers

    def answer_batch(
        self,
        questions: Sequence[str],
        k: int = 5,
        strategy: str = DEFAULT_STRATEGY,
        **options: Unpack[SearchOptions],
    ) -> list[list[Answer]]:
        """The same answers to each question as one by one, sooner: the rows are read once for many."""
        return [reply.answers for reply in self.ask_batch(questions, k, strategy, **options)]

    def ask(
        self, question: str, k: int = 5, strategy: str = DEFAULT_STRATEGY, **options: Unpack[SearchOptions]
    ) -> Reply:
        """Like `answer`, with the times of all stages and what was visited."""
        return self.ask_batch([question], k, strategy, **options)[0]

    def ask_batch(
        self,
        questions: Sequence[str],
        k: int = 5,
        strategy: str = DEFAULT_STRATEGY,
        *,
        sparse_weight: float | None = None,
        where: Where | Filter = None,
        min_confidence: float | None = None,
        explain: bool = False,
        limits: Limits | None = None,
        repair: bool = True,
    ) -> list[Reply]:
        """Like `answer_batch`, with the times of all stages and what was visited."""
        _checked(k)
        _check_questions(questions)
        if min_confidence is not None:
            self._check_confidence(min_confidence)
        search = find_strategy(strategy)
        view = Filter.of(where).applied_to(self._view)
        prove = limits is not None and limits.prove

        def together(some: Sequence[str]) -> list[Reply]:
            asked, encode_ms = self._asked(some, view, sparse_weight, repair)
            shared = {"encode": encode_ms / len(asked)} | scan_together(view, asked, search, prove)
            replies, waiting = [], deque(asked)
            del asked  # what was computed of a question goes with it: of a whole batch it would be gigabytes
            for text in some:
                each = waiting.popleft()
                found, answers = self._found(view, each, search, limits, k, explain)
                stages, generation = found.stages_ms, view.snapshot.generation
                reply = Reply(
                    answers, strategy, generation, found.documents_visited, stages, found.certificate
                )
                if min_confidence is not None and not _is_sure(reply.answers, min_confidence):
                    reply = replace(reply, answers=[])
                stages = {name: shared.get(name, 0.0) + ms for name, ms in reply.stages_ms.items()}
                read_as = each.sparse.text if each.sparse.text != clean_question(text) else None
                replies.append(replace(reply, stages_ms=shared | stages, read_as=read_as))
            return replies

        size = max(1, min(QUESTIONS_AT_ONCE, -(-len(questions) // self.threads)))
        parts = [questions[first : first + size] for first in range(0, len(questions), size)]
        if len(parts) < 2:
            return [reply for part in parts for reply in together(part)]
        with ThreadPoolExecutor(self.threads) as pool:
            return [reply for replies in pool.map(together, parts) for reply in replies]

    def why_not(
        self,
        question: str,
        document_id: str,
        span: Span,
        k: int = 5,
        strategy: str = DEFAULT_STRATEGY,
        **options: Unpack[SearchOptions],
    ) -> WhyNot:
        """Why `span` of a document's text is not among the k answers: its score and rank, or what lost it."""
        view = Filter.of(options.get("where")).applied_to(self._view)
        repair = options.get("repair", True)
        asked = self._asked([question], view, options.get("sparse_weight"), repair)[0][0]
        limits = options.get("limits")
        found, answers = self._found(view, asked, find_strategy(strategy), limits, _checked(k))
        return why_not(view, asked, found, answers, k, document_id, span, options.get("min_confidence"))

    def asked(self, question: str, sparse_weight: float | None = None) -> AskedQuestion:
        """A question in whole numbers, for those who call a strategy themselves."""
        return self._asked([question], self._view, sparse_weight)[0][0]

    def asked_batch(
        self, questions: Sequence[str], strategy: str, sparse_weight: float | None = None
    ) -> list[AskedQuestion]:
        """The same of several, for which this strategy's scans are made in one pass."""
        view, found = self._view, []
        for first in range(0, len(questions), QUESTIONS_AT_ONCE):
            some = self._asked(questions[first : first + QUESTIONS_AT_ONCE], view, sparse_weight)[0]
            scan_together(view, some, find_strategy(strategy))
            found += some
        return found

    def _check_confidence(self, wanted: float) -> None:
        if self._confidence is None:
            raise InputError(
                "the model is not calibrated, so nothing is known about confidence; leave it out"
            )
        if not 0 <= wanted <= 1:
            raise InputError(f"min_confidence {wanted}: not a probability; give a number from 0 to 1")

    def _asked(
        self, questions: Sequence[str], view: SearchView, sparse_weight: float | None, repair: bool = True
    ) -> tuple[list[AskedQuestion], float]:
        weight = self.sparse_weight if sparse_weight is None else sparse_weight
        if not 0 <= weight <= MAX_SPARSE_WEIGHT:
            raise InputError(f"sparse weight {weight:g}: not a number from 0 to {MAX_SPARSE_WEIGHT:,.0f}")
        cleaned = [clean_question(question) for question in questions]
        started = time.perf_counter()
        if repair:
            known, held = self.encoder.knows_word, partial(holds_word, view.snapshot)
            cleaned = [repair_question(each, view.snapshot.frequencies, known, held) for each in cleaned]
        read = [with_question_mark(each) for each in cleaned] if repair else cleaned
        vectors = self.encoder.encode_questions(read)
        fixed = fix_questions(vectors, view.codec, view.tables)
        asked = [
            AskedQuestion(each, weigh_question(text, view.snapshot.frequencies), weight, view.kernels.add_up)
            for each, text in zip(fixed, cleaned, strict=True)
        ]
        return asked, 1000 * (time.perf_counter() - started)

    def _found(
        self,
        view: SearchView,
        question: AskedQuestion,
        search: Strategy,
        limits: Limits | None,
        k: int,
        explain: bool = False,
    ) -> tuple[Candidates, list[Answer]]:
        """Candidates and the k best answers among them; without `limits`, from as many as that takes."""
        wanted = max(k, 2)  # how sure the best one is depends on the next that reads differently
        within, stages_ms = limits or _limits(k), dict[str, float]()
        while True:
            found = search(view, question, within)
            started = time.perf_counter()
            answers = resolve(view, question, found, wanted, self._confidence, explain)
            taken = {**found.stages_ms, "answers": 1000 * (time.perf_counter() - started)}
            stages_ms = {name: stages_ms.get(name, 0.0) + ms for name, ms in taken.items()}
            is_last = limits is not None or not found.is_cut or within.phrases >= _MOST_PHRASES
            if len(answers) == wanted or is_last:
                return replace(found, stages_ms=stages_ms), answers[:k]
            within = replace(within, phrases=4 * within.phrases)  # too many of them read alike


def _checked(k: int) -> int:
    if not isinstance(k, int) or not 1 <= k <= MAX_ANSWERS:
        raise InputError(f"{k} answers: ask for 1 to {MAX_ANSWERS}")
    return k


def _check_questions(questions: Sequence[str]) -> None:
    """Of many, the one that cannot be asked is named."""
    if isinstance(questions, str):
        raise InputError("a batch is a list of questions, not a text; for one question there is answer")
    for number, text in enumerate(questions, start=1):
        try:
            clean_question(text)
        except InputError as error:
            raise InputError(f"question {number}: {error}" if len(questions) > 1 else str(error)) from None


def _limits(k: int) -> Limits:
    return Limits(phrases=max(_FEWEST_PHRASES, _PHRASES_PER_ANSWER * k))


def _is_sure(answers: Sequence[Answer], min_confidence: float) -> bool:
    return bool(answers) and answers[0].confidence is not None and answers[0].confidence >= min_confidence
