"""Two tools over an index, as plain functions: `answer` and `read_document`. Knows nothing of the protocol.

What they return is what an assistant needs and no more: each word of it is read by a model. Every call sees
the newest commit that can be opened.
"""

from __future__ import annotations

from dataclasses import dataclass

from denspi.errors import InputError
from denspi.search.newest import NewestSearcher
from denspi.search.reply_json import encodable
from denspi.types import Answer

MAX_K, MAX_CHARS = 20, 50_000
# The records have no slots: the SDK, which describes them to assistants, takes slots for default values.


@dataclass(frozen=True)
class FoundAnswer:
    """A phrase of a document that answers the question, with its sentence."""

    text: str
    confidence: float | None  # the probability that it is right
    document_id: str
    title: str
    sentence: str
    start_char: int  # of the phrase, in the text of the document
    end_char: int
    also_in: list[str]  # ids of other documents that say the same


@dataclass(frozen=True)
class FoundAnswers:
    """Best first; none where nothing was sure enough."""

    answers: list[FoundAnswer]


@dataclass(frozen=True)
class ReadDocument:
    """A stretch of a document's text."""

    document_id: str
    title: str
    text: str
    start_char: int
    total_chars: int
    next_start_char: int | None  # where to read on; None at the end


class Tools:
    """The tools, on one index. Threads may share them."""

    def __init__(self, newest: NewestSearcher) -> None:
        self._newest = newest

    def answer(
        self, question: str, k: int = 3, where: list[str] | None = None, min_confidence: float | None = None
    ) -> FoundAnswers:
        """The k best answers."""
        if not 1 <= k <= MAX_K:
            raise InputError(f"{k} answers: ask for 1 to {MAX_K}")
        found = self._newest.searcher().answer(question, k, where=where, min_confidence=min_confidence)
        return FoundAnswers([_found(each) for each in found])

    def read_document(self, document_id: str, start_char: int = 0, max_chars: int = 8000) -> ReadDocument:
        """A document's text from `start_char` on."""
        if not 1 <= max_chars <= MAX_CHARS or start_char < 0:
            raise InputError(f"read 1 to {MAX_CHARS:,} characters, from 0 on")
        document = self._newest.searcher().view.snapshot.document(document_id)
        if document is None:
            raise InputError("the index has no document with this id; take an id that answer has given")
        total_chars = len(document.text)
        end_char = min(start_char + max_chars, total_chars)
        return ReadDocument(
            document.document_id,
            encodable(document.title),
            encodable(document.text[start_char:end_char]),
            start_char,
            total_chars,
            end_char if end_char < total_chars else None,
        )


def _found(answer: Answer) -> FoundAnswer:
    others = dict.fromkeys(each.document_id for each in answer.evidence)
    others.pop(answer.document_id, None)
    return FoundAnswer(
        encodable(answer.text),
        None if answer.confidence is None else round(answer.confidence, 3),
        answer.document_id,
        encodable(answer.title),
        encodable(answer.context),
        answer.span.start_char,
        answer.span.end_char,
        list(others),
    )
