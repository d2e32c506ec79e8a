"""Answers while one types: how early the final one appears, and what keywords, lower case and slips cost.

Every question is put to the index as it stands, in other forms (`FORMS`), and as each of its beginnings, a
few characters longer every time, as the page asks them. Held-out training articles are for choosing; dev is
for reporting and nothing is chosen by it. Slips are drawn by seed and question, so a run repeats exactly.

    python benchmarks/as_you_type.py --index INDEX --data ../shared/data/squad \
        --output docs/results/typing.json
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from denspi import Index
from denspi.corpus.squad import SquadQuestion, read_squad
from denspi.errors import InputError
from denspi.search.questions import clean_question
from denspi.search.searcher import Searcher
from denspi.sparse.stopwords import STOP_WORDS
from denspi.text.answers import exact_match, f1, normalize_answer
from denspi.training.examples import is_held_out
from machine import machine

HELD_OUT_SHARE = 0.05
AT_ONCE = 32  # questions that share a pass over the rows
STEPS = 20  # of the curve: every twentieth of a question
MIN_SLIP_CHARS = 4  # shorter words are seldom mistyped without being noticed
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SETS = {"held-out": "train-v1.1.json.gz", "dev": "dev-v1.1.json.gz"}


Ask = Callable[[Sequence[str]], list[list[str]]]


@dataclass(frozen=True)
class Typed:
    """One question while it was typed: how much of it was there, and the best answer by then."""

    shares: list[float]
    answers: list[str]  # normalised
    is_right: list[bool]

    @property
    def first_share(self) -> float:
        """Typed when the final answer was first the best one."""
        return self.shares[self.answers.index(self.answers[-1])]

    @property
    def settled_share(self) -> float:
        """Typed when it came to stay."""
        place = len(self.answers)
        while place and self.answers[place - 1] == self.answers[-1]:
            place -= 1
        return self.shares[place]

    @property
    def changes(self) -> int:
        """How often the best answer became another one, from the first that there was."""
        return sum(one != other for one, other in zip(self.answers, self.answers[1:], strict=False))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an index that holds all the articles")
    parser.add_argument("--data", type=Path, required=True, help="the folder of SQuAD 1.1")
    parser.add_argument("--output", type=Path, required=True, help="the JSON file; .md and .png go beside it")
    parser.add_argument("--questions", type=int, default=500, help="of each set")
    parser.add_argument("--every-chars", type=int, default=3, help="a beginning is asked so often")
    parser.add_argument("--sets", nargs="+", choices=_SETS, default=list(_SETS))
    parser.add_argument("--strategy", default="hybrid")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    about = machine(("numpy", "numba", "onnxruntime"))
    searcher = Searcher(Index.open(arguments.index), compiled=True, threads=1)
    results: dict[str, Any] = {
        "machine": about,
        "model": searcher.view.snapshot.model.name,
        "documents": searcher.view.snapshot.live.documents,
        "questions": arguments.questions,
        "every_chars": arguments.every_chars,
        "strategy": arguments.strategy,
        "seed": arguments.seed,
        "sets": {},
    }
    for name in arguments.sets:
        questions = choose(
            arguments.data / _SETS[name], arguments.questions, name == "held-out", arguments.seed
        )
        ask = asker(searcher, arguments.strategy, repair=True)
        unrepaired = asker(searcher, arguments.strategy, repair=False)
        results["sets"][name] = {
            "questions": len(questions),
            "forms": forms(FORMS, questions, ask, arguments.seed),
            "forms_unrepaired": forms(UNREPAIRED, questions, unrepaired, arguments.seed),
            "typing": summary([typed(each, ask, arguments.every_chars) for each in shown(questions, name)]),
        }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    draw(results, arguments.output.with_suffix(".png"))
    arguments.output.with_suffix(".md").write_text(render(results), encoding="utf-8")


def choose(path: Path, count: int, held_out_only: bool, seed: int) -> list[SquadQuestion]:
    found = [
        question
        for article in read_squad(path)
        if not held_out_only or is_held_out(article.title, HELD_OUT_SHARE)
        for paragraph in article.paragraphs
        for question in paragraph.questions
        if question.answers
    ]
    order = np.random.default_rng(seed).permutation(len(found))[:count]
    return [found[place] for place in order.tolist()]


def asker(searcher: Searcher, strategy: str, repair: bool) -> Ask:
    def ask(texts: Sequence[str]) -> list[list[str]]:
        """The answers to each, best first; an empty one where there is no word to ask for."""
        asked = [text for text in texts if is_question(text)]
        replies = []
        for first in range(0, len(asked), AT_ONCE):
            replies += searcher.ask_batch(asked[first : first + AT_ONCE], 5, strategy, repair=repair)
        found = iter([[answer.text for answer in reply.answers] or [""] for reply in replies])
        return [next(found) if is_question(text) else [""] for text in texts]

    return ask


def is_question(text: str) -> bool:
    try:
        clean_question(text)
    except InputError:
        return False
    return True


# --- other forms of a question


def lower_case(text: str, chance: random.Random) -> str:
    return text.lower()


def no_question_mark(text: str, chance: random.Random) -> str:
    return text.rstrip(" ?")


def keywords(text: str, chance: random.Random) -> str:
    """The words that carry the topic, in their order."""
    words = [word.strip("?,.;:!\"'()") for word in text.split()]
    kept = [word for word in words if word.lower().removesuffix("'s") not in STOP_WORDS and word]
    return " ".join(kept) or text


def one_slip(text: str, chance: random.Random) -> str:
    """One word of at least four letters, function words left out, with a slip of the finger in it."""
    words = text.split(" ")
    places = [
        place
        for place, word in enumerate(words)
        if len(core(word)) >= MIN_SLIP_CHARS and core(word).isalpha() and core(word).lower() not in STOP_WORDS
    ]
    if not places:
        return text
    place = chance.choice(places)
    words[place] = words[place].replace(core(words[place]), slip(core(words[place]), chance), 1)
    return " ".join(words)


def core(word: str) -> str:
    return word.strip("?,.;:!\"'()")


def slip(word: str, chance: random.Random) -> str:
    """Two letters exchanged, one left out, one doubled, or one from beside it on the keyboard."""
    kind = chance.choice(("exchanged", "left out", "doubled", "beside"))
    place = chance.randrange(1, len(word))  # people see a wrong first letter
    if kind == "exchanged" and word[place - 1] != word[place]:
        return word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :]
    if kind == "left out":
        return word[:place] + word[place + 1 :]
    near = neighbours(word[place].lower())
    if kind == "beside" and near:
        return word[:place] + chance.choice(near) + word[place + 1 :]
    return word[:place] + word[place] + word[place:]


def neighbours(letter: str) -> str:
    for row in _ROWS:
        at = row.find(letter)
        if at >= 0:
            return row[max(0, at - 1) : at] + row[at + 1 : at + 2]
    return ""


Form = Callable[[str, random.Random], str]
FORMS: dict[str, Form] = {
    "as asked": lambda text, chance: text,
    "lower case": lower_case,
    "no question mark": no_question_mark,
    "lower case, no question mark": lambda text, chance: no_question_mark(text.lower(), chance),
    "keywords only": keywords,
    "one slip": one_slip,
    "lower case, no mark, one slip": lambda text, chance: one_slip(
        no_question_mark(text.lower(), chance), chance
    ),
}


UNREPAIRED = {name: FORMS[name] for name in ("as asked", "one slip")}


def forms(
    chosen: dict[str, Form],
    questions: Sequence[SquadQuestion],
    ask: Ask,
    seed: int,
) -> dict[str, dict[str, float]]:
    """Exact match, F1 and how often the answer stays the one to the question as asked, in percent."""
    found, as_asked = {}, [""] * len(questions)
    for name, form in chosen.items():
        texts = [form(each.text, random.Random(f"{seed} {each.question_id}")) for each in questions]
        shown_answers = ask(texts)
        answers = [each[0] for each in shown_answers]
        as_asked = answers if name == "as asked" else as_asked
        references = [[answer.text for answer in each.answers] for each in questions]
        pairs = list(zip(answers, references, strict=True))
        found[name] = {
            "em": percent([exact_match(*pair) for pair in pairs]),
            "f1": percent([f1(*pair) for pair in pairs]),
            "em_of_five": percent(
                [
                    any(exact_match(one, right) for one in each)
                    for each, right in zip(shown_answers, references, strict=True)
                ]
            ),
            "same_answer": percent(
                [
                    normalize_answer(one) == normalize_answer(other)
                    for one, other in zip(answers, as_asked, strict=True)
                ]
            ),
        }
        print(f"{name}: {found[name]}", file=sys.stderr)
    return found


def percent(values: Sequence[float]) -> float:
    return round(100 * float(np.mean(values)), 1)


# --- a question while it is typed


def typed(question: SquadQuestion, ask: Ask, every_chars: int) -> Typed:
    text = question.text.strip()
    lengths = [*range(every_chars, len(text), every_chars), len(text)]
    answers = [each[0] for each in ask([text[:length] for length in lengths])]
    references = [answer.text for answer in question.answers]
    return Typed(
        [length / len(text) for length in lengths],
        [normalize_answer(answer) for answer in answers],
        [exact_match(answer, references) for answer in answers],
    )


def shown(questions: Sequence[SquadQuestion], name: str) -> Iterator[SquadQuestion]:
    started = time.perf_counter()
    for number, question in enumerate(questions):
        if number and number % 50 == 0:
            print(f"{name}: {number} typed, {time.perf_counter() - started:.0f} s", file=sys.stderr)
        yield question


def summary(all_typed: Sequence[Typed]) -> dict[str, Any]:
    shares = [step / STEPS for step in range(1, STEPS + 1)]

    def curve(value: Callable[[Typed, int], bool]) -> list[float]:
        return [percent([value(each, place_at(each, share)) for each in all_typed]) for share in shares]

    first, settled = (
        [getattr(each, name) for each in all_typed] for name in ("first_share", "settled_share")
    )
    return {
        "asked_per_question": round(float(np.mean([len(each.answers) for each in all_typed])), 1),
        "changes_per_question": round(float(np.mean([each.changes for each in all_typed])), 2),
        "first_share": quartiles(first),
        "settled_share": quartiles(settled),
        "shares": shares,
        "is_final": curve(lambda each, place: each.answers[place] == each.answers[-1]),
        "is_settled": curve(lambda each, place: each.settled_share <= each.shares[place]),
        "is_right": curve(lambda each, place: each.is_right[place]),
    }


def place_at(each: Typed, share: float) -> int:
    """The last beginning that is no longer than this share of the question."""
    return max(0, int(np.searchsorted(each.shares, share + 1e-9)) - 1)


def quartiles(values: Sequence[float]) -> list[float]:
    return [round(float(value), 2) for value in np.percentile(values, (25, 50, 75))]


# --- what is written


def draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    lines = {
        "is_final": ("the final answer", "#1f5f5b"),
        "is_settled": ("the final answer, to stay", "#7fb0a8"),
        "is_right": ("the right answer", "#cf8f6d"),
    }
    figure, axes = plt.subplots(
        1, len(results["sets"]), figsize=(5 * len(results["sets"]), 3.6), squeeze=False
    )
    for axis, (name, found) in zip(axes[0], results["sets"].items(), strict=True):
        for key, (label, colour) in lines.items():
            typing = found["typing"]
            axis.plot([100 * share for share in typing["shares"]], typing[key], label=label, color=colour)
        axis.set(
            title=f"{name}, {found['questions']} questions", xlabel="% of the question typed", ylim=(0, 100)
        )
        axis.grid(alpha=0.25)
    axes[0][0].set_ylabel("% of questions whose best answer is")
    axes[0][0].legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def render(results: dict[str, Any]) -> str:
    about, sets = results["machine"], results["sets"]
    lines = [
        "# Answers while one types",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        "python benchmarks/as_you_type.py --index INDEX --data ../shared/data/squad"
        f" --questions {results['questions']} --every-chars {results['every_chars']}"
        f" --strategy {results['strategy']} --seed {results['seed']} --output docs/results/typing.json",
        "```",
        "",
        f"{about['date']}; {about['cpu']}; Python {about['python']}; commit {about['commit']}"
        f"{' with changes that are not committed' if about['has_uncommitted_code'] else ''}. Model"
        f" {results['model']}, {results['documents']:,} documents, strategy {results['strategy']}. What helps"
        " was chosen on questions of held-out training articles; dev is only reported.",
        "",
        "## Forms of a question",
        "",
        "Exact match / F1 in percent, how often the right answer is among the five that the page shows, and"
        " how often the best one is that to the question as it was asked. A slip: two letters exchanged, one"
        " left out, doubled, or hit beside, in one word that is no function word. Words that neither the"
        " index nor the model knows are repaired; below, also without that.",
        "",
        f"| form | {' | '.join(f'{name}: EM / F1 | among five | same answer' for name in sets)} |",
        f"| --- |{' --- | --- | --- |' * len(sets)}",
    ]
    rows_of = [(form, "forms", form) for form in FORMS]
    rows_of += [(f"{form}, without repair", "forms_unrepaired", form) for form in UNREPAIRED]
    for label, key, form in rows_of:
        cells = [found[key][form] for found in sets.values()]
        shown_cells = [
            f"{each['em']} / {each['f1']} | {each['em_of_five']} | {each['same_answer']}" for each in cells
        ]
        lines.append(f"| {label} | {' | '.join(shown_cells)} |")
    lines += [
        "",
        "## Beginnings of a question",
        "",
        "![How early the final answer is there](typing.png)",
        "",
        f"The page asks while one types; here a question is asked again every {results['every_chars']}"
        " characters. Shares are of the characters of the question.",
        "",
        f"| while it is typed | {' | '.join(sets)} |",
        f"| --- |{' --- |' * len(sets)}",
    ]
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "times asked": lambda typing: str(typing["asked_per_question"]),
        "times that the best answer changes": lambda typing: str(typing["changes_per_question"]),
        "typed when the final answer first is the best one (quartiles)": lambda typing: shares(
            typing["first_share"]
        ),
        "typed when it is there to stay (quartiles)": lambda typing: shares(typing["settled_share"]),
        "final answer after half of the question": lambda typing: f"{typing['is_final'][STEPS // 2 - 1]}%",
        "final answer after three quarters": lambda typing: f"{typing['is_final'][3 * STEPS // 4 - 1]}%",
        "right answer after half / three quarters / all": lambda typing: " / ".join(
            f"{typing['is_right'][place - 1]}%" for place in (STEPS // 2, 3 * STEPS // 4, STEPS)
        ),
    }
    for label, cell in rows.items():
        lines.append(f"| {label} | {' | '.join(cell(found['typing']) for found in sets.values())} |")
    return "\n".join(lines) + "\n"


def shares(values: Sequence[float]) -> str:
    return " / ".join(f"{100 * value:.0f}%" for value in values)


if __name__ == "__main__":
    main()
