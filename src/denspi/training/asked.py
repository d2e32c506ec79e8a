"""Questions that the asker wrote about plain text, each with the answer that a reader finds.

Kept in a folder: asked.json.gz, in SQuAD's layout, and teacher.npz, the reader's word logits. What the reader
is unsure of is dropped, and its own best phrase is the answer: the asker proposes, the reader decides. Until
then, written.json.gz holds what was proposed.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion, read_squad
from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer, Tokens
from denspi.training.asker import Prompt
from denspi.training.batches import Teacher
from denspi.training.cloze import facts
from denspi.training.examples import Example, Limits, crop, make_examples
from denspi.training.teacher import load_logits, save_logits
from denspi.vectors import MAX_PHRASE_WORDS, Floats

ASKED, LOGITS, WRITTEN = "asked.json.gz", "teacher.npz", "written.json.gz"
_WINDOW = (3, 10)  # words of a region that is no name, number or date


def make_prompts(
    texts: Sequence[str], tokenizer: Tokenizer, limits: Limits, most: int, seed: int
) -> list[list[Prompt]]:
    """For each paragraph up to `most` regions to ask about: some names, numbers and dates, some anything."""
    chance = random.Random(seed)
    prompts = []
    for text, full in zip(texts, tokenizer.tokenize_batch(texts), strict=True):
        tokens = crop(full, limits.paragraph_pieces)
        regions = {region for region in (_region(text, tokens, chance) for _ in range(most)) if region}
        prompts.append([Prompt(tokens, *region) for region in sorted(regions)])
    return prompts


def _region(text: str, tokens: Tokens, chance: random.Random) -> tuple[int, int] | None:
    words = len(tokens.word_starts)
    found = list(facts(text)) if chance.random() < 0.6 else []
    if found:
        _, fact, _ = chance.choice(found)
        first = int(np.searchsorted(tokens.word_starts, fact.start_char, side="right")) - 1
        last = int(np.searchsorted(tokens.word_ends, fact.end_char))
        return (first, last) if 0 <= first <= last < words else None
    width = chance.randint(*_WINDOW)
    if width > words:
        return None
    first = chance.randrange(words - width + 1)
    return first, first + width - 1


def articles_of(
    paragraphs: Iterable[tuple[int, str]], questions: Iterable[Sequence[str]], seed: int
) -> list[SquadArticle]:
    """Paragraphs, numbered by their document, with the questions about each; nothing is answered yet.

    Ids carry the seed: what was asked with another one can be learnt from together.
    """
    articles = []
    for number, group in groupby(zip(paragraphs, questions, strict=True), key=lambda each: each[0][0]):
        contexts = []
        for place, ((_, text), asked) in enumerate(group):
            unique = dict.fromkeys(question for question in asked if question)
            contexts.append(
                SquadParagraph(
                    text,
                    tuple(
                        SquadQuestion(f"asked-{seed}-{number}-{place}-{nth}", question, ())
                        for nth, question in enumerate(unique)
                    ),
                )
            )
        articles.append(SquadArticle(f"document {number}", tuple(contexts)))
    return articles


def save_written(path: Path, articles: Sequence[SquadArticle], record: dict[str, Any]) -> None:
    """Write questions that nobody has answered yet, and what shall be known of them; whole or not at all."""
    half_written = path.with_suffix(".tmp")
    try:
        _save_squad(half_written, articles, record)
        os.replace(half_written, path)
    finally:
        half_written.unlink(missing_ok=True)


def load_written(path: Path, made_with: dict[str, str]) -> tuple[list[SquadArticle], dict[str, Any]]:
    """What `save_written` wrote; its record must say that it was `made_with` these settings."""
    try:
        with gzip.open(path) as file:
            record = {key: value for key, value in json.load(file).items() if key not in ("version", "data")}
        before = record["made_with"]
    except (OSError, EOFError, ValueError, KeyError, AttributeError) as error:
        raise ModelError(f"{path}: cannot be resumed ({error}); remove it to start again") from None
    for name in sorted(made_with.keys() | before.keys()):
        if before.get(name) != made_with.get(name):
            raise ModelError(
                f"{path}: was made with {name} = {before.get(name)!r}, now {made_with.get(name)!r}; "
                "remove it to start again"
            )
    return read_squad(path), record


def save_asked(
    folder: Path,
    articles: Sequence[SquadArticle],
    examples: Sequence[Example],
    logits: Iterator[tuple[Floats, Floats]],
    confidence: float,
) -> tuple[int, int]:
    """Write what the reader is sure of; (kept, asked) questions. `examples` are those of `articles`."""
    paragraphs = iter(examples)
    answered, sides, asked = [], [], 0
    for article in articles:
        kept = []
        for paragraph, example in zip(article.paragraphs, paragraphs, strict=False):
            questions = []
            for question, (start, end) in zip(paragraph.questions, logits, strict=False):
                asked += 1
                first, last, probability = best_phrase(start, end)
                if probability < confidence:
                    continue
                span = int(example.tokens.word_starts[first]), int(example.tokens.word_ends[last])
                answer = SquadAnswer(paragraph.context[slice(*span)], span[0])
                questions.append(replace(question, answers=(answer,)))
                sides.append((start, end))
            if questions:
                kept.append(replace(paragraph, questions=tuple(questions)))
        if kept:
            answered.append(replace(article, paragraphs=tuple(kept)))
    _save_squad(folder / ASKED, answered, {})
    save_logits(folder / LOGITS, sides)
    return len(sides), asked


def _save_squad(path: Path, articles: Sequence[SquadArticle], record: dict[str, Any]) -> None:
    """SQuAD's layout, and what the record says beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = [
        {
            "title": article.title,
            "paragraphs": [
                {"context": paragraph.context, "qas": [_question(each) for each in paragraph.questions]}
                for paragraph in article.paragraphs
            ],
        }
        for article in articles
    ]
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps({"version": "1.1", **record, "data": data}).encode())


def _question(question: SquadQuestion) -> dict[str, Any]:
    answers = [{"text": answer.text, "answer_start": answer.start_char} for answer in question.answers]
    return {"id": question.question_id, "question": question.text, "answers": answers}


def load_asked(
    folders: Sequence[Path], tokenizer: Tokenizer, limits: Limits, first_article: int
) -> tuple[list[Example], dict[str, Teacher]]:
    """Examples and the reader's logits by question id; articles are numbered from `first_article` on."""
    examples: list[Example] = []
    teacher: dict[str, Teacher] = {}
    for folder in folders:
        articles = read_squad(folder / ASKED)
        found = make_examples(articles, tokenizer, limits, first_article)
        pairs = [(e, q) for e in found for q in e.questions]
        otherwise = f"does not fit {ASKED}; make both again with [ask]"
        answered = load_logits(folder / LOGITS, pairs, otherwise)
        if not teacher.keys().isdisjoint(answered):
            raise ModelError(f"{folder / ASKED}: has questions of another folder; make it with another seed")
        examples += found
        teacher |= answered
        first_article += len(articles)
    return examples, teacher


def best_phrase(start: Floats, end: Floats) -> tuple[int, int, float]:
    """First and last word of the likeliest phrase by word logits ``[word]``, and its probability."""
    words = len(start)
    if not words:
        return 0, 0, 0.0
    padded = np.concatenate([end, np.full(MAX_PHRASE_WORDS - 1, -np.inf, end.dtype)])
    band = start[:, None] + np.lib.stride_tricks.sliding_window_view(padded, MAX_PHRASE_WORDS)
    best = int(band.argmax())
    first, length = divmod(best, MAX_PHRASE_WORDS)
    top = band[first, length]
    if not np.isfinite(top):
        return 0, 0, 0.0
    return first, first + length, float(1 / np.exp(band - top).sum())
