"""An exported model as a folder: model.json (what it is), its ONNX graphs, tokenizer.json, its codecs (.npz).

Owns the record and the check that the files beside it are the ones it describes, so that a folder that was
half copied is never loaded. Computes nothing; needs neither torch nor onnx.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from denspi.dense.calibration import ModelCalibration
from denspi.dense.compact import COMPACT
from denspi.dense.encoder import Layout
from denspi.dense.filter import FilterThresholds
from denspi.dense.quantizer import QUANTIZER
from denspi.errors import ModelError, SettingsError
from denspi.settings import from_table

LAYOUT_VERSION = 1
PHRASE_KIND = "phrase-onnx"
READER_KIND = "reader-onnx"
RECORD, TOKENIZER = "model.json", "tokenizer.json"
GRAPH, PARAGRAPH_GRAPH, QUESTION_GRAPH = "model.onnx", "paragraph.onnx", "question.onnx"


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the weights are stored.

    `route`: "float" as trained; "int8" dynamic, one scale per text for activations; "blocks8" eight bits in
    blocks along each row. `reduced_range` leaves int8 weights seven bits, so that no processor saturates.
    `smoothed`: the widest activation channels were narrowed before int8, their weights widened.
    """

    route: Literal["float", "int8", "blocks8"] = "int8"
    reduced_range: bool = False
    smoothed: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeRecord:
    """What model.json says; `files` are (name, SHA-256) pairs of everything that determines the rows."""

    kind: str
    max_pieces: int  # longest input, special tokens included
    quantization: Quantization
    files: tuple[tuple[str, str], ...]
    layout: Layout | None = None  # phrase models only
    filter: FilterThresholds | None = None  # phrase models with a trained filter only
    calibration: ModelCalibration | None = None  # phrase models that were calibrated only
    separators: int | None = None  # readers only: between question and paragraph (see `pairs`)

    @property
    def fingerprint(self) -> str:
        """The same for two folders exactly if they give the same vectors, keep and store the same in int8."""
        # An index of compact rows records the code's own fingerprint; to all others it makes no difference.
        told = dataclasses.asdict(self) | {"files": sorted(f for f in self.files if f[0] != COMPACT)}
        del told["calibration"]  # how answers are weighed and trusted, not what is indexed
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def fingerprint(folder: Path) -> str:
    """The fingerprint of an exported model, from its record; loading checks the files against it."""
    return read_record(folder).fingerprint


def write_folder(folder: Path, record: RuntimeRecord, finished: Path) -> None:
    """Move the files of `finished` into `folder` and write the record last; other files there stay.

    Interrupted in between, the folder has no record and cannot be loaded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # An earlier export may have had others.
    for name in (RECORD, GRAPH, PARAGRAPH_GRAPH, QUESTION_GRAPH, QUANTIZER, COMPACT):
        (folder / name).unlink(missing_ok=True)
    for name, _ in record.files:
        shutil.move(finished / name, folder / name)
    write_record(folder, record)


def write_record(folder: Path, record: RuntimeRecord) -> None:
    """Write model.json, whole or not at all."""
    table = {"layout_version": LAYOUT_VERSION, **dataclasses.asdict(record), "files": dict(record.files)}
    half_written = folder / f"{RECORD}.half-written"
    half_written.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    os.replace(half_written, folder / RECORD)


def hash_files(folder: Path, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(name, SHA-256) of files of a folder."""
    return tuple((name, _hash(folder / name)) for name in names)


def kind_of(folder: Path) -> str:
    """What a model folder holds, exported or not."""
    return str(_table(folder)["kind"])


def read_record(folder: Path, kind: str | None = None) -> RuntimeRecord:
    """The record alone; `ModelError` if it is missing, of another layout version or of another kind."""
    table = dict(_table(folder))
    version = table.pop("layout_version")
    if kind is not None and table["kind"] != kind:
        raise ModelError(
            f"{folder}: holds a model of kind {table['kind']!r}, expected {kind!r}; export it or pass another"
        )
    if version != LAYOUT_VERSION:
        raise ModelError(
            f"{folder / RECORD}: layout version {version!r}, this denspi reads {LAYOUT_VERSION}; "
            "export the model again"
        )
    for name in ("layout", "filter", "calibration", "separators"):
        if table.get(name) is None:
            table.pop(name, None)
    try:
        files = table.pop("files")
        pairs = tuple((str(name), str(digest)) for name, digest in files.items())
        bare = from_table(RuntimeRecord, table | {"files": []})
    except (KeyError, AttributeError, SettingsError) as error:
        raise ModelError(f"{folder / RECORD}: not a model record ({error})") from None
    return dataclasses.replace(bare, files=pairs)


def check_files(folder: Path, record: RuntimeRecord) -> None:
    """`ModelError` unless every file is there, byte for byte."""
    for name, digest in record.files:
        path = folder / name
        if not path.is_file():
            raise ModelError(f"{folder}: incomplete, {name} is missing; copy or export the model again")
        if _hash(path) != digest:
            raise ModelError(
                f"{path}: not the file that model.json describes; copy or export the model again"
            )


def _table(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelError(f"{folder}: there is no such model folder")
    path = folder / RECORD
    if not path.is_file():
        raise ModelError(f"{folder}: not a model folder, {RECORD} is missing")
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = table["layout_version"], table["kind"]
    except (ValueError, KeyError, TypeError):
        raise ModelError(f"{path}: not a model record") from None
    return table


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
