"""Questions made from plain text: a sentence with one fact taken out. The same for the same random state.

A phrase model must put "which fact of which sentence" into the vectors of a phrase, and there are only so
many written questions to learn it from. A sentence whose name, number or date is replaced by a question word
asks for just that. Most of the words around the gap are enough to find it, so some are dropped.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from denspi.corpus import read_corpus
from denspi.errors import InputError
from denspi.text.tokens import Tokenizer
from denspi.training.examples import Example, ExampleQuestion, Limits, crop, occurrences
from denspi.types import Document, Span

_SHORTEST = 200  # characters of a paragraph that is worth sampling
_SENTENCE = re.compile(r"[^\s.!?][^.!?]*(?:[.!?](?!\s+[A-Z\"“(])[^.!?]*)*[.!?]?")
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"\b(?:\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:, \d{{4}})?|{_MONTH} \d{{4}})\b"
)
_YEAR = re.compile(r"\b1[0-9]{3}\b|\b20[0-2][0-9]\b")
_NUMBER = re.compile(r"\b\d[\d,.]*\d(?: (?:percent|million|billion|km|miles|metres|people))?\b|\b\d+\b")
_NAME = re.compile(r"\b[A-Z][\w’'-]+(?: (?:of |the |de |von |van |and )?[A-Z][\w’'-]+){0,4}")

_KINDS = (
    (_DATE, ("when", "on what date")),
    (_YEAR, ("when", "in what year", "what year")),
    (_NUMBER, ("how many", "how much", "what number")),
    (_NAME, ("who", "what", "which", "where")),
)


@dataclass(frozen=True, slots=True)
class Cloze:
    """A made-up question and the span of the paragraph that answers it."""

    question: str
    answer: Span


def cloze_examples(
    paths: Sequence[Path], tokenizer: Tokenizer, limits: Limits, paragraphs: int, most: int, seed: int
) -> list[Example]:
    """Examples from a random sample of the paragraphs of a corpus that have any fact to ask for."""
    chance = random.Random(seed)
    sampled = sample_paragraphs(paths, paragraphs, chance)
    made = [(number, text, make_clozes(text, chance, most)) for number, text in sampled]
    made = [each for each in made if each[2]]
    if not made:
        raise InputError(f"{', '.join(map(str, paths))}: no paragraph with a name, number or date to ask for")
    tokens = tokenizer.tokenize_batch([text for _, text, _ in made])
    pieces = iter(tokenizer.ids_batch([cloze.question for _, _, clozes in made for cloze in clozes]))
    examples = []
    for row, ((number, text, clozes), full) in enumerate(zip(made, tokens, strict=True)):
        cropped = crop(full, limits.paragraph_pieces)
        questions = []
        for nth, cloze in enumerate(clozes):
            answer = cloze.answer.of(text)
            gold = tuple(sorted(set(occurrences(answer, text, cropped))))
            ids = next(pieces)[: limits.question_pieces]
            questions.append(ExampleQuestion(f"cloze-{row}-{nth}", cloze.question, ids, (answer,), gold))
        examples.append(Example(number, text, cropped, tuple(questions)))
    return examples


def sample_paragraphs(paths: Sequence[Path], count: int, chance: random.Random) -> list[tuple[int, str]]:
    """(number of its document, text) of up to `count` paragraphs of a corpus, in order."""
    return _sample(_numbered_paragraphs(paths), count, chance)


def check_text(paths: Sequence[Path]) -> None:
    """`InputError` where a corpus has nothing to sample: said before hours of training, not after them."""
    if next(_numbered_paragraphs(paths), None) is None:
        raise InputError(f"{', '.join(map(str, paths))}: no paragraph of at least {_SHORTEST} characters")


def _numbered_paragraphs(paths: Sequence[Path]) -> Iterator[tuple[int, str]]:
    documents = (item for item in read_corpus(paths) if isinstance(item, Document))
    for number, document in enumerate(documents):
        for text in document.paragraph_texts():
            if len(text) >= _SHORTEST:
                yield number, text


def _sample(stream: Iterable[tuple[int, str]], size: int, chance: random.Random) -> list[tuple[int, str]]:
    """A uniform sample of a stream of unknown length; neighbours stay in order."""
    kept: dict[int, tuple[int, str]] = {}
    slots: list[int] = []
    for place, item in enumerate(stream):
        if len(slots) < size:
            slots.append(place)
        elif (slot := chance.randrange(place + 1)) < size:
            del kept[slots[slot]]
            slots[slot] = place
        else:
            continue
        kept[place] = item
    return [kept[place] for place in sorted(kept)]


def make_clozes(paragraph: str, chance: random.Random, most: int, drop: float = 0.3) -> list[Cloze]:
    """Up to `most` questions about different facts of the paragraph; a word is left out at rate `drop`."""
    found = list(facts(paragraph))
    chosen = chance.sample(found, min(most, len(found)))
    return [
        Cloze(_question(paragraph, sentence, answer, chance.choice(asks), chance, drop), answer)
        for sentence, answer, asks in chosen
    ]


def facts(paragraph: str) -> Iterator[tuple[Span, Span, tuple[str, ...]]]:
    """(sentence, fact, question words) of every date, number and name, the more telling kind first."""
    for match in _SENTENCE.finditer(paragraph):
        sentence = Span(*match.span())
        if not 6 <= len(match[0].split()) <= 50:
            continue
        taken: list[Span] = []
        for pattern, asks in _KINDS:
            for found in pattern.finditer(paragraph, sentence.start_char, sentence.end_char):
                fact = Span(*found.span())
                opens_sentence = fact.start_char == sentence.start_char and " " not in found[0]
                overlaps = any(fact.start_char < t.end_char and t.start_char < fact.end_char for t in taken)
                if not overlaps and not opens_sentence:  # a first word is capitalised whatever it is
                    taken.append(fact)
                    yield sentence, fact, asks


def _question(
    paragraph: str, sentence: Span, answer: Span, ask: str, chance: random.Random, drop: float
) -> str:
    before = paragraph[sentence.start_char : answer.start_char].split()
    after = paragraph[answer.end_char : sentence.end_char].rstrip(".!? ").split()
    kept_before = [word for word in before[-20:] if chance.random() >= drop]
    kept_after = [word for word in after[:20] if chance.random() >= drop]
    # Real questions open with their question word more often than not.
    words = [ask, *kept_after, *kept_before] if chance.random() < 0.6 else [*kept_before, ask, *kept_after]
    return " ".join(words) + "?"
