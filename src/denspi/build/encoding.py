"""Paragraphs -> rows, here or in processes: whichever is sooner done. The rows are the same either way.

Owns that choice and nothing of how it is carried out (`rows`, `workers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from denspi.build.cores import usable_cores
from denspi.build.model import IndexModel
from denspi.build.rows import encode_rows
from denspi.build.workers import Workers, WorkerSettings
from denspi.dense.encoder import PhraseEncoder
from denspi.index.rows import ParagraphRows

FEW_CHARS = 100_000
"""Up to so much text (two or three seconds for the small model) no process is worth starting."""


def encode_anywhere(
    model: IndexModel,
    encoder: Callable[[], PhraseEncoder],
    paragraphs: Iterator[str],
    settings: WorkerSettings,
) -> Iterator[ParagraphRows]:
    """The rows of each paragraph, in order.

    Close the iterator, or come to its end, and no process is left.
    """
    asked = settings.processes
    count = _worthwhile(usable_cores()) if asked is None else asked
    if not count:
        yield from encode_rows(encoder(), paragraphs, model.record.precision)
        return
    first: list[str] = []
    chars = 0
    for text in paragraphs:
        first.append(text)
        chars += len(text)
        if asked is not None or chars > FEW_CHARS:
            with Workers(model, count, settings) as workers:
                yield from workers.encode(chain(first, paragraphs))
            return
    yield from encode_rows(encoder(), first, model.record.precision)


def _worthwhile(cores: int) -> int:
    """On a single core a second process would only take turns with this one."""
    return cores if cores > 1 else 0
