"""Table 1 of the paper, reading: our models beside its own, words per second as a ratio to the reader's.

Measures nothing: the scores are those of docs/results/reading.json, the rates those of
docs/results/query.json, where index and reader were timed in one run.

    python experiments/tables/table1.py
"""

from __future__ import annotations

import json
from typing import Any

import paper
from pages import RESULTS, begun, head, markdown, rendered_again, shown, write

COMMAND = "python experiments/tables/table1.py"
OUTPUT = RESULTS / "table1.json"
# A run of reading.json, what it is, and the row of the paper that it stands beside.
READERS = {
    "reader-base": ("MPNet-base reader (the teacher)", paper.BERT),
    "reader-small": ("MiniLM-L6 reader", paper.DRQA),
}
AGNOSTIC = {
    "ablation-lstm-pretrained": ("LSTM and self-attention, embeddings of MiniLM-L6", paper.LSTM),
    "ablation-lstm": ("LSTM and self-attention, embeddings learned from scratch", None),
    "base": ("MPNet-base phrase model", paper.DENSPI),
    "base-without-negatives": ("the same, trained without negatives", None),
    "small": ("MiniLM-L6 phrase model (denspi-small, the mean of three seeds), float", None),
    "small-seed-1": ("seed 1 alone", None),
    "small-seed-2": ("seed 2 alone", None),
    "small-seed-3": ("seed 3 alone", None),
    "small-without-negatives": ("seed 1 trained without negatives", None),
}
ABLATIONS = {
    # It and the nine after it are of the code of before similar lengths stood together in a batch.
    "ablation-lengths-by-chance": ("MiniLM-L6, SQuAD alone, three epochs, batches by chance", None),
    "ablation-linear": ("+ linear layer", paper.LINEAR),
    "ablation-independent": ("+ independent encoders", paper.INDEPENDENT),
    "ablation-no-coherency": ("- coherency", paper.NO_COHERENCY),
    "ablation-product": ("coherency times the question's own", None),
    "ablation-no-distillation": ("- distillation", None),
    "ablation-no-in-batch": ("- paragraphs of the batch as negatives", None),
    "ablation-paper-negatives": ("the paper's negatives instead", None),
    "ablation-similar-question": ("paragraphs of similar questions instead", None),
    "ablation-base": ("MPNet-base in MiniLM's place", None),
    "ablation": ("MiniLM-L6, SQuAD alone, three epochs, similar lengths in a batch", None),
    "ablation-no-dropout": ("- dropout", None),
    "ablation-base-no-in-batch": (
        "MPNet-base in MiniLM's place, - paragraphs of the batch as negatives",
        None,
    ),
}
SHIPPED = "exported_small_on_dev"


def main() -> None:
    reading = json.loads((RESULTS / "reading.json").read_text(encoding="utf-8"))
    query = json.loads((RESULTS / "query.json").read_text(encoding="utf-8"))
    runs = {
        run["name"]: run["dev"] | {"command": run["command"]} for run in reading["runs"] if run.get("dev")
    }
    batch = query.get("batch") or {}
    result = begun(COMMAND) | {
        "scores_of": "reading.json",
        "rates_of": "query.json" if batch.get("questions") else None,
        "runs": {
            name: runs[name] for part in (READERS, AGNOSTIC, ABLATIONS) for name in part if name in runs
        },
        "shipped": [{key: each[key] for key in ("route", "em", "f1")} for each in reading.get(SHIPPED, [])],
        "rates": {
            key: batch[key] for key in ("cores", "words_per_s", "reader_words_per_s", "exact_to_reader")
        }
        if batch.get("questions")
        else None,
        "reader": query["reader"],
        "rates_measured_at": query["machine"]["commit"],
    }
    write(OUTPUT, result, render)


def render(result: dict[str, Any]) -> str:
    lines = head("Table 1: reading", result)
    lines += [
        "SQuAD v1.1 dev, exact match / F1. Scores come from [reading.json](reading.json), which names the"
        " command of each run.",
        "",
        *markdown(
            ("", "model", "EM / F1", "the paper's row", "EM / F1", "W/s"),
            [
                *_rows("reads the paragraph anew for every question", READERS, result),
                *_cited("query-agnostic", (paper.ELMO,)),
                *_rows("query-agnostic", AGNOSTIC, result),
                *(
                    (
                        "query-agnostic",
                        f"denspi-small as shipped ({each['route']})",
                        _scores(each),
                        "",
                        "",
                        "",
                    )
                    for each in result["shipped"]
                ),
                *_rows("ablation", ABLATIONS, result),
                *_cited("ablation", _missing(result)),
            ],
        ),
        "",
    ]
    rates = result["rates"]
    if rates is None:
        lines.append("Words per second have not been measured yet (benchmarks/query.py --batch-questions).")
    else:
        ours, reader, ratio = (rates[key] for key in ("words_per_s", "reader_words_per_s", "exact_to_reader"))
        lines += [
            f"**W/s**, words read in a second in batch mode, on {rates['cores']} cores, in one run"
            f" ([query.md](query.md)): denspi-small {ours['wall'] / 1e6:.1f} million, the reader"
            f" {result['reader']} {reader['wall']:,}, a ratio of **{ratio['wall']:,}**"
            f" ({ratio['processor']:,} by processor time). The paper: 28.7 million and 4,800 (DrQA), a"
            " ratio of 6,000; 51 (BERT-Large), 563,000. Ratios of one run can be compared between machines,"
            " rates cannot.",
        ]
    return "\n".join(lines) + "\n"


def _rows(group: str, part: dict[str, Any], result: dict[str, Any]) -> list[tuple[str, ...]]:
    found = []
    for name, (label, row) in part.items():
        if scores := result["runs"].get(name):
            found.append((group, label, _scores(scores), *_paper(row)))
        elif row and part is not ABLATIONS:
            found.append((group, "", "", *_paper(row)))
    return found


def _missing(result: dict[str, Any]) -> list[paper.ReadingRow]:
    return [row for name, (_, row) in ABLATIONS.items() if row and name not in result["runs"]]


def _cited(group: str, rows: Any) -> list[tuple[str, ...]]:
    return [(group, "", "", *_paper(row)) for row in rows]


def _paper(row: paper.ReadingRow | None) -> tuple[str, str, str]:
    if row is None:
        return "", "", ""
    return row.model, f"{row.em} / {row.f1}", shown(row.words_per_second, ",.0f")


def _scores(found: dict[str, float]) -> str:
    return f"{found['em']:.1f} / {found['f1']:.1f}"


if __name__ == "__main__":
    import sys

    rendered_again(OUTPUT, render) if "--render" in sys.argv else main()
