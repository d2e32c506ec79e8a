"""Bytes a word against exact match: how far the filter and the codes of rows can be pushed.

    python experiments/compact/study.py --data DATA --model MODEL --output docs/results/index-size.json

Codes are fitted to 2,000 training paragraphs and 6,000 questions of theirs; everything is measured on the
held-out training articles, thresholds of the filter on the half that they were not chosen on. `--cache` keeps
the encoded vectors of one model. Encoding takes five minutes on one core, the rest about fifteen.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import render
from held_out import Found, HeldOut
from rivals import compact, int8, lloyd, principal, product, rabitq, rotated
from scan_speed import scan_speeds

from denspi.dense.compact_fit import fit_grid

WEIGHTS = (0, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500)
RECALLS = (0.99, 0.98, 0.97, 0.96, 0.95, 0.93, 0.9, 0.85)
AT = 0.98  # the recall at which codes are compared
RIVALS = {  # name: (code, bytes of a vector; dim stands for one a dimension)
    "int8": (int8, lambda dim: dim),
    **{f"{b}-bit levels": (lloyd(b), lambda dim, b=b: dim * b / 8) for b in (4, 3, 2)},
    **{f"{b}-bit levels, rotated": (rotated(lloyd(b)), lambda dim, b=b: dim * b / 8) for b in (4, 3, 2)},
    **{f"RaBitQ {b}-bit": (rabitq(b), lambda dim, b=b: dim * b / 8 + 2) for b in (4, 3, 2, 1)},
    **{f"PQ of {s} dimensions": (product(s), lambda dim, s=s: -(-dim // s)) for s in (2, 4)},
    **{f"{n} principal components, int8": (principal(n), lambda dim, n=n: n) for n in (96, 64, 44)},
    **{f"compact {n}": (compact(n), lambda dim, n=n: n) for n in (112, 96, 80, 64, 56, 48, 40, 32, 24)},
}
ROWS = ((112, 8), (96, 8), (80, 4), (64, 4), (56, 4), (48, 4), (40, 4), (32, 4), (24, 4))


class Study:
    """Measures points and compares each with unfiltered floats."""

    def __init__(self, articles: HeldOut, rest: float) -> None:
        self.articles, self.rest, self.kept, self.codes = articles, rest, {}, {}
        fit, limits = articles.fit, articles.thresholds(AT)
        kept = [
            fit.words[f"can_{side}"] & (fit.words[f"{side}_logits"] >= np.float32(getattr(limits, side)))
            for side in ("start", "end")
        ]
        self.fit_rows = [
            fit.words[name][kept[name.startswith("end")]]
            for name in ("starts", "ends", "start_keys", "end_keys")
        ]
        self.fit_questions = fit.questions.starts, fit.questions.ends
        self.float = self.search(None, None, None)
        ems = [self.right(self.float, w).mean() for w in WEIGHTS]
        self.weight = WEIGHTS[int(np.argmax(ems))]
        self.float_right = self.right(self.float, self.weight)

    def right(self, found: Found, weight: float):
        """Whether each question's best phrase of all paragraphs answers it."""
        return self.articles.is_right(found, self.best(found, weight))

    def best(self, found: Found, weight: float):
        """The paragraph that each question's best phrase stands in."""
        return (found.scores + weight * self.articles.sparse).argmax(1)

    def masks(self, recall: float | None):
        """What the filter keeps."""
        if recall not in self.kept:
            self.kept[recall] = self.articles.kept(recall)
        return self.kept[recall]

    def search(self, recall, vector, key_bits) -> Found:
        """Search what the filter keeps, in the given code of vectors and bits of keys; None: float."""
        starts, ends = self.masks(recall)
        words = self.articles.rows.words
        rows = [words["starts"][starts], words["ends"][ends]]
        keys = [words["start_keys"][starts], words["end_keys"][ends]]
        if vector is not None:
            rows = [code(each) for code, each in zip(self.fitted(vector), rows, strict=True)]
        if key_bits is not None:
            keys = [code(each) for code, each in zip(self.fitted_keys(key_bits), keys, strict=True)]
        return self.articles.search(*rows, *keys, (starts, ends))

    def fitted(self, vector):
        """The code of starts and that of ends."""
        if vector not in self.codes:
            pairs = zip(self.fit_rows[:2], self.fit_questions, strict=True)
            self.codes[vector] = [vector(rows, questions) for rows, questions in pairs]
        return self.codes[vector]

    def fitted_keys(self, bits: int):
        """The same for the coherency keys."""
        if bits == 8:
            return [int8(rows, None) for rows in self.fit_rows[2:]]
        grids = [fit_grid(rows, 0) for rows in self.fit_rows[2:]]
        return [lambda x, grid=grid: grid.decode(grid.encode(x)) for grid in grids]

    def point(self, name: str, recall, vector, vector_bytes: float, key_bits) -> dict:
        """One point of the curve."""
        began = time.perf_counter()
        found, (starts, ends) = self.search(recall, vector, key_bits), self.masks(recall)
        right = self.right(found, self.weight)
        places = [each.spans(self.best(each, self.weight)) for each in (found, self.float)]
        same = np.logical_and.reduce([a == b for a, b in zip(*places, strict=True)])
        key_bytes = self.fit_rows[2].shape[1] * (key_bits or 32) / 8
        rows_per_word = [float(each.sum() / self.articles.word_count) for each in (starts, ends)]
        row = {
            "code": name,
            "recall": recall,
            "row_bytes": [vector_bytes, key_bytes],
            "rows_a_word": rows_per_word,
            "bytes_a_word": self.rest + sum(rows_per_word) * (vector_bytes + key_bytes),
            "reading_em": 100 * float(self.articles.is_right(found, self.articles.gold).mean()),
            "dense_em": 100 * float(self.right(found, 0).mean()),
            "open_em": 100 * float(right.mean()),
            "lost": int((self.float_right & ~right).sum()),
            "gained": int((right & ~self.float_right).sum()),
            "same_answer": 100 * float(same.mean()),
            "score_error": self.score_error(vector, starts) if vector else 0.0,
        }
        print(json.dumps(row), f"{time.perf_counter() - began:.0f} s", flush=True)
        return row

    def score_error(self, vector, starts) -> float:
        """Error of start scores over their spread, on every 20th question."""
        rows, asked = self.articles.rows.words["starts"][starts], self.articles.rows.questions.starts[::20]
        exact, error = asked @ rows.T, asked @ (self.fitted(vector)[0](rows) - rows).T
        return float(np.sqrt(error.var(axis=1).mean() / exact.var(axis=1).mean()))

    def rescored(self, recall, vector, key_bits, counts=(1, 3, 5)) -> dict[str, float]:
        """Open EM where the best few paragraphs by the codes are searched again in unfiltered floats."""
        found = self.search(recall, vector, key_bits)
        rows, sparse = np.arange(len(self.articles.gold))[:, None], self.weight * self.articles.sparse
        order = np.argsort(-(found.scores + sparse), axis=1)
        exact = self.float.scores + sparse
        ems = {}
        for count in counts:
            few = order[:, :count]
            chosen = few[rows[:, 0], exact[rows, few].argmax(1)]
            ems[str(count)] = 100 * float(self.articles.is_right(self.float, chosen).mean())
        return ems


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--note", default="", help="a sentence on the model, for the page")
    parser.add_argument("--cache", type=Path, help="a folder; none: encoded anew")
    parser.add_argument(
        "--rest-bytes", type=float, default=17, help="bytes a word of all that is not a vector"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = arguments.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        study = Study(HeldOut(arguments.model, arguments.data, cache), arguments.rest_bytes)
    dim = study.fit_rows[0].shape[1]
    made = {n: compact(n) for n, _ in ROWS}
    result = {
        "model": arguments.model.name,
        "note": arguments.note,
        "command": (
            "python experiments/compact/study.py --data DATA --model MODEL"
            " --output docs/results/index-size.json"
        ),
        "machine": f"AMD EPYC, {os.cpu_count()} cores, shared",
        "questions": len(study.articles.gold),
        "paragraphs": len(study.articles.texts),
        "words": study.articles.word_count,
        "vector_dim": dim,
        "coherency_dim": study.fit_rows[2].shape[1],
        "rest_bytes": arguments.rest_bytes,
        "sparse_weight": study.weight,
        "float": study.point("float", None, None, 4 * dim, None),
        "filter": [study.point("float", r, None, 4 * dim, None) for r in RECALLS],
        "int8": [study.point("int8", r, int8, dim, 8) for r in (None, *RECALLS)],
        "codes": [study.point(name, AT, code, size(dim), 8) for name, (code, size) in RIVALS.items()],
        "keys": [study.point("float", AT, None, 4 * dim, bits) for bits in (8, 4)],
        "budget": [
            study.point(f"compact {n}", r, made[n], n, bits)
            for n, bits in ROWS
            for r in ((0.99, 0.98, 0.97) if n > 80 else (0.98, 0.97, 0.95, 0.93, 0.9))
        ],
        "rescored": study.rescored(0.95, made[56], 4),
        "scan": scan_speeds(study.fit_rows[0], study.fit_questions[0]),
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    render.write(arguments.output)


if __name__ == "__main__":
    main()
