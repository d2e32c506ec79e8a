"""The size argument of the paper's section 5.2 for our model: counted in an index, and for all of Wikipedia.

Phrases as vectors of their own, then pointers into lists of starts and ends, then the filter, then codes of a
byte for each dimension, then compact codes. What an index holds beside its vectors comes last.

    python experiments/tables/size.py --index INDEX [--compact INDEX]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import paper
from pages import RESULTS, begun, head, markdown, rendered_again, write

from denspi import Index
from denspi.build.model import model_for_new_index
from denspi.index.snapshot import Snapshot
from denspi.plan import Load, estimate, measured_constants

OUTPUT = RESULTS / "size.json"
FLOAT_BYTES = 4
STEPS = {
    "phrases": "every phrase of up to 20 words has a vector of its own",
    "pointer": "starts and ends are stored once each",
    "filter": "without those that are unlikely to start or end an answer",
    "quantization": "int8 instead of float32",
    "compact": "compact codes instead of int8",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="an int8 index of the shipped model")
    parser.add_argument("--compact", type=Path, help="a compact one of the same documents, to measure it too")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    index = Index.open(arguments.index)
    info, snapshot = index.info(), index.snapshot()
    given = " --compact INDEX" if arguments.compact else ""
    result = begun(f"python experiments/tables/size.py --index INDEX{given}") | {
        "index": {
            name: getattr(info, name)
            for name in ("documents", "paragraphs", "words", "words_and_signs", "starts", "ends", "bytes")
        },
        "vector_dim": snapshot.model.vector_dim,
        "coherency_dim": snapshot.model.coherency_dim,
        "phrases": count_phrases(snapshot),
    }
    compact = model_for_new_index("small", "compact").record.layout
    result["compact_row_bytes"] = compact.vector_bytes + compact.key_bytes
    result["bytes_per_word"] = bytes_per_word(result)
    result["measured_bytes_per_word"] = {"int8": round(info.bytes_per_word, 2)}
    if arguments.compact:
        measured = Index.open(arguments.compact).info()
        result["measured_bytes_per_word"]["compact"] = round(measured.bytes_per_word, 2)
    result["planned_bytes"] = {
        precision: planned(info.starts / info.words, info.ends / info.words, precision)
        for precision in ("int8", "compact")
    }
    write(arguments.output, result, render)


def count_phrases(snapshot: Snapshot) -> int:
    """Of at most 20 words and signs, within their paragraphs."""
    most, total = paper.LONGEST_PHRASE, 0
    for segment in snapshot.segments:
        words = segment.paragraph_words.whole().astype(np.int64)
        short = np.minimum(words, most)
        total += int((words * most - most * (most - 1) // 2)[words >= most].sum())
        total += int((short * (short + 1) // 2)[words < most].sum())
    return total


def bytes_per_word(result: dict[str, Any]) -> dict[str, float]:
    index, words = result["index"], result["index"]["words"]
    row = result["vector_dim"] + result["coherency_dim"]
    kept = index["starts"] + index["ends"]
    return {
        "phrases": result["phrases"] * (2 * result["vector_dim"] + 1) * FLOAT_BYTES / words,
        "pointer": 2 * index["words_and_signs"] * row * FLOAT_BYTES / words,
        "filter": kept * row * FLOAT_BYTES / words,
        "quantization": kept * row / words,
        "compact": kept * result["compact_row_bytes"] / words,
    }


def planned(starts_per_word: float, ends_per_word: float, precision: str) -> int:
    """Bytes of a whole index of the paper's size."""
    layout = model_for_new_index("small", precision).record.layout
    load = Load(paper.WORDS, layout, starts_per_word, ends_per_word, 1.0, 1, 0)
    return estimate(load, measured_constants()).disk_bytes


def render(result: dict[str, Any]) -> str:
    index, planned_bytes = result["index"], result["planned_bytes"]
    rows, before = [], None
    for step, meaning in STEPS.items():
        size, theirs = result["bytes_per_word"][step], paper.SIZES_TB.get(step)
        rows.append(
            (
                meaning,
                f"{size:,.0f}",
                f"{before / size:.1f}" if before else "",
                f"{_terabytes(size)}",
                f"{theirs * 1e12 / paper.WORDS:,.0f}" if theirs else "",
                f"{theirs:g}" if theirs else "",
            )
        )
        before = size
    low, high = paper.AUXILIARY_TB
    measured = ", ".join(
        f"{size:.1f} bytes a word in {precision}"
        for precision, size in result["measured_bytes_per_word"].items()
    )
    return (
        "\n".join(
            [
                *head("Size: pointers, filter, codes", result),
                f"Counted in an index of {index['documents']:,} articles: {index['words']:,} words between"
                " white space,"
                f" {index['words_and_signs']:,} words and signs, {result['phrases']:,} phrases of up to"
                f" {paper.LONGEST_PHRASE} of them, {index['starts']:,} starts and {index['ends']:,} ends"
                " kept."
                f" Vectors have {result['vector_dim']} dimensions and coherency keys"
                f" {result['coherency_dim']}; the paper's"
                f" phrases have {paper.PHRASE_DIM} in all. Bytes are those of vectors and keys, first a"
                " word, then for"
                " 3 billion words (Wikipedia, in the paper's count).",
                "",
                *markdown(
                    ("", "bytes a word", "times smaller", "TB", "the paper: bytes a word", "TB"),
                    rows,
                ),
                "",
                f"Whole indexes, with texts, places, postings and the vector index, take {measured},"
                " measured."
                f" For 3 billion words `denspi plan` says {planned_bytes['int8'] / 1e12:.2f} TB in int8 and"
                f" {planned_bytes['compact'] / 1e12:.2f} TB in compact; the paper adds {low} to {high} TB"
                " to its 1.2.",
            ]
        )
        + "\n"
    )


def _terabytes(bytes_a_word: float) -> str:
    return f"{bytes_a_word * paper.WORDS / 1e12:.3g}"


if __name__ == "__main__":
    rendered_again(OUTPUT, render) if sys.argv[1:2] == ["--render"] else main()
