"""How often hybrid's best answer is that of exact, what it can prove itself, and where the two differ.

An evenly spread part of SQuAD dev's questions, put to each index with one set of defaults. Both strategies
take turns and are timed from text to five answers; the proof is asked for apart, since it costs a scan.

    python experiments/tables/agreement.py --data ../shared/data --index SQUAD --index BOTH
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from open_runs import spread
from pages import RESULTS, begun, head, markdown, rendered_again, write

from denspi import Index, Searcher
from denspi.corpus.squad import SquadQuestion, read_squad
from denspi.evaluation.open import asked_questions
from denspi.search.candidates import Limits, Reach
from denspi.search.starts import ListedStarts
from denspi.search.strategies import top_paragraphs
from denspi.text.answers import exact_match, normalize_answer
from denspi.types import Answer

OUTPUT = RESULTS / "agreement.json"
DEV = "squad/dev-v1.1.json.gz"
EXAMPLES = 8  # of questions that are answered differently
SCAN_ALL = 1 << 62


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, action="append", required=True, help="may be given again")
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/")
    parser.add_argument("--limit", type=int, default=2000, help="questions for each index")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    given = " --index INDEX" * len(arguments.index)
    command = f"python experiments/tables/agreement.py --data ../shared/data{given} --limit {arguments.limit}"
    articles = spread(read_squad(arguments.data / DEV), arguments.limit)
    questions = [question for _, _, question in asked_questions(articles)]
    result = begun(command) | {"limit": arguments.limit, "defaults": defaults(), "indexes": []}
    for folder in arguments.index:
        result["indexes"].append(measure(Searcher(Index.open(folder), compiled=True), questions))
        write(arguments.output, result, render)  # what is known so far


def defaults() -> dict[str, int]:
    reach = Limits().reach("hybrid")
    return {
        "top_paragraphs": Limits().top_paragraphs,
        "top_starts": reach.starts,
        "probes": reach.probes,
        "lists_per_probe": reach.lists_per_probe,
    }


def measure(searcher: Searcher, questions: list[SquadQuestion]) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {"hybrid": [], "exact": []}
    same = proven = 0
    differing: list[dict[str, Any]] = []
    for number, question in enumerate(questions, 1):
        best: dict[str, Answer | None] = {}
        for strategy, taken in seconds.items():
            started = time.perf_counter()
            answers = searcher.answer(question.text, strategy=strategy)
            taken.append(time.perf_counter() - started)
            best[strategy] = answers[0] if answers else None
        reply = searcher.ask(question.text, limits=Limits(phrases=20, prove=True))
        proven += reply.certificate is not None
        if read(best["hybrid"]) == read(best["exact"]):
            same += 1
        else:
            differing.append(difference(searcher, question, best["hybrid"], best["exact"]))
        if number % 100 == 0:
            print(f"{number} of {len(questions)}, {same / number:.1%} the same", file=sys.stderr, flush=True)
    live = searcher.view.snapshot
    return {
        "words": live.live_runs,
        "starts": live.live.starts,
        "segments": len(live.segments),
        "questions": len(questions),
        "agreement": same / len(questions),
        "proven": proven / len(questions),
        "ms": {name: 1000 * float(np.median(taken)) for name, taken in seconds.items()},
        "differing": {
            "questions": len(differing),
            "exact_right": sum(each["exact_right"] for each in differing),
            "hybrid_right": sum(each["hybrid_right"] for each in differing),
            "paragraph_rank": quartiles([each["paragraph_rank"] for each in differing]),
            "start_rank": quartiles([each["start_rank"] for each in differing]),
        },
        "examples": differing[:EXAMPLES],
    }


def read(answer: Answer | None) -> str:
    return normalize_answer(answer.text) if answer else ""


def difference(
    searcher: Searcher, question: SquadQuestion, hybrid: Answer | None, exact: Answer | None
) -> dict[str, Any]:
    """What the two say, and how far down both lists stands what hybrid did not come to."""
    assert exact is not None
    view, references = searcher.view, [answer.text for answer in question.answers]
    place = view.snapshot.find(exact.document_id)
    assert place is not None
    reader = view.segments[place.segment].reader
    paragraph = int(reader.document_paragraphs[place.document]) + exact.paragraph
    begin = reader.paragraph_span(paragraph).start_char
    rows = reader.starts.of(paragraph)
    chars = reader.starts.chars.rows(rows.start, rows.stop)
    start = rows.start + int(np.flatnonzero(chars == exact.span.start_char - begin)[0])
    asked = searcher.asked(question.text)
    return {
        "question": question.text,
        "references": sorted(set(references)),
        "hybrid": hybrid.text if hybrid else "",
        "exact": exact.text,
        "hybrid_right": exact_match(hybrid.text if hybrid else "", references),
        "exact_right": exact_match(exact.text, references),
        "score_lost": exact.score - hybrid.score if hybrid else None,
        "paragraph_rank": rank(
            lambda count: top_paragraphs(view, asked, count),
            place.segment,
            paragraph,
            view.snapshot.live.paragraphs,
        ),
        "start_rank": rank(
            lambda count: ListedStarts(Reach(count, 0), SCAN_ALL).top_starts(view, asked),
            place.segment,
            start,
            view.snapshot.live.starts,
        ),
    }


def rank(top: Any, segment: int, number: int, most: int) -> int:
    """The smallest count for which `top` has it, found by doubling and halving."""

    def has(count: int) -> bool:
        return any(each == segment and number in numbers for each, numbers in top(count))

    high = 1
    while high < most and not has(high):
        high *= 2
    low = high // 2  # does not have it
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if has(middle) else (middle, high)
    return high


def quartiles(ranks: list[int]) -> list[int]:
    return [round(each) for each in np.percentile(ranks, [25, 50, 75])] if ranks else []


def render(result: dict[str, Any]) -> str:
    limits = result["defaults"]
    lines = [
        *head("hybrid and exact", result),
        f"`hybrid` reads the {limits['top_paragraphs']} paragraphs closest by words and takes"
        f" {limits['top_starts']} starts from the {limits['probes']} closest lists, or from one list in"
        f" {limits['lists_per_probe']} where that is more, in every index. *Same*: its best answer,"
        " normalised, is that of `exact`. *Proven*: the bounds of `exact` show that its best phrase is the"
        " best of the index (`Limits(prove=True)`). Times are medians from text to five answers, warm, the"
        " strategies by turns.",
        "",
        *markdown(
            (
                "words",
                "starts",
                "segments",
                "questions",
                "same",
                "proven",
                "hybrid, ms",
                "exact, ms",
                "ratio",
            ),
            [
                (
                    f"{each['words']:,}",
                    f"{each['starts']:,}",
                    str(each["segments"]),
                    f"{each['questions']:,}",
                    f"{each['agreement']:.1%}",
                    f"{each['proven']:.1%}",
                    f"{each['ms']['hybrid']:.1f}",
                    f"{each['ms']['exact']:.1f}",
                    f"{each['ms']['hybrid'] / each['ms']['exact']:.2f}",
                )
                for each in result["indexes"]
            ],
        ),
        "",
        "## Where they differ",
        "",
        "The best phrase of `exact` stands in a paragraph that is too far down by words, and its start is too"
        " far down by vectors, or in a list that was not looked into. Quartiles of both ranks, over the"
        " questions that are answered differently:",
        "",
        *markdown(
            (
                "words",
                "questions",
                "exact right",
                "hybrid right",
                "rank of the paragraph",
                "rank of the start",
            ),
            [
                (
                    f"{each['words']:,}",
                    f"{each['differing']['questions']}",
                    f"{each['differing']['exact_right']}",
                    f"{each['differing']['hybrid_right']}",
                    " / ".join(f"{rank:,}" for rank in each["differing"]["paragraph_rank"]),
                    " / ".join(f"{rank:,}" for rank in each["differing"]["start_rank"]),
                )
                for each in result["indexes"]
            ],
        ),
    ]
    for each in result["indexes"]:
        rows = [
            (
                _cell(one["question"]),
                _cell(", ".join(one["references"])),
                _cell(one["hybrid"]),
                _cell(one["exact"]),
                f"{one['paragraph_rank']:,}",
                f"{one['start_rank']:,}",
            )
            for one in each["examples"]
        ]
        heads = ("question", "reference answers", "hybrid", "exact", "paragraph", "start")
        lines += ["", f"Some of them, in {each['words']:,} words:", "", *markdown(heads, rows)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    rendered_again(OUTPUT, render) if sys.argv[1:2] == ["--render"] else main()
