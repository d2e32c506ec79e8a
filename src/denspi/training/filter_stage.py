"""What follows once the filter heads are trained: thresholds, the codecs, and what each of them costs.

All is chosen on held-out training articles or fitted to training paragraphs, never to a corpus and never to
the articles of `report`. Computes and hands back records; writes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from denspi.dense.compact import CompactQuantizer
from denspi.dense.compact_fit import compact_error, fit_compact_quantizer
from denspi.dense.encoder import Encoder
from denspi.dense.filter import FilterThresholds, filtered, kept_ends, kept_starts
from denspi.dense.quantizer import Quantizer, fit_code
from denspi.search.reading import read_paragraph, rows_of
from denspi.text.answers import mean_scores
from denspi.training.examples import Example
from denspi.training.filter_task import FilterTask
from denspi.training.thresholds import border_logits, choose_thresholds, survival
from denspi.vectors import Floats, ParagraphVectors

_QUESTIONS = 6000  # that a compact code is fitted to, as in docs/results/index-size.md
_ASKED = 200  # held-out questions that its error is measured with
RECALLS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)


class Reading:
    """Some articles with everything that is asked of them encoded, to be read in several ways."""

    def __init__(
        self, encoder: Encoder, examples: Sequence[Example], paragraphs: Sequence[ParagraphVectors]
    ) -> None:
        self.examples, self.paragraphs = examples, paragraphs
        self.logits = border_logits(examples, paragraphs)
        self.questions = encoder.encode_questions([q.text for e in examples for q in e.questions])
        self.runs = list(rows_of(self.questions, [len(e.questions) for e in examples]))

    def scores(self, changed: Callable[[ParagraphVectors], ParagraphVectors]) -> tuple[float, float]:
        """EM and F1 with every paragraph changed."""
        predictions = [
            span.of(example.text)
            for example, run, paragraph in zip(self.examples, self.runs, self.paragraphs, strict=True)
            for span in read_paragraph(run, changed(paragraph))
        ]
        return mean_scores(predictions, [q.answers for e in self.examples for q in e.questions])


def finish_filter(task: FilterTask, held_out: Reading) -> dict[str, Any]:
    """Give the model its thresholds and its codecs; returns what filter.json says."""
    target = task.stage.recall
    thresholds = choose_thresholds(held_out.logits, target)
    task.model.filter_thresholds = thresholds
    rows = kept_rows(list(task.scored(task.vectors)), thresholds)
    task.model.quantizer = Quantizer(*(fit_code(each) for each in rows))
    task.model.compact = None  # a model that comes with one was fitted to other thresholds
    if task.stage.compact_bytes:
        asked = task.encode_questions(_QUESTIONS)
        task.model.compact = fit_compact_quantizer(*rows, asked, task.stage.compact_bytes)
    return filter_record(held_out, thresholds, task.model.compact, target)


def filter_record(
    held_out: Reading, thresholds: FilterThresholds, compact: CompactQuantizer | None, target: float
) -> dict[str, Any]:
    """What filter.json says of thresholds, beside what other recall targets would have cost."""
    logits = held_out.logits
    told = {"compact": _compact_record(compact, held_out, thresholds)} if compact else {}
    return told | {
        "recall_target": target,
        "thresholds": dataclasses.asdict(thresholds),
        "answers": logits.answers,
        "starts": len(logits.starts),
        "ends": len(logits.ends),
        "curve": [_point(held_out, recall) for recall in sorted({*RECALLS, target})],
    }


def _point(held_out: Reading, recall: float) -> dict[str, float]:
    """What a recall target costs, in rows and in reading."""
    thresholds = choose_thresholds(held_out.logits, recall)
    em, f1 = held_out.scores(lambda paragraph: filtered(paragraph, thresholds))
    found = dataclasses.asdict(survival(held_out.logits, thresholds))
    start, end = thresholds.start, thresholds.end
    return {"target": recall, **found, "em": em, "f1": f1, "start_threshold": start, "end_threshold": end}


def kept_rows(
    vectors: Sequence[ParagraphVectors], thresholds: FilterThresholds
) -> tuple[Floats, Floats, Floats, Floats]:
    """Starts, ends, start keys and end keys that the filter keeps: what it drops is never stored."""
    starts = [kept_starts(each, thresholds) for each in vectors]
    ends = [kept_ends(each, thresholds) for each in vectors]
    return (
        np.concatenate([v.starts[kept] for v, kept in zip(vectors, starts, strict=True)]),
        np.concatenate([v.ends[kept] for v, kept in zip(vectors, ends, strict=True)]),
        np.concatenate([v.start_keys[kept] for v, kept in zip(vectors, starts, strict=True)]),
        np.concatenate([v.end_keys[kept] for v, kept in zip(vectors, ends, strict=True)]),
    )


def _compact_record(
    compact: CompactQuantizer, held_out: Reading, thresholds: FilterThresholds
) -> dict[str, float]:
    """What a compact row takes, and how far scores from such rows are off on the held-out articles."""
    starts, ends, _, _ = kept_rows(held_out.paragraphs, thresholds)
    step = max(1, len(held_out.questions) // _ASKED)
    return {
        "vector_bytes": compact.vector_bytes,
        "key_bytes": compact.key_bytes,
        "start_error": compact_error(compact.start, starts, held_out.questions.starts[::step]),
        "end_error": compact_error(compact.end, ends, held_out.questions.ends[::step]),
    }


def costs(
    articles: Reading, thresholds: FilterThresholds, quantizer: Quantizer, compact: CompactQuantizer | None
) -> dict[str, float]:
    """What thresholds and codecs do to some articles.

    Shares of one for what is kept; EM and F1 of reading as it is, with the filter, with int8 rows, and with
    both (``stored``), as an index has it; the last two with compact rows as well, where the model has them.
    """
    ways: dict[str, Callable[[ParagraphVectors], ParagraphVectors]] = {
        "": lambda p: p,
        "_filtered": lambda p: filtered(p, thresholds),
        "_int8": quantizer.stored,
        "_stored": lambda p: quantizer.stored(filtered(p, thresholds)),
    }
    if compact is not None:
        ways["_compact"] = compact.stored
        ways["_compact_stored"] = lambda p: compact.stored(filtered(p, thresholds))
    found: dict[str, float] = dataclasses.asdict(survival(articles.logits, thresholds))
    for name, changed in ways.items():
        found[f"em{name}"], found[f"f1{name}"] = articles.scores(changed)
    return found
