"""Answers people get: from random rows with a made-up encoder, where the oracle knows everything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.index.made import MODEL, WORDS, build, make
from tests.search.compact_codes import compact_quantizer
from tests.search.conftest import CODES, COMPACT_CODES, build_segments

from denspi.dense.calibration import ModelCalibration
from denspi.dense.compact import CompactQuantizer
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.quantizer import Quantizer
from denspi.errors import InputError, MissingExtraError, ModelError
from denspi.index import IndexWriter, Snapshot, directory
from denspi.index.rows import ParagraphRows
from denspi.search.candidates import Limits
from denspi.search.confidence import Confidence
from denspi.search.searcher import Searcher
from denspi.search.strategies import STRATEGIES
from denspi.search.why_not import Step
from denspi.text.answers import normalize_answer
from denspi.text.tokens import word_spans
from denspi.types import Answer, Document, Span
from denspi.vectors import QuestionVectors

QUESTIONS = [
    "Which river?",
    "old town rebuilt",
    "the album of the band",
    "war capital warsaw",
    "rebuilt by whom",
]
CALIBRATION = ModelCalibration(0.7, 0.9, -0.3)


@dataclass
class MadeUpEncoder:
    """Vectors that depend on the question's text and nothing else."""

    calibration: ModelCalibration | None = CALIBRATION
    quantizer: Quantizer | None = CODES
    compact: CompactQuantizer | None = COMPACT_CODES

    codec = PhraseEncoder.codec

    def knows_word(self, word: str) -> bool:
        return word != "rievr"

    def encode_questions(self, questions: Sequence[str]) -> QuestionVectors:
        rows = [np.random.default_rng(list(text.encode())).standard_normal((2, 6)) for text in questions]
        vectors = np.array(rows, np.float32).reshape(-1, 2, 6)
        return QuestionVectors(vectors[:, 0], vectors[:, 1], np.ones(len(questions), np.float32))


@dataclass
class MadeUpIndex:
    folder: Path
    made_up: MadeUpEncoder

    def snapshot(self) -> Snapshot:
        return Snapshot.open(self.folder)

    def encoder(self) -> MadeUpEncoder:
        return self.made_up


def open_searcher(
    folder: Path, encoder: MadeUpEncoder | None = None, compiled: bool | None = None
) -> Searcher:
    return Searcher(MadeUpIndex(folder, encoder or MadeUpEncoder()), compiled=compiled)  # type: ignore[arg-type]


def one_phrase(code: int, start_char: int, end_char: int) -> ParagraphRows:
    """A paragraph of which one phrase is stored; its vectors are of this code throughout."""
    vector, key = np.full((1, 6), code, np.int8), np.zeros((1, 2), np.int8)
    start, end = (np.array([char], np.uint32) for char in (start_char, end_char))
    return ParagraphRows(
        8, np.array([0], np.uint32), start, vector, key, np.array([1], np.uint32), end, vector, key
    )


@pytest.fixture(scope="module")
def searcher(folder: Path) -> Searcher:
    return open_searcher(folder)


@pytest.fixture
def own_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that a test may change."""
    monkeypatch.setattr(directory, "_fsync", lambda path, flags: None)
    return Path(shutil.copytree(folder, tmp_path / "index"))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_what_stands_in_the_document(searcher: Searcher, strategy: str, question: str) -> None:
    answers = searcher.answer(question, k=4, strategy=strategy)
    assert 0 < len(answers) <= 4
    assert [a.score for a in answers] == sorted((a.score for a in answers), reverse=True)
    assert len({normalize_answer(a.text) for a in answers}) == len(answers)
    for answer in answers:
        document = searcher.view.snapshot.document(answer.document_id)
        assert document is not None
        assert document.title == answer.title
        assert answer.span.of(document.text) == answer.text
        assert answer.context_span.of(document.text) == answer.context
        assert answer.text in answer.context
        around = document.paragraphs[answer.paragraph]
        assert around.start_char <= answer.context_span.start_char <= answer.span.start_char
        assert answer.span.end_char <= answer.context_span.end_char <= around.end_char
        assert answer.parts.score == answer.score  # to the last bit
        for other in answer.evidence:
            found = searcher.view.snapshot.document(other.document_id)
            assert found is not None
            assert other.span.of(found.text) == other.text
            assert other.context_span.of(found.text) == other.context
            assert normalize_answer(other.text) == normalize_answer(answer.text)
            assert other.score <= answer.score


def test_numpy_and_compiled_give_the_same_answers(folder: Path) -> None:
    plain, fast = open_searcher(folder, compiled=False), open_searcher(folder, compiled=True)
    for strategy in STRATEGIES:
        for question in QUESTIONS:
            assert plain.answer(question, strategy=strategy) == fast.answer(question, strategy=strategy)


def test_without_numba_the_compiled_search_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "denspi.search.compiled", None)
    with pytest.raises(MissingExtraError, match="fast"):
        open_searcher(folder, compiled=True)


def test_more_answers_are_asked_for_until_there_are_enough(searcher: Searcher) -> None:
    everything = searcher.answer("Which river?", k=1000, strategy="exact")
    assert len(everything) > 30  # more than the first round of phrases gives
    assert [a.span for a in searcher.answer("Which river?", k=7, strategy="exact")] == [
        a.span for a in everything[:7]
    ]
    reply = searcher.ask("Which river?", k=1000, strategy="exact", limits=Limits(phrases=3))
    assert len(reply.answers) <= 3
    assert reply.certificate is not None
    assert reply.certificate.proven_phrases == 3


def test_what_a_reply_says_about_the_search(searcher: Searcher) -> None:
    reply = searcher.ask("Which river?", strategy="hybrid")
    assert set(reply.stages_ms) == {"encode", "sparse", "starts", "read", "answers"}
    assert (reply.strategy, reply.generation) == ("hybrid", searcher.view.snapshot.generation)
    assert reply.documents_visited > 0
    assert reply.certificate is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_gives_the_answers_of_a_loop(searcher: Searcher, strategy: str) -> None:
    questions = [
        f"{first} {second}?" for first in WORDS for second in WORDS[:4]
    ]  # more than are scanned at once
    assert len(questions) > 32
    together = searcher.answer_batch(questions, k=3, strategy=strategy, explain=True)
    assert together == [searcher.answer(each, k=3, strategy=strategy, explain=True) for each in questions]
    assert searcher.answer_batch([], strategy=strategy) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_nothing(folder: Path, searcher: Searcher, threads: int) -> None:
    own = Searcher(MadeUpIndex(folder, MadeUpEncoder()), threads=threads)  # type: ignore[arg-type]
    questions = [f"{first} {second}?" for first in WORDS for second in WORDS[:4]]
    assert own.answer_batch(questions) == [searcher.answer(each) for each in questions]
    with pytest.raises(InputError, match="empty"):
        own.answer_batch([*questions, ""])


def test_a_batch_uses_the_cores_that_the_process_may_use(folder: Path) -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        alone = Searcher(MadeUpIndex(folder, MadeUpEncoder()))  # type: ignore[arg-type]
    finally:
        os.sched_setaffinity(0, before)
    every = Searcher(MadeUpIndex(folder, MadeUpEncoder()))  # type: ignore[arg-type]
    assert (alone.threads, every.threads) == (1, len(before))


def test_the_sparse_weight_can_be_set(searcher: Searcher) -> None:
    (without,) = searcher.answer("old town", k=1, sparse_weight=0)
    assert (without.parts.document, without.parts.paragraph) == (0, 0)
    (much,) = searcher.answer("old town", k=1, sparse_weight=1000.0, strategy="exact")
    assert much.parts.document + much.parts.paragraph > 100
    usual = searcher.why_not("old town", much.document_id, much.span).parts
    assert usual is not None
    assert usual.start == much.parts.start
    assert usual.document * 1000 == pytest.approx(much.parts.document * CALIBRATION.sparse_weight)


def test_matches_add_up_to_the_sparse_parts(searcher: Searcher) -> None:
    for question in QUESTIONS:
        for answer in searcher.answer(question, explain=True):
            assert sum(m.document for m in answer.matches) == pytest.approx(answer.parts.document)
            assert sum(m.paragraph for m in answer.matches) == pytest.approx(answer.parts.paragraph)
            weights = [m.document + m.paragraph for m in answer.matches]
            assert weights == sorted(weights, reverse=True)
    assert searcher.answer("old town")[0].matches == ()


def test_confidence_comes_from_the_margin_to_the_best_other_answer(searcher: Searcher) -> None:
    first, second, third = searcher.answer("old town", k=3)
    curve = Confidence(CALIBRATION.confidence_slope, CALIBRATION.confidence_intercept)
    margins = (first.score - second.score, second.score - first.score, third.score - first.score)
    assert [first.confidence, second.confidence, third.confidence] == pytest.approx(
        curve.of(np.array(margins)).tolist()
    )
    assert first.confidence is not None
    assert searcher.answer("old town", k=3, min_confidence=first.confidence) == [first, second, third]
    assert searcher.answer("old town", k=3, min_confidence=first.confidence + 1e-9) == []


def test_how_sure_an_answer_is_does_not_depend_on_how_many_are_asked_for(tmp_path: Path) -> None:
    """Thirty places say the same, more than the first candidates: the rival lies behind all of them."""
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        for number in range(31):
            text = "warsaw" if number else "paris"
            document = Document(f"d{number}", "", text, (Span(0, len(text)),))
            writer.add(document, [one_phrase(5 * bool(number), 0, len(text))])
        writer.commit()
    searcher = open_searcher(tmp_path / "index")
    best = {question: searcher.answer(question, 2, "exact")[0] for question in QUESTIONS}
    assert "warsaw" in {answer.text for answer in best.values()}
    for question, answer in best.items():
        assert searcher.answer(question, 1, "exact") == [answer]
        why = searcher.why_not(question, answer.document_id, answer.span, min_confidence=1.0)
        assert why.step == Step.CONFIDENCE


def test_without_calibration_nothing_is_known_about_confidence(folder: Path) -> None:
    plain = open_searcher(folder, MadeUpEncoder(calibration=None))
    assert plain.answer("old town")[0].confidence is None
    with pytest.raises(InputError, match="not calibrated"):
        plain.answer("old town", min_confidence=0.5)


def test_a_filter_is_applied_before_the_cut(searcher: Searcher) -> None:
    for strategy in STRATEGIES:
        found = searcher.answer("old town river war", k=50, strategy=strategy, where={"number": [2, 6, 13]})
        assert {a.document_id for a in found} <= {"d2", "d6", "d13"}
        assert len(found) > 3
    assert searcher.answer("old town", where={"document_id": "d3"}) == []  # deleted
    assert searcher.answer("old town", where=["number=none"]) == []


@pytest.mark.parametrize(
    ("arguments", "finding"),
    [
        ({"question": ""}, "empty"),
        ({"question": "x" * 100_000}, "100,000"),
        ({"k": 0}, "0 answers"),
        ({"k": 10**6}, "1 to 1000"),
        ({"strategy": "best"}, "'best'"),
        ({"sparse_weight": -1.0}, "-1"),
        ({"sparse_weight": float("nan")}, "nan"),
        ({"sparse_weight": 1e300}, "from 0 to 1,000,000"),
        ({"where": ["x"]}, "field=value"),
    ],
)
def test_bad_use_is_one_line(searcher: Searcher, arguments: dict[str, object], finding: str) -> None:
    with pytest.raises(InputError, match=finding):
        searcher.answer(**({"question": "who"} | arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize("question", ["谁?", "кто", "zzz qqq", "\x00who\x1b[31m", "🙂 x", "ﷺ", "a" * 4000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_odd_questions_are_answered_or_not_but_never_crash(
    searcher: Searcher, strategy: str, question: str
) -> None:
    assert all(isinstance(each, Answer) for each in searcher.answer(question, strategy=strategy))


def test_a_model_without_a_quantizer_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="no int8 code, which the index needs"):
        open_searcher(folder, MadeUpEncoder(quantizer=None))


def test_a_model_without_a_compact_code_is_refused(compact_folder: Path) -> None:
    with pytest.raises(ModelError, match="no compact code, which the index needs"):
        open_searcher(compact_folder, MadeUpEncoder(compact=None))
    with pytest.raises(ModelError, match="not the index's own"):
        open_searcher(compact_folder, MadeUpEncoder(compact=compact_quantizer(6, 2, seed=8)))


def test_an_empty_index_has_no_answers(tmp_path: Path) -> None:
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        writer.commit()
    empty = open_searcher(tmp_path / "index")
    for strategy in STRATEGIES:
        assert empty.answer("Which river?", strategy=strategy) == []
        assert empty.answer("Which blorfgh?", strategy=strategy) == []  # nothing could repair it


def test_refresh_goes_on_to_the_newest_generation(own_folder: Path) -> None:
    searcher = open_searcher(own_folder)
    before = searcher.answer("old town", k=1000, strategy="exact")
    assert searcher.refresh() is False
    memos = {each.reader.name: each.memo for each in searcher.view.segments}
    gone = before[0].document_id
    with IndexWriter.open(own_folder) as writer:
        writer.delete(gone)
        writer.commit()
    assert searcher.answer("old town", k=1000, strategy="exact") == before  # not disturbed
    assert searcher.refresh() is True
    assert gone not in {a.document_id for a in searcher.answer("old town", k=1000, strategy="exact")}
    assert {each.reader.name: each.memo for each in searcher.view.segments} == memos
    assert all(memo.key_bounds is not None for memo in memos.values())
    with IndexWriter.open(own_folder) as writer:
        writer.add(*make(77, paragraphs=2, words=20))
        writer.commit()
    assert searcher.refresh() is True
    assert "d77" in {a.document_id for a in searcher.answer("old town", k=1000, strategy="exact")}


def test_an_index_that_was_built_anew_with_another_model_must_be_opened_again(own_folder: Path) -> None:
    searcher = open_searcher(own_folder)
    shutil.rmtree(own_folder)
    build(own_folder, [make(1)], model=replace(MODEL, quantizer="c" * 64))
    with pytest.raises(ModelError, match="another model"):
        searcher.refresh()


def test_an_index_that_was_built_anew_with_its_model_is_another_one(own_folder: Path) -> None:
    """Its segments have the old names; what was computed of the old rows must not be used for them."""
    searcher = open_searcher(own_folder)
    searcher.answer("old town", strategy="exact", where={"number": 2})
    shutil.rmtree(own_folder)
    build_segments(own_folder, MODEL, first=30)
    assert searcher.refresh()
    fresh = open_searcher(own_folder)
    for strategy in STRATEGIES:
        for question in QUESTIONS:
            assert searcher.answer(question, strategy=strategy) == fresh.answer(question, strategy=strategy)
    assert searcher.answer("old town", where={"number": 2}) == []


def test_threads_share_a_searcher_while_it_is_refreshed(own_folder: Path) -> None:
    searcher = open_searcher(own_folder)
    old = {question: searcher.answer(question, strategy="exact") for question in QUESTIONS}
    stop = False

    def ask(worker: int) -> list[tuple[str, list[Answer]]]:
        found = []
        while not stop:
            question = QUESTIONS[(worker + len(found)) % len(QUESTIONS)]
            found.append((question, searcher.answer(question, strategy="exact")))
        return found

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, worker) for worker in range(4)]
        with IndexWriter.open(own_folder) as writer:
            writer.delete("d1")
            writer.add(*make(55, paragraphs=3, words=30))
            writer.commit()
        searcher.refresh()
        new = {question: searcher.answer(question, strategy="exact") for question in QUESTIONS}
        stop = True
        replies = [reply for each in asking for reply in each.result()]
    assert len(replies) >= 4
    for question, answers in replies:
        assert answers in (old[question], new[question])


def test_the_same_answer_elsewhere_is_evidence(tmp_path: Path) -> None:
    texts = {"one": "in warsaw they met", "two": "The Warsaw, again", "three": "paris is far"}
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        for number, (name, text) in enumerate(texts.items()):
            begin = text.lower().index("warsaw") if "arsaw" in text.lower() else 0
            begin -= 4 if text.startswith("The") else 0
            length = len("The Warsaw") if text.startswith("The") else 6
            rows = one_phrase(number, begin, begin + length)
            writer.add(Document(name, name.title(), text, (Span(0, len(text)),)), [rows])
        writer.commit()
    answers = open_searcher(tmp_path / "index").answer("Where did they meet?", strategy="exact")
    assert len(answers) == 2
    warsaw = next(a for a in answers if a.evidence)
    assert {warsaw.document_id, warsaw.evidence[0].document_id} == {"one", "two"}
    assert {warsaw.text, warsaw.evidence[0].text} == {"warsaw", "The Warsaw"}
    assert len(warsaw.evidence) == 1


def test_other_documents_come_first_among_the_evidence_and_signs_of_any_script_do_not_count(
    tmp_path: Path,
) -> None:
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        text = "“Lima”\nlima\nlima"
        spans = tuple(Span(first, first + length) for first, length in ((0, 6), (7, 4), (12, 4)))
        writer.add(Document("own", "", text, spans), [one_phrase(5, 0, len(span)) for span in spans])
        writer.add(Document("other", "", "Lima", (Span(0, 4),)), [one_phrase(5, 0, 4)])
        writer.commit()
    (answer,) = open_searcher(tmp_path / "index").answer("Where?", strategy="exact")
    assert {answer.document_id, *(each.document_id for each in answer.evidence)} == {"own", "other"}
    assert len(answer.evidence) == 3
    elsewhere = [each.document_id != answer.document_id for each in answer.evidence]
    assert elsewhere == sorted(elsewhere, reverse=True)


class TestWhyNot:
    def test_answers_and_ranks(self, searcher: Searcher) -> None:
        everything = searcher.answer("old town", k=1000, strategy="exact")
        best = searcher.why_not("old town", everything[0].document_id, everything[0].span, strategy="exact")
        assert (best.step, best.rank, best.score) == (Step.ANSWER, 1, everything[0].score)
        late = everything[40]
        why = searcher.why_not("old town", late.document_id, late.span, k=3, strategy="exact")
        assert why.step == Step.RANK
        assert why.parts == late.parts
        assert why.rank is not None
        assert why.rank > 40
        assert f"{why.rank - 1} phrases" in why.reason

    def test_a_strategy_may_not_look(self, searcher: Searcher) -> None:
        best = searcher.answer("old town", k=1, strategy="exact")[0]
        other = "d2" if best.document_id != "d2" else "d4"
        why = searcher.why_not(
            *("old town", best.document_id, best.span), strategy="dense_first",
            limits=Limits(top_starts=0),
        )  # fmt: skip
        assert why.step == Step.RETRIEVAL
        hidden = searcher.why_not("old town", best.document_id, best.span, where={"document_id": other})
        assert hidden.step == Step.DOCUMENT
        assert "conditions" in hidden.reason

    @pytest.mark.parametrize(("k", "steps"), [(1, {Step.RETRIEVAL, Step.RANK}), (12, {Step.RETRIEVAL})])
    def test_what_a_strategy_did_not_look_at_is_beaten_by_answers_alone(
        self, searcher: Searcher, k: int, steps: set[Step]
    ) -> None:
        """Not by the other candidates; and by nothing where there are fewer answers than were asked for."""
        narrow, found = Limits(top_documents=1), set()
        answers = searcher.answer("old town", k, "sparse_first", limits=narrow)
        read = {answer.document_id for answer in answers}
        texts = {normalize_answer(answer.text) for answer in answers}
        assert len(read) == 1
        for other in searcher.answer("old town", k=200, strategy="exact"):
            if other.document_id not in read and normalize_answer(other.text) not in texts:
                is_high = len(answers) < k or other.score > answers[-1].score
                why = searcher.why_not(
                    *("old town", other.document_id, other.span, k, "sparse_first"), limits=narrow
                )
                assert why.step == (Step.RETRIEVAL if is_high else Step.RANK)
                found.add(why.step)
        assert found == steps

    def test_each_step_before_the_search(self, searcher: Searcher) -> None:
        snapshot = searcher.view.snapshot
        document = snapshot.document("d12")
        place = snapshot.find("d12")
        assert document is not None
        assert place is not None
        around = document.paragraphs[0]
        reader = searcher.view.segments[place.segment].reader
        paragraph = int(reader.document_paragraphs[place.document])
        rows = reader.rows_of(paragraph)
        words = around.of(document.text).split(" ")
        begins = np.cumsum([0, *(len(word) + 1 for word in words)])[:-1] + around.start_char

        def why(start: int, end: int, document_id: str = "d12") -> Step:
            return searcher.why_not("old town", document_id, Span(start, end)).step

        assert why(0, 1, "nobody") == Step.DOCUMENT
        assert why(0, 1, "d3") == Step.DOCUMENT
        assert why(around.start_char - 1, around.end_char) == Step.PARAGRAPH
        assert why(around.start_char, around.start_char) == Step.PARAGRAPH
        assert why(around.start_char + 1, around.end_char) == Step.BORDERS
        last_of = [int(begins[n]) + len(words[n]) for n in range(len(words))]
        assert why(int(begins[0]), last_of[25]) == Step.LENGTH
        no_start = next(n for n in range(len(words) - 1) if n not in rows.start_words)
        assert why(int(begins[no_start]), last_of[no_start]) == Step.START_FILTERED
        no_end = next(n for n in rows.start_words.tolist() if n not in rows.end_words)
        assert why(int(begins[no_end]), last_of[no_end]) == Step.END_FILTERED

    def test_a_better_phrase_overlaps(self, searcher: Searcher) -> None:
        found = set()
        best = searcher.answer("old town", k=1, strategy="exact")[0]
        place = searcher.view.snapshot.find(best.document_id)
        assert place is not None
        reader = searcher.view.segments[place.segment].reader
        paragraph = int(reader.document_paragraphs[place.document]) + best.paragraph
        rows, begin = reader.rows_of(paragraph), reader.paragraph_span(paragraph).start_char
        for first in rows.start_chars.tolist():
            for last in rows.end_chars.tolist():
                if last <= first:
                    continue
                span = Span(begin + first, begin + last)
                overlaps = span.start_char < best.span.end_char and best.span.start_char < span.end_char
                if span != best.span and overlaps:
                    why = searcher.why_not("old town", best.document_id, span, strategy="exact")
                    found.add(why.step)
                    if why.step == Step.OVERLAP:
                        assert why.score is not None
                        assert why.score <= best.score
        assert Step.OVERLAP in found
        assert found <= {Step.OVERLAP, Step.LENGTH, Step.ANSWER}

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_exact_looks_at_every_phrase(self, searcher: Searcher, question: str) -> None:
        """Whatever it does not answer with was beaten, overlapped, or one too many of its paragraph."""
        found, answers = set(), searcher.answer(question, k=5, strategy="exact")
        for document_id in {answer.document_id for answer in answers}:
            document = searcher.view.snapshot.document(document_id)
            assert document is not None
            for around in document.paragraphs:
                begins, ends = word_spans(around.of(document.text))
                for first, last in product(begins.tolist(), ends.tolist()):
                    if first < last:
                        span = Span(around.start_char + first, around.start_char + last)
                        why = searcher.why_not(question, document_id, span, strategy="exact")
                        found.add(why.step)
        assert Step.CROWDED in found
        assert Step.RETRIEVAL not in found

    def test_it_is_about_the_answers_that_ask_gives(self, searcher: Searcher) -> None:
        for number, answer in enumerate(searcher.answer("old town", k=30), start=1):
            why = searcher.why_not("old town", answer.document_id, answer.span, k=30)
            assert (why.step, why.reason) == (Step.ANSWER, f"it is answer {number}, or evidence for it")
        with pytest.raises(InputError, match="0 answers"):
            searcher.why_not("old town", "d1", Span(0, 1), k=0)


def test_a_slip_is_read_as_what_was_meant_unless_one_says_not_to(searcher: Searcher) -> None:
    meant, slipped = searcher.ask("Which river?"), searcher.ask("Which rievr?")
    assert meant.read_as is None
    assert slipped.read_as == "Which river?"
    assert slipped.answers == meant.answers
    as_it_stands = searcher.ask("Which rievr?", repair=False)
    assert as_it_stands.read_as is None
    assert as_it_stands.answers != meant.answers
    assert [each.read_as for each in searcher.ask_batch(["Which river?", "the rievr"])] == [None, "the river"]
