"""The paper's qualitative tables: its example questions, our answers beside those that it quotes.

All questions but one are of SQuAD dev, whose articles the index holds; the last one is of nobody.

    python experiments/tables/samples.py --index INDEX
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import paper
from pages import RESULTS, begun, head, markdown, rendered_again, write

from denspi import Index, Searcher
from denspi.types import Answer

OUTPUT = RESULTS / "samples.json"
ANSWERS = 3
CONTEXT_CHARS = 60  # on each side of an answer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an index that holds SQuAD's articles")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    result = begun("python experiments/tables/samples.py --index INDEX")
    index = Index.open(arguments.index)
    info, searcher = index.info(), Searcher(index)
    result["index"] = {name: getattr(info, name) for name in ("documents", "words", "precision")}
    result["answers"] = {
        sample.question: [shown_answer(each) for each in searcher.answer(sample.question, k=ANSWERS)]
        for sample in paper.SAMPLES
    }
    write(arguments.output, result, render)


def shown_answer(answer: Answer) -> dict[str, Any]:
    start = answer.span.start_char - answer.context_span.start_char
    end = start + len(answer.text)
    return {
        "title": answer.title,
        "before": answer.context[:start][-CONTEXT_CHARS:],
        "text": answer.text,
        "after": answer.context[end:][:CONTEXT_CHARS],
        "confidence": round(answer.confidence, 2) if answer.confidence is not None else None,
    }


def render(result: dict[str, Any]) -> str:
    index = result["index"]
    lines = [
        *head("The paper's example questions", result),
        f"Asked of {index['documents']:,} articles ({index['words']:,} words, {index['precision']}), by"
        " hybrid. DrQA and DenSPI"
        " are quoted from the paper, which asked all of English Wikipedia; where it quotes no answer there"
        " is none here.",
    ]
    for sample in paper.SAMPLES:
        right = f"reference answer: {sample.answer}" if sample.answer else "not a question of SQuAD"
        quoted = {"DrQA (paper)": sample.drqa, "DenSPI (paper)": sample.denspi}
        lines += [
            "",
            f"## {sample.question}",
            "",
            f"*{right}*",
            "",
            *markdown(
                ("", "document", "answer"),
                [
                    *(
                        (name, title, f"**{text}**")
                        for name, answers in quoted.items()
                        for title, text in answers
                    ),
                    *(
                        ("ours", each["title"], _in_context(each))
                        for each in result["answers"][sample.question]
                    ),
                ],
            ),
        ]
    return "\n".join(lines) + "\n"


def _in_context(answer: dict[str, Any]) -> str:
    sure = f" ({answer['confidence']:.0%} sure)" if answer["confidence"] is not None else ""
    text = f"... {answer['before']}**{answer['text']}**{answer['after']} ...{sure}"
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    rendered_again(OUTPUT, render) if sys.argv[1:2] == ["--render"] else main()
