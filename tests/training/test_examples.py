"""Articles -> examples: where the answers are, what is cut off, which articles are held out."""

import numpy as np
import pytest

from denspi.corpus.squad import SquadAnswer, SquadArticle, SquadParagraph, SquadQuestion
from denspi.text.tokens import Tokenizer
from denspi.training.examples import Limits, crop, is_held_out, make_examples, occurrences


def found(answer: str, text: str, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    return list(occurrences(answer, text, tokenizer.tokenize(text)))


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("ada", "ada met ada, not adam", [(0, 0), (2, 0)]),  # every occurrence, but only whole words
        ("new york", "old york new york", [(2, 1)]),
        ("2", "in 42 rooms and 2 halls", [(4, 0)]),  # a whole word wins over one inside another
        ("2", "in 42 rooms, 28 halls", [(1, 0)]),  # none is whole: the words that cover the first
        ("n 4", "in 42 rooms", [(0, 1)]),
        ("aa", "aa aaa", [(0, 0)]),
        ("oslo", "lima", []),
        ("", "lima", []),
        (" ".join("abcdefghijklmnopqrst"), " ".join("abcdefghijklmnopqrst"), [(0, 19)]),
        (" ".join("abcdefghijklmnopqrstu"), " ".join("abcdefghijklmnopqrstu"), []),  # 21 words: no phrase
    ],
)
def test_occurrences(tokenizer: Tokenizer, answer: str, text: str, expected: list[tuple[int, int]]) -> None:
    assert found(answer, text, tokenizer) == expected


def test_crop_keeps_whole_words_and_their_numbers(tokenizer: Tokenizer) -> None:
    text = "oslo ab lima cd"  # pieces: oslo a ##b lima c ##d
    full = tokenizer.tokenize(text)
    assert crop(full, 6) is full
    cut = crop(full, 5)
    assert len(cut) == 5
    assert [text[a:b] for a, b in zip(cut.word_starts, cut.word_ends, strict=True)] == ["oslo", "ab", "lima"]
    assert cut.first_piece.tolist() == [0, 1, 3]
    assert cut.last_piece.tolist() == [0, 2, 3]
    assert len(crop(full, 2).word_starts) == 1
    assert list(occurrences("cd", text, cut)) == []


def test_what_is_held_out_never_changes() -> None:
    titles = [f"Article_{n}" for n in range(40)]
    assert [t for t in titles if is_held_out(t, 0.1)] == ["Article_12", "Article_28", "Article_32"]
    assert is_held_out("University_of_Notre_Dame", 0.05) is False
    assert {t for t in titles if is_held_out(t, 0.1)} <= {t for t in titles if is_held_out(t, 0.3)}
    assert not any(is_held_out(t, 0.0) for t in titles)
    assert all(is_held_out(t, 1.0) for t in titles)


def test_make_examples(tokenizer: Tokenizer) -> None:
    context = "ada lives in oslo and bram lives in oslo ."
    questions = (
        SquadQuestion("1", "which town ?", (SquadAnswer("oslo", 13), SquadAnswer("oslo", 36))),
        SquadQuestion("2", "who is it ?", (SquadAnswer("ada", 0), SquadAnswer("bram", 22))),
        SquadQuestion("3", "what job ?", ()),
        SquadQuestion("4", "which town ? " * 9, (SquadAnswer("lima", 0),)),
    )
    articles = [
        SquadArticle("A", (SquadParagraph("lima .", ()), SquadParagraph(context, questions))),
        SquadArticle("B", (SquadParagraph("york .", ()),)),
    ]
    examples = make_examples(articles, tokenizer, Limits(paragraph_pieces=384, question_pieces=12))
    assert [(e.article, e.text) for e in examples] == [(0, "lima ."), (0, context), (1, "york .")]
    one, two, three, four = examples[1].questions
    assert (one.question_id, one.answers, one.gold) == ("1", ("oslo",), ((3, 0), (8, 0)))
    assert two.gold == ((0, 0), (5, 0))
    assert (three.answers, three.gold) == ((), ())
    assert four.gold == ()
    assert len(four.ids) == 12
    assert np.array_equal(one.ids, tokenizer.tokenize("which town ?").ids)


def test_an_answer_beyond_the_limit_has_no_gold(tokenizer: Tokenizer) -> None:
    question = SquadQuestion("1", "which town ?", (SquadAnswer("oslo", 13),))
    article = SquadArticle("A", (SquadParagraph("ada lives in oslo .", (question,)),))
    (example,) = make_examples([article], tokenizer, Limits(paragraph_pieces=3))
    assert example.questions[0].gold == ()
    assert len(example.tokens) == 3
