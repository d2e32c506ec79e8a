"""What the ranges of the int8 quantizer were chosen by: ways to fit them, read with the shipped model.

    python experiments/quantizer_ranges.py --data ../shared/data --output docs/results/quantizer-ranges.json

Ranges are fitted to the kept rows of some training paragraphs; questions and their paragraphs are of the
held-out *train* articles, dev is not read. The error is that of the score of the best phrase in floats.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))
from denspi.corpus.squad import SquadParagraph, read_squad
from denspi.dense.filter import kept_ends, kept_starts
from denspi.dense.models import find_model, open_encoder
from denspi.dense.quantizer import Int8Code, Quantizer, fit_code
from denspi.search.reading import rows_of
from denspi.search.scoring import best_phrases, phrase_scores
from denspi.text.answers import exact_match
from denspi.training.examples import is_held_out
from denspi.vectors import Floats, ParagraphVectors, QuestionVectors
from machine import machine

SHARE = 0.05
SEED = 1
CUTS = np.geomspace(1e-5, 0.02, 24)  # shares at either end, of which each dimension takes its best
Fit = Callable[[Floats], Int8Code]


def between(low: Floats, high: Floats) -> Int8Code:
    """Codes from -128 to 127 over these ranges ``[dim]``."""
    scale = np.maximum((high - low) / 255, 1e-9).astype(np.float32)
    return Int8Code(scale, (low + 128 * scale).astype(np.float32))


def without(share: float) -> Fit:
    return lambda rows: between(*np.quantile(rows, [share, 1 - share], axis=0))


def least_squares(rows: Floats) -> Int8Code:
    """Of the cuts, the one with the least squared error, for each dimension by itself."""
    codes = [with_room(0.0)(rows), *(without(share)(rows) for share in CUTS)]
    errors = [((code.decode(code.encode(rows)) - rows) ** 2).mean(axis=0) for code in codes]
    best, dims = np.argmin(errors, axis=0), np.arange(rows.shape[1])
    return Int8Code(
        *(np.stack([getattr(c, part) for c in codes])[best, dims] for part in ("scale", "offset"))
    )


def with_room(share: float) -> Fit:
    def fit(rows: Floats) -> Int8Code:
        low, high = rows.min(axis=0), rows.max(axis=0)
        more = (high - low) * share / 2
        return between(low - more, high + more)

    return fit


RANGES: dict[str, Fit] = {
    "without one in a thousand at either end": without(0.001),
    "without one in ten thousand at either end": without(0.0001),
    "least squared error of each dimension": least_squares,
    "least to greatest": with_room(0.0),
    "and a tenth more (ours)": fit_code,
    "and two tenths more": with_room(0.2),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/")
    parser.add_argument("--paragraphs", type=int, default=1000, help="that ranges are fitted to")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    articles = read_squad(arguments.data / "squad" / "train-v1.1.json.gz")
    held_out = [p for a in articles if is_held_out(a.title, SHARE) for p in a.paragraphs]
    others = [p.context for a in articles if not is_held_out(a.title, SHARE) for p in a.paragraphs]
    chosen = np.random.default_rng(SEED).choice(len(others), arguments.paragraphs, replace=False)
    encoder = open_encoder(find_model("small"))
    assert encoder.filter_thresholds is not None
    fitted = list(encoder.encode_paragraphs([others[place] for place in sorted(chosen)]))
    rows = {
        "start": np.concatenate([p.starts[kept_starts(p, encoder.filter_thresholds)] for p in fitted]),
        "end": np.concatenate([p.ends[kept_ends(p, encoder.filter_thresholds)] for p in fitted]),
        "start_key": np.concatenate(
            [p.start_keys[kept_starts(p, encoder.filter_thresholds)] for p in fitted]
        ),
        "end_key": np.concatenate([p.end_keys[kept_ends(p, encoder.filter_thresholds)] for p in fitted]),
    }
    vectors = list(encoder.encode_paragraphs([p.context for p in held_out]))
    asked = encoder.encode_questions([q.text for p in held_out for q in p.questions])
    questions = list(rows_of(asked, [len(p.questions) for p in held_out]))
    em, scores = read(held_out, questions, vectors, vectors)
    result = {
        "command": "python experiments/quantizer_ranges.py --data ../shared/data"
        f" --paragraphs {arguments.paragraphs} --output docs/results/quantizer-ranges.json",
        "machine": machine(("numpy", "onnxruntime")),
        "paragraphs": arguments.paragraphs,
        "questions": len(asked),
        "score_deviation": float(scores.std()),
        "em": em,
        "ranges": [],
    }
    for name, fit in RANGES.items():
        codes = Quantizer(**{part: fit(each) for part, each in rows.items()})
        em, stored = read(held_out, questions, vectors, [through(codes, each) for each in vectors])
        error = np.abs(stored - scores)
        found = {
            "rms_error": float(np.sqrt((error**2).mean())),
            "largest_error": float(error.max()),
            "em": em,
        }
        result["ranges"].append({"name": name} | found)
        print(name, found, file=sys.stderr, flush=True)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def through(codes: Quantizer, paragraph: ParagraphVectors) -> ParagraphVectors:
    """As it comes back from an index."""
    parts = {"starts": "start", "ends": "end", "start_keys": "start_key", "end_keys": "end_key"}
    decoded = {}
    for field, part in parts.items():
        code: Int8Code = getattr(codes, part)
        decoded[field] = code.decode(code.encode(getattr(paragraph, field)))
    return replace(paragraph, **decoded)


def read(
    paragraphs: Sequence[SquadParagraph],
    questions: Sequence[QuestionVectors],
    vectors: Sequence[ParagraphVectors],
    stored: Sequence[ParagraphVectors],
) -> tuple[float, Floats]:
    """EM of reading from `stored`, and its scores ``[question]`` of the best phrases of `vectors`."""
    right, scores = [], []
    for paragraph, asked, exact, coded in zip(paragraphs, questions, vectors, stored, strict=True):
        if not len(asked):
            continue
        first, last, _ = best_phrases(phrase_scores(asked, exact))
        band = phrase_scores(asked, coded)
        scores.append(band[np.arange(len(asked)), first, last - first])
        first, last, _ = best_phrases(band)
        for question, i, j in zip(paragraph.questions, first, last, strict=True):
            text = paragraph.context[coded.word_starts[i] : coded.word_ends[j]]
            right.append(exact_match(text, [answer.text for answer in question.answers]))
    return 100 * float(np.mean(right)), np.concatenate(scores)


if __name__ == "__main__":
    main()
