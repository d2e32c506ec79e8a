"""Table 2 of the paper, the open setting: every strategy and the re-reading pipelines over one index.

SQuAD dev questions, which were used to choose nothing. Pipelines that read anew are slow, so they get an
evenly spread part of the questions, and the page shows how hybrid does on that same part.

    python experiments/tables/table2.py --index INDEX --reader DIR --data ../shared/data \\
        --states build/tables/squad
    python experiments/tables/table2.py --index BOTH --reader DIR --data ../shared/data \\
        --states build/tables/both --collection "SQuAD and Wikipedia" \\
        --output docs/results/table2-wikipedia.json

A run that was interrupted goes on with what the folder of states holds. `--limit 50` is a smoke run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import paper
from open_runs import (
    OURS,
    TOP_PARAGRAPHS,
    WITHOUT_SPARSE,
    reread_seconds_from_disk,
    run_ours,
    run_reread,
    seconds_from_disk,
    spread,
)
from pages import RESULTS, begun, head, markdown, rendered_again, shown, write

from denspi import Index, Searcher
from denspi.corpus.squad import read_squad
from denspi.dense.reader import load_reader
from denspi.dense.runtime_folder import fingerprint
from denspi.evaluation.open import asked_questions

DEV = "squad/dev-v1.1.json.gz"
READ_PARAGRAPHS, READ_DOCUMENTS = f"re-read {TOP_PARAGRAPHS} paragraphs", "re-read 5 documents"
REREADING = {READ_PARAGRAPHS: False, READ_DOCUMENTS: True}  # by document
STAGES = ("index", "sparse", "dense", "candidates", "answers")


def main() -> None:
    arguments = parsed()
    command = (
        "python experiments/tables/table2.py --index INDEX"
        + (f" --reader {arguments.reader.name}" if arguments.reader else "")
        + f" --data ../shared/data --states STATES --collection '{arguments.collection}'"
        + (f" --limit {arguments.limit}" if arguments.limit else "")
        + f" --paragraph-questions {arguments.paragraph_questions}"
        f" --document-questions {arguments.document_questions} --disk-questions {arguments.disk_questions}"
        f" --output docs/results/{arguments.output.name}"
    )
    result = begun(command) | {"collection": arguments.collection}
    articles = spread(read_squad(arguments.data / DEV), arguments.limit)
    searcher = Searcher(Index.open(arguments.index))
    snapshot = searcher.view.snapshot
    result["index"] = {
        "documents": snapshot.live.documents,
        "paragraphs": snapshot.live.paragraphs,
        "words": snapshot.live_runs,
        "starts": snapshot.live.starts,
        "precision": snapshot.model.precision,
        "model": snapshot.model.fingerprint[:12],
        "sparse_weight": searcher.sparse_weight,
    }
    reader = load_reader(arguments.reader) if arguments.reader else None
    before = {} if reader else measured_before(arguments.output, len(asked_questions(articles)))
    result["ours"] = {
        name: run_ours(name, each.settings, searcher, articles, arguments.states)
        for name, each in OURS.items()
    }
    if reader is None:
        result |= before
        for found in result["rereading"].values():
            part = spread(articles, found["questions"])
            beside = run_ours("hybrid", OURS["hybrid"].settings, searcher, part, arguments.states)
            found["hybrid_em"] = beside["em"]
    else:
        print_of_reader = fingerprint(arguments.reader)
        about = {"reader": arguments.reader.name, "reader_fingerprint": print_of_reader[:12]}
        result |= about | {"rereading": {}}
        for name, by_document in REREADING.items():
            count = arguments.document_questions if by_document else arguments.paragraph_questions
            if count:
                part = spread(articles, count)
                found = run_reread(
                    name, by_document, searcher, reader, print_of_reader, part, arguments.states
                )
                beside = run_ours("hybrid", OURS["hybrid"].settings, searcher, part, arguments.states)
                result["rereading"][name] = found | {
                    "hybrid_em": beside["em"],
                    "hybrid_seconds_per_question": result["ours"]["hybrid"]["seconds_per_question"],
                }
    texts = [question.text for _, _, question in asked_questions(spread(articles, arguments.disk_questions))]
    encoder = searcher.encoder
    del searcher, snapshot  # what is mapped cannot be dropped from memory
    for name, each in OURS.items():
        print(f"{name}: from disk", file=sys.stderr, flush=True)
        result["ours"][name]["disk_seconds_per_question"] = seconds_from_disk(
            arguments.index, encoder, each.settings, texts
        )
    for name, by_document in REREADING.items():
        if reader is not None and (found := result["rereading"].get(name)):
            few = texts[: 5 if by_document else None]
            found["disk_seconds_per_question"] = reread_seconds_from_disk(
                arguments.index, encoder, reader, by_document, few
            )
    result["disk_questions"] = len(texts)
    write(arguments.output, result, render)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an index that holds SQuAD's articles")
    parser.add_argument(
        "--reader", type=Path, help="an exported reader's folder; none: re-reading stays as it was measured"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/")
    parser.add_argument("--states", type=Path, required=True, help="folder for what is answered already")
    parser.add_argument("--collection", default="the articles of SQuAD", help="in words, for the page")
    parser.add_argument("--limit", type=int, help="so many questions, evenly spread; all by default")
    parser.add_argument("--paragraph-questions", type=int, default=1000)
    parser.add_argument("--document-questions", type=int, default=200)
    parser.add_argument("--disk-questions", type=int, default=20)
    parser.add_argument("--output", type=Path, default=RESULTS / "table2.json")
    return parser.parse_args()


def measured_before(output: Path, questions: int) -> dict[str, Any]:
    """What the last result says of re-reading, and hybrid's time then: times of two runs are not compared."""
    if not output.exists():
        return {"rereading": {}}
    last = json.loads(output.read_text(encoding="utf-8"))
    if (then := last["ours"]["hybrid"]["questions"]) != questions:
        sys.exit(f"{output}: of {then} questions, now {questions}; name a reader, or another output")
    about = last.get("rereading_measured") or {name: last["machine"][name] for name in ("date", "commit")}
    for found in last.get("rereading", {}).values():
        found.setdefault("hybrid_seconds_per_question", last["ours"]["hybrid"]["seconds_per_question"])
    return {
        "reader": last.get("reader"),
        "reader_fingerprint": last.get("reader_fingerprint"),
        "rereading": last.get("rereading", {}),
        "rereading_measured": about,
    }


def render(result: dict[str, Any]) -> str:
    index, ours = result["index"], result["ours"]
    lines = head(f"Table 2: open setting, {result['collection']}", result)
    lines += [
        f"{index['documents']:,} documents, {index['paragraphs']:,} paragraphs, {index['words']:,} words,"
        f" {index['starts']:,} starts in {index['precision']}; sparse weight {index['sparse_weight']:g},"
        f" chosen on training articles. {ours['hybrid']['questions']:,} questions of SQuAD dev. The paper's"
        " collection, all of Wikipedia, is 3 billion words: its scores are for another task and stand here"
        " for the order of its rows.",
        "",
        "*s/Q*: one by one, warm, from text to answers; *with disk*: the first question after an index is"
        f" opened, no page of it in memory ({result['disk_questions']} questions). *#D/Q*: documents with a"
        " phrase that was scored in full.",
        "",
        *markdown(
            (
                "",
                "EM",
                "F1",
                "among five",
                "s/Q",
                "with disk",
                "#D/Q",
                "the paper's row",
                "EM",
                "F1",
                "s/Q",
                "#D/Q",
            ),
            [
                *(_reread_row(name, each) for name, each in result.get("rereading", {}).items()),
                *(_our_row(name, ours[name]) for name in OURS if name in ours),
                *(("",) * 7 + _paper(row) for row in paper.REREADING),
            ],
        ),
        "",
    ]
    for name, each in result.get("rereading", {}).items():
        times = each["seconds_per_question"] / each["hybrid_seconds_per_question"]
        lines.append(
            f"- **{name}** (tf-idf, then {result['reader']}): {each['questions']:,} questions,"
            f" EM {each['em']:.1f} ± {each['em_half_width']:.1f}; hybrid has {each['hybrid_em']:.1f} on the"
            f" same ones, and answers {times:,.0f} times as fast. It reads"
            f" {each['paragraphs_read_per_question']:.0f} paragraphs for each question."
        )
    if about := result.get("rereading_measured"):
        lines += [
            "",
            f"Re-reading, and hybrid's time beside it, were measured on {about['date']},"
            f" at {about['commit']}.",
        ]
    lines += [
        "",
        "## What each stage loses",
        "",
        "Percent of the questions for which the right document / paragraph / answer is there"
        " ([stages](../cli.md#denspi-evaluate-open-index---data-squad)):",
        "",
        *markdown(
            ("", *STAGES),
            [
                (name, *(_reached(each["recall"].get(stage)) for stage in STAGES))
                for name, each in ours.items()
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _our_row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    row = OURS[name].row
    label = "dense_first, sparse weight 0" if name == WITHOUT_SPARSE else name
    numbers = (
        f"{found['em']:.1f}",
        f"{found['f1']:.1f}",
        f"{found['top_k_em']:.1f}",
        shown(found["seconds_per_question"], ".3f"),
        shown(found.get("disk_seconds_per_question"), ".2f"),
        shown(found["documents_per_question"], ".0f"),
    )
    return (label, *numbers, *(_paper(row) if row else ("",) * 5))


def _reread_row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    numbers = (
        f"{found['em']:.1f} ± {found['em_half_width']:.1f}",
        f"{found['f1']:.1f}",
        "",
        shown(found["seconds_per_question"], ".3f"),
        shown(found.get("disk_seconds_per_question"), ".2f"),
        "5" if REREADING[name] else "",
    )
    return (name, *numbers, *("",) * 5)


def _paper(row: paper.OpenRow) -> tuple[str, ...]:
    return (
        row.model,
        shown(row.em),
        shown(row.f1),
        shown(row.seconds, "g"),
        shown(row.documents, "d"),
    )


def _reached(found: dict[str, float] | None) -> str:
    return "" if found is None else " / ".join(f"{each:.1f}" for each in found.values())


if __name__ == "__main__":
    rendered_again(Path(sys.argv[2]), render) if sys.argv[1:2] == ["--render"] else main()
