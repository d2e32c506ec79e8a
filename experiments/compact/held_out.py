"""The held-out training articles, encoded once, and an exact search of them in which any part may be a code.

Every question meets every paragraph; what is kept of a paragraph is its best phrase, so that the sparse
weight can be added afterwards. Dev is not read. The loops are compiled: a point of the study is 7 billion
phrases.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from denspi.corpus import read_squad
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.filter import filtered
from denspi.dense.models import open_encoder
from denspi.text.answers import normalize_answer
from denspi.training.calibrate import _sparse_scores
from denspi.training.examples import Limits, is_held_out, make_examples
from denspi.training.thresholds import border_logits, choose_thresholds
from denspi.vectors import MAX_PHRASE_WORDS, ParagraphVectors, QuestionVectors

FIELDS = tuple(ParagraphVectors.__dataclass_fields__)
FIT_PARAGRAPHS, FIT_QUESTIONS, SHARE = 2000, 6000, 0.05


@dataclass(frozen=True)
class Encoded:
    """Paragraphs one below the other, and questions."""

    lengths: NDArray[np.int64]
    words: dict[str, NDArray]  # the fields of ParagraphVectors, [word, ...]
    questions: QuestionVectors

    def paragraphs(self) -> list[ParagraphVectors]:
        """Cut apart again."""
        ends = np.cumsum(self.lengths)
        return [
            ParagraphVectors(**{name: self.words[name][b - n : b] for name in FIELDS})
            for n, b in zip(self.lengths, ends, strict=True)
        ]


def encoded(encoder: PhraseEncoder, texts: list[str], questions: list[str], cache: Path) -> Encoded:
    words, asked = cache.with_suffix(".npz"), cache.with_name(cache.name + "_q.npz")
    if not asked.exists() or not words.exists():
        found = encoder.encode_questions(questions)
        np.savez(asked, starts=found.starts, ends=found.ends, coherency=found.coherency)
        vectors = list(encoder.encode_paragraphs(texts))
        joined = {name: np.concatenate([getattr(v, name) for v in vectors]) for name in FIELDS}
        np.savez(words, lengths=np.array([len(v) for v in vectors]), **joined)
    arrays, asked_arrays = dict(np.load(words)), np.load(asked)
    return Encoded(arrays.pop("lengths"), arrays, QuestionVectors(**asked_arrays))


class HeldOut:
    """Everything about the articles that does not depend on filter or code."""

    def __init__(self, model: Path, data: Path, cache: Path) -> None:
        articles = read_squad(data / "squad" / "train-v1.1.json.gz")
        held = [a for a in articles if is_held_out(a.title, SHARE)]
        others = [p for a in articles if not is_held_out(a.title, SHARE) for p in a.paragraphs]
        encoder = open_encoder(model)
        paragraphs = [p for a in held for p in a.paragraphs]
        self.texts = [p.context for p in paragraphs]
        self.word_count = sum(len(text.split()) for text in self.texts)
        questions = [q for p in paragraphs for q in p.questions]
        asked = [q.text for q in questions]
        self.answers = [{normalize_answer(a.text) for a in q.answers} for q in questions]
        self.gold = np.repeat(np.arange(len(paragraphs)), [len(p.questions) for p in paragraphs])
        self.rows = encoded(encoder, self.texts, asked, cache / "held")
        chosen = sorted(np.random.default_rng(5).permutation(len(others))[:FIT_PARAGRAPHS].tolist())
        self.fit = encoded(
            encoder,
            [others[n].context for n in chosen],
            [q.text for n in chosen for q in others[n].questions][:FIT_QUESTIONS],
            cache / "fit",
        )
        if not (cache / "sparse.npy").exists():
            with tempfile.TemporaryDirectory() as folder:
                np.save(cache / "sparse.npy", _sparse_scores(held, asked, Path(folder)))
        self.sparse = np.load(cache / "sparse.npy")
        self._examples = make_examples(held, encoder.tokenizer, Limits())
        self._vectors = self.rows.paragraphs()
        self._paragraph = np.repeat(np.arange(len(paragraphs)), self.rows.lengths)

    def thresholds(self, recall: float, fold: int | None = None):
        """Those that keep a share of the answers: of all articles, or of those that are not in a fold."""
        used = [n for n, e in enumerate(self._examples) if fold is None or e.article % 2 != fold]
        logits = border_logits([self._examples[n] for n in used], [self._vectors[n] for n in used])
        return choose_thresholds(logits, recall)

    def kept(self, recall: float | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which words start and end phrases, each half of the articles by the other half's thresholds."""
        if recall is None:
            return self.rows.words["can_start"], self.rows.words["can_end"]
        by_fold = [self.thresholds(recall, fold) for fold in (0, 1)]
        stored = [
            filtered(v, by_fold[e.article % 2]) for e, v in zip(self._examples, self._vectors, strict=True)
        ]
        return np.concatenate([v.can_start for v in stored]), np.concatenate([v.can_end for v in stored])

    def search(self, starts, ends, start_keys, end_keys, kept) -> Found:
        """The best phrase of every paragraph for every question, from rows as an index gives them back."""
        start_words, end_words = (np.flatnonzero(each) for each in kept)
        count = len(self.texts)
        first = np.searchsorted(self._paragraph[start_words], np.arange(count + 1))
        ends_first = np.searchsorted(self._paragraph[end_words], np.arange(count + 1))
        low, high = _reachable(start_words, end_words, first, ends_first)
        at, coherency = _coherency(
            np.ascontiguousarray(start_keys), np.ascontiguousarray(end_keys), low, high
        )
        asked = self.rows.questions
        shape = len(asked), count
        scores = np.empty(shape, np.float32)
        best_start, best_end = np.empty(shape, np.int32), np.empty(shape, np.int32)
        for q in range(0, len(asked), 256):
            part = slice(q, q + 256)
            _best(
                asked.starts[part] @ starts.T,
                asked.ends[part] @ ends.T,
                first,
                low,
                high,
                at,
                coherency,
                scores[part],
                best_start[part],
                best_end[part],
            )
        there = best_start >= 0
        start_chars = self.rows.words["word_starts"][start_words[best_start]]
        end_chars = self.rows.words["word_ends"][end_words[best_end]]
        return Found(scores, np.where(there, start_chars, 0), np.where(there, end_chars, 0))

    def is_right(self, found: Found, paragraph: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether the phrase of the given paragraph answers, for each question."""
        spans = zip(*found.spans(paragraph), self.answers, strict=True)
        return np.array([normalize_answer(self.texts[p][a:b]) in answers for p, a, b, answers in spans])


@dataclass(frozen=True)
class Found:
    """``[question, paragraph]``: dense score and place of the best phrase."""

    scores: NDArray[np.float32]
    start_chars: NDArray[np.int32]
    end_chars: NDArray[np.int32]

    def spans(self, paragraph: NDArray[np.intp]) -> tuple[NDArray, NDArray, NDArray]:
        """Paragraph, first character and end of the phrase of the given paragraph, for each question."""
        rows = np.arange(len(paragraph))
        return paragraph, self.start_chars[rows, paragraph], self.end_chars[rows, paragraph]


@numba.njit
def _reachable(start_words, end_words, first, ends_first):
    """The slice of ends that may close a phrase which begins at each start."""
    low, high = np.empty(len(start_words), np.int64), np.empty(len(start_words), np.int64)
    for p in range(len(first) - 1):
        a = b = ends_first[p]
        for i in range(first[p], first[p + 1]):
            while a < ends_first[p + 1] and end_words[a] < start_words[i]:
                a += 1
            b = max(a, b)
            while b < ends_first[p + 1] and end_words[b] < start_words[i] + MAX_PHRASE_WORDS:
                b += 1
            low[i], high[i] = a, b
    return low, high


@numba.njit(fastmath=True)
def _coherency(start_keys, end_keys, low, high):
    at = np.zeros(len(low) + 1, np.int64)
    for i in range(len(low)):
        at[i + 1] = at[i] + high[i] - low[i]
    products = np.empty(at[-1], np.float32)
    for i in range(len(low)):
        for j in range(low[i], high[i]):
            total = np.float32(0)
            for d in range(start_keys.shape[1]):
                total += start_keys[i, d] * end_keys[j, d]
            products[at[i] + j - low[i]] = total
    return at, products


@numba.njit
def _best(start, end, first, low, high, at, coherency, scores, best_start, best_end):
    for q in range(len(start)):
        for p in range(len(first) - 1):
            best, found = np.float32(-1e30), -1
            for i in range(first[p], first[p + 1]):
                top, shift = np.float32(-1e30), at[i] - low[i]
                for j in range(low[i], high[i]):
                    top = max(top, end[q, j] + coherency[shift + j])
                if top + start[q, i] > best:
                    best, found = top + start[q, i], i
            last, top = -1, np.float32(-1e30)
            if found >= 0:
                for j in range(low[found], high[found]):
                    value = end[q, j] + coherency[at[found] - low[found] + j]
                    if value > top:
                        last, top = j, value
            scores[q, p], best_start[q, p], best_end[q, p] = best, found, last
