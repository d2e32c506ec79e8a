"""What is timed: denspi's strategies, and pipelines that retrieve by words and read texts anew.

A pipeline puts the question and each text through a reader in onnxruntime: long paragraphs in windows, one
pair at a time, as is fastest on a core. Each system is a function from a question to what it says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import bm25s
import numpy as np

from denspi.dense.reader import Reader
from denspi.search.asked import AskedQuestion
from denspi.search.searcher import Searcher
from denspi.search.strategies import STRATEGIES, top_document_paragraphs, top_paragraphs
from denspi.sparse import weigh_question

OURS = "hybrid"
TOP_DOCUMENTS = 5
PARAGRAPHS_READ = (1, 5, 20)
REREAD = "re-read "  # how the names of pipelines begin
REREAD_DOCUMENTS = f"{REREAD}{TOP_DOCUMENTS} documents (tf-idf)"


@dataclass(frozen=True)
class Answered:
    """What a system says, and the time of its stages where it tells."""

    text: str
    stages_ms: dict[str, float]
    texts_read: int = 0  # paragraphs put through the reader


Ask = Callable[[str], Answered]


def all_systems(searcher: Searcher, reader: Reader | None) -> dict[str, Ask]:
    systems = {name: strategy(searcher, name) for name in STRATEGIES}
    if reader is None:
        return systems
    texts = paragraph_texts(searcher)
    index = bm25s.BM25(backend="numba")
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    for count in PARAGRAPHS_READ:
        systems[reread_name(count, "tf-idf")] = reread_tfidf(searcher, reader, count, by_document=False)
        systems[reread_name(count, "bm25s")] = reread_bm25(index, texts, reader, count)
    systems[REREAD_DOCUMENTS] = reread_tfidf(searcher, reader, TOP_DOCUMENTS, by_document=True)
    return systems


def reread_name(count: int, by: str) -> str:
    return f"{REREAD}{count} paragraph{'s' if count > 1 else ''} ({by})"


def paragraph_texts(searcher: Searcher) -> list[str]:
    return [
        segment.reader.paragraph_text(paragraph)
        for segment in searcher.view.segments
        for paragraph in np.flatnonzero(segment.allowed_paragraphs).tolist()
    ]


def strategy(searcher: Searcher, name: str) -> Ask:
    def ask(text: str) -> Answered:
        reply = searcher.ask(text, k=5, strategy=name)
        return Answered(reply.answers[0].text if reply.answers else "", reply.stages_ms)

    return ask


def reread_tfidf(searcher: Searcher, reader: Reader, count: int, by_document: bool) -> Ask:
    view = searcher.view
    unread = searcher.asked("any question").fixed  # encoding a question would be of no use here
    choose = top_document_paragraphs if by_document else top_paragraphs

    def ask(text: str) -> Answered:
        started = time.perf_counter()
        words = weigh_question(text, view.snapshot.frequencies)
        chosen = choose(
            view, AskedQuestion(unread, words, searcher.sparse_weight, view.kernels.add_up), count
        )
        texts = [
            view.segments[number].reader.paragraph_text(paragraph)
            for number, numbers in chosen
            for paragraph in numbers.tolist()
        ]
        return read_best(reader, text, texts, started)

    return ask


def reread_bm25(index: bm25s.BM25, texts: Sequence[str], reader: Reader, count: int) -> Ask:
    def ask(text: str) -> Answered:
        started = time.perf_counter()
        tokens = bm25s.tokenize([text], stopwords="en", return_ids=False, show_progress=False)
        numbers = index.retrieve(tokens, k=min(count, len(texts)), show_progress=False)[0][0]
        return read_best(reader, text, [texts[number] for number in numbers.tolist()], started)

    return ask


def read_best(reader: Reader, question: str, texts: Sequence[str], started: float) -> Answered:
    """The phrase with the highest sum of logits, over all texts."""
    retrieved = time.perf_counter()
    answers = reader.read(question, texts)
    best = max(range(len(texts)), key=lambda n: answers[n].score, default=None)
    stages = {
        "retrieve": 1000 * (retrieved - started),
        "reader": 1000 * (time.perf_counter() - retrieved),
    }
    return Answered("" if best is None else answers[best].span.of(texts[best]), stages, len(texts))
