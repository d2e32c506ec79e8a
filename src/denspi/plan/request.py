"""`plan_index`: a number of words, a model and a precision into a plan, measuring what is not known.

Says what it took from where, so that nobody has to guess how a figure came about.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from denspi.build.cores import usable_cores
from denspi.build.model import DEFAULT_MODEL, IndexModel, model_for_new_index
from denspi.errors import InputError
from denspi.plan.estimate import Load, Plan, estimate
from denspi.plan.measured import Measured, measured_constants
from denspi.plan.rate import Encoding, measure_encoding

MOST_WORDS = 10**13
_GRAPH = "model.onnx"


@dataclass(frozen=True, slots=True)
class PlannedIndex:
    """A plan, what it was made for, and how."""

    plan: Plan
    model: str
    precision: str
    words_per_second: float
    processes: int
    grounds: tuple[str, ...]  # sentences

    def as_json(self) -> dict[str, object]:
        """What `denspi plan --json` prints."""
        found = asdict(self.plan)
        seconds = found.pop("build_seconds")
        return {
            "model": self.model,
            "precision": self.precision,
            **found,
            "disk_bytes": self.plan.disk_bytes,
            "bytes_per_word": round(self.plan.disk_bytes / self.plan.words, 2),
            "build_seconds": round(seconds, 1),
            "words_per_second": round(self.words_per_second),
            "processes": self.processes,
            "grounds": list(self.grounds),
        }


def plan_index(
    words: int,
    model: str = DEFAULT_MODEL,
    precision: str = "int8",
    words_per_second: float | None = None,
    measured: Measured | None = None,
) -> PlannedIndex:
    """Plan an index; `words_per_second` is that of all cores together, and is measured where it is None."""
    if not 1 <= words <= MOST_WORDS:
        raise InputError(f"{words} words: plan for 1 to {MOST_WORDS:,}")
    if words_per_second is not None and not 0 < words_per_second < math.inf:
        raise InputError(f"{words_per_second} words a second: give a finite rate above 0")
    chosen, constants = model_for_new_index(model, precision), measured or measured_constants()
    is_known = chosen.record.fingerprint == constants.model.fingerprint
    sample = None if is_known and words_per_second is not None else measure_encoding(chosen)
    starts, ends = kept_rows(constants, None if is_known else sample)
    if words_per_second is None:
        assert sample is not None
        rate = sample.words_per_second * constants.pace.collection_to_sample_rate
    else:
        rate = words_per_second
    processes = usable_cores()
    load = Load(words, chosen.record.layout, starts, ends, rate, processes, _model_bytes(chosen))
    return PlannedIndex(
        estimate(load, constants),
        chosen.record.name,
        precision,
        rate,
        processes,
        _grounds(constants, words, words_per_second is None, is_known),
    )


def kept_rows(constants: Measured, sample: Encoding | None) -> tuple[float, float]:
    """Starts and ends a word: as measured, or from the sample corpus, brought to the collection's texts."""
    known = constants.model
    if sample is None:
        return known.starts_per_word, known.ends_per_word
    return (
        sample.starts_per_word * known.starts_per_word / known.sample_starts_per_word,
        sample.ends_per_word * known.ends_per_word / known.sample_ends_per_word,
    )


def _model_bytes(model: IndexModel) -> int:
    return (model.folder / _GRAPH).stat().st_size


def _grounds(constants: Measured, words: int, is_timed: bool, is_known: bool) -> tuple[str, ...]:
    first, last = constants.points[0].words, constants.points[-1].words
    beyond = (
        f"; beyond {last:,} words they grow as at the end of that range, n-grams slower than the text"
        if words > last
        else f"; below {first:,} words a plan is rough"
        if words < first
        else ""
    )
    return (
        "time: the sample corpus was encoded for some seconds just now, on all cores"
        if is_timed
        else "time: by the given rate",
        f"rows: what the filter keeps of {constants.collection}"
        if is_known
        else "rows: what the filter keeps of the sample corpus, brought to articles as those of denspi-small",
        f"texts and postings: measured on {constants.collection} at {len(constants.points)} sizes{beyond}",
        "a first build, in segments as large as they get; other languages and kinds of text differ",
    )
