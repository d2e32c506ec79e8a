"""SQuAD articles -> numbered examples: word pieces, gold phrases, and which articles are held out.

Pure once the articles are read. Tunes nothing on the official dev set: validation articles are taken out of
the training articles by a hash of their title.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from denspi.corpus.squad import SquadArticle
from denspi.text.tokens import Tokenizer, Tokens
from denspi.vectors import MAX_PHRASE_WORDS


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a text the model reads in training, in word pieces without special tokens."""

    paragraph_pieces: int = 384
    question_pieces: int = 48

    def __post_init__(self) -> None:
        if self.paragraph_pieces < 1 or self.question_pieces < 1:
            raise ValueError("paragraph_pieces and question_pieces are positive")

    @property
    def longest_pair(self) -> int:
        """Pieces of the longest pair of question and paragraph, special tokens included."""
        return self.paragraph_pieces + self.question_pieces + 4


@dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A question of a paragraph. `gold` holds (first word, length - 1) of every occurrence of an answer."""

    question_id: str
    text: str
    ids: NDArray[np.int32]
    answers: tuple[str, ...]
    gold: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A paragraph with its questions."""

    article: int
    text: str
    tokens: Tokens
    questions: tuple[ExampleQuestion, ...]


def is_held_out(title: str, share: float) -> bool:
    """Whether an article belongs to validation: decided by its title alone, so it never changes."""
    return int.from_bytes(hashlib.sha256(title.encode()).digest()[:8], "big") / 2**64 < share


def make_examples(
    articles: Iterable[SquadArticle], tokenizer: Tokenizer, limits: Limits, first_article: int = 0
) -> list[Example]:
    """Tokenize all paragraphs and questions once. A question without a reachable answer has an empty gold."""
    numbered = [
        (number, p) for number, article in enumerate(articles, first_article) for p in article.paragraphs
    ]
    paragraphs = tokenizer.tokenize_batch([p.context for _, p in numbered])
    pieces = iter(tokenizer.ids_batch([q.text for _, p in numbered for q in p.questions]))
    examples = []
    for (number, paragraph), full in zip(numbered, paragraphs, strict=True):
        tokens = crop(full, limits.paragraph_pieces)
        questions = []
        for question in paragraph.questions:
            answers = tuple(dict.fromkeys(answer.text for answer in question.answers))
            gold = {phrase for answer in answers for phrase in occurrences(answer, paragraph.context, tokens)}
            ids = next(pieces)[: limits.question_pieces]
            questions.append(
                ExampleQuestion(question.question_id, question.text, ids, answers, tuple(sorted(gold)))
            )
        examples.append(Example(number, paragraph.context, tokens, tuple(questions)))
    return examples


def crop(tokens: Tokens, pieces: int) -> Tokens:
    """The first `pieces` pieces, and the words that lie wholly in them."""
    if len(tokens) <= pieces:
        return tokens
    words = int(np.searchsorted(tokens.word_ends, tokens.ends[pieces - 1], side="right"))
    return Tokens(
        tokens.ids[:pieces],
        tokens.starts[:pieces],
        tokens.ends[:pieces],
        tokens.word_initial[:pieces],
        tokens.word_final[:pieces],
        tokens.word_starts[:words],
        tokens.word_ends[:words],
        np.where(tokens.first_piece[:words] < pieces, tokens.first_piece[:words], -1),
        np.where(tokens.last_piece[:words] < pieces, tokens.last_piece[:words], -1),
    )


def occurrences(answer: str, text: str, tokens: Tokens) -> Iterator[tuple[int, int]]:
    """(first word, length - 1) of each place where the text reads `answer`, cut at word borders.

    Where no occurrence lies on word borders (an answer such as "2" out of "42"), the words that cover the
    first one stand in for it.
    """
    found, covering = False, None
    start = text.find(answer) if answer else -1
    while start != -1:
        end = start + len(answer)
        first = int(np.searchsorted(tokens.word_starts, start, side="right")) - 1
        last = int(np.searchsorted(tokens.word_ends, end, side="left"))
        if _is_phrase(tokens, first, last):
            if tokens.word_starts[first] == start and tokens.word_ends[last] == end:
                found = True
                yield first, last - first
            elif covering is None:
                covering = first, last - first
        start = text.find(answer, start + 1)
    if not found and covering is not None:
        yield covering


def _is_phrase(tokens: Tokens, first: int, last: int) -> bool:
    return (
        0 <= first <= last < len(tokens.word_starts)
        and last - first < MAX_PHRASE_WORDS
        and tokens.first_piece[first] >= 0
        and tokens.last_piece[last] >= 0
    )
