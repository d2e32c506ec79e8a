"""From candidates to answers: those that read alike become one, with the others as its evidence.

Phrases that overlap are one already (a paragraph offers none twice). This is the only place of a search that
reads texts, and it reads those of candidates until it has enough of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from denspi.search.asked import AskedQuestion
from denspi.search.candidates import Candidates
from denspi.search.confidence import Confidence
from denspi.search.evidence import sentence_around
from denspi.search.phrase import StoredPhrase, parts_of, phrases_of
from denspi.search.view import SearchView
from denspi.text.answers import normalize_answer
from denspi.types import MAX_EVIDENCE, Answer, Evidence, ScoreParts

_LENGTHS_APART = 6
"""Characters that articles and punctuation may add to an answer for it to be looked at as evidence."""


def resolve(
    view: SearchView,
    question: AskedQuestion,
    candidates: Candidates,
    k: int,
    confidence: Confidence | None = None,
    explain: bool = False,
) -> list[Answer]:
    """The k best answers that read differently, best first."""
    groups: dict[str, list[tuple[StoredPhrase, float]]] = {}
    lengths: list[int] = []  # of the first k answers, in characters
    for phrase, score in zip(phrases_of(view, candidates), candidates.scores.tolist(), strict=True):
        length = len(phrase.local_span)
        # One more answer than asked for, for the margin; after that only what may be evidence is read, which
        # is about as long as an answer: lengths are at hand, texts are on the disk.
        if len(groups) <= k or any(abs(length - other) <= _LENGTHS_APART for other in lengths):
            text = phrase.text
            if not has_word(text):  # a sign may score well; nobody asks for one
                continue
            group = groups.setdefault(reads_as(text), [])
            if not group and len(lengths) < k:
                lengths.append(length)
            group.append((phrase, score))
    best = list(groups.values())
    margins = _margins([group[0][1] for group in best], candidates)
    parts = parts_of([group[0][0] for group in best[:k]], question)
    return [
        _answer(group, own, float(confidence.of(np.array(margin))) if confidence else None, question, explain)
        for group, own, margin in zip(best[:k], parts, margins, strict=False)
    ]


def has_word(text: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return any(sign.isalnum() for sign in text)


def reads_as(text: str) -> str:
    """What answers have in common that are one: case, articles and signs of any script left out."""
    if not text.isascii():
        text = "".join(" " if unicodedata.category(sign)[0] == "P" else sign for sign in text)
    return normalize_answer(text) or text


def _margins(scores: Sequence[float], candidates: Candidates) -> list[float]:
    """How far each answer is ahead of the best other one: below 0 for all but the first.

    Where there is no other, the last candidate stands for what is unknown, as in calibration.
    """
    if not scores:
        return []
    rival = scores[1] if len(scores) > 1 else float(candidates.scores[-1])
    return [scores[0] - rival, *(score - scores[0] for score in scores[1:])]


def _answer(
    group: list[tuple[StoredPhrase, float]],
    parts: ScoreParts,
    confidence: float | None,
    question: AskedQuestion,
    explain: bool,
) -> Answer:
    phrase, score = group[0]
    record = phrase.segment.reader.record(phrase.document)
    context = sentence_around(phrase.paragraph_text, phrase.local_span)
    # Other documents first: that a text repeats itself says less.
    home = phrase.segment_number, phrase.document
    others = sorted(group[1:], key=lambda other: (other[0].segment_number, other[0].document) == home)
    return Answer(
        text=phrase.text,
        document_id=record.document_id,
        title=record.title,
        paragraph=phrase.paragraph_number,
        span=phrase.in_document(phrase.local_span),
        context=context.of(phrase.paragraph_text),
        context_span=phrase.in_document(context),
        score=score,
        parts=parts,
        confidence=confidence,
        evidence=tuple(_evidence(*other) for other in others[:MAX_EVIDENCE]),
        matches=phrase.matches(question) if explain else (),
    )


def _evidence(phrase: StoredPhrase, score: float) -> Evidence:
    record = phrase.segment.reader.record(phrase.document)
    context = sentence_around(phrase.paragraph_text, phrase.local_span)
    return Evidence(
        text=phrase.text,
        document_id=record.document_id,
        title=record.title,
        paragraph=phrase.paragraph_number,
        span=phrase.in_document(phrase.local_span),
        context=context.of(phrase.paragraph_text),
        context_span=phrase.in_document(context),
        score=score,
    )
