"""Processes give the same rows as the encoder itself, in order, and their end is one clear line."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.build.conftest import make_documents

from denspi.build.encoding import encode_anywhere
from denspi.build.model import IndexModel
from denspi.build.rows import encode_rows
from denspi.build.workers import Workers, WorkerSettings, tasks
from denspi.dense.encoder import PhraseEncoder
from denspi.errors import ModelError, WorkerError
from denspi.index.rows import ParagraphRows

PARAGRAPHS = [text for document in make_documents(60) for text in document.paragraph_texts()]
FIELDS = [name for name in ParagraphRows.__dataclass_fields__ if name != "word_count"]


def same(ours: ParagraphRows, theirs: ParagraphRows) -> bool:
    return ours.word_count == theirs.word_count and all(
        np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in FIELDS
    )


def test_tasks_hold_every_paragraph_in_order() -> None:
    grouped = list(tasks(PARAGRAPHS, 200))
    assert [text for group in grouped for text in group] == PARAGRAPHS
    assert all(sum(map(len, group[:-1])) < 200 for group in grouped)


def test_processes_give_the_same_rows_in_order(model: IndexModel, encoder: PhraseEncoder) -> None:
    right = list(encode_rows(encoder, PARAGRAPHS))
    found = list(encode_anywhere(model, lambda: encoder, iter(PARAGRAPHS), WorkerSettings(2, task_chars=1)))
    assert len(found) == len(right)
    assert all(map(same, found, right))


def test_reads_ahead_by_a_bounded_amount(model: IndexModel) -> None:
    settings = WorkerSettings(task_chars=1000, tasks_ahead=4)
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield PARAGRAPHS[read % len(PARAGRAPHS)]

    with Workers(model, 2, settings) as workers:
        rows = workers.encode(endless())
        for _ in range(5):
            next(rows)
        ahead_chars = read * max(map(len, PARAGRAPHS))
    assert ahead_chars < 2 * 2 * settings.tasks_ahead * settings.task_chars


def test_each_process_computes_with_one_thread(model: IndexModel) -> None:
    with Workers(model, 1) as workers:
        next(workers.encode(PARAGRAPHS[:1]))
        environment = Path(f"/proc/{workers._workers[0].process.pid}/environ").read_bytes().split(b"\0")
    for library in (b"OMP", b"OPENBLAS", b"MKL"):
        assert library + b"_NUM_THREADS=1" in environment


def test_few_paragraphs_start_no_process(
    model: IndexModel, encoder: PhraseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denspi.build.encoding.Workers", None)
    monkeypatch.setattr("denspi.build.encoding.usable_cores", lambda: 8)
    found = list(encode_anywhere(model, lambda: encoder, iter(PARAGRAPHS[:3]), WorkerSettings()))
    assert all(map(same, found, encode_rows(encoder, PARAGRAPHS[:3])))


def test_a_killed_process_is_one_line(model: IndexModel) -> None:
    with Workers(model, 2) as workers:
        rows = workers.encode(PARAGRAPHS * 1000)
        next(rows)
        killed = workers._workers[0].process
        os.kill(killed.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match=f"^encoding process {killed.pid} was killed by signal 9"):
            list(rows)


def test_a_model_that_cannot_be_loaded_is_one_line(model: IndexModel, tmp_path: Path) -> None:
    with (
        Workers(replace(model, folder=tmp_path), 1) as workers,
        pytest.raises(ModelError, match="not a model folder"),
    ):
        list(workers.encode(PARAGRAPHS))


def test_no_process_is_left(model: IndexModel) -> None:
    with Workers(model, 2) as workers:
        next(workers.encode(PARAGRAPHS * 1000))
    assert all(worker.process.returncode is not None for worker in workers._workers)
