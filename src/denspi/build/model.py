"""Which model an index is built with: found by what the index has recorded, refused where it is another.

The fingerprint decides; the name only says where to look. A packaged model is recorded by its name, any other
by its folder, which whoever receives the index may not have: then it is named with ``--model``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from denspi.dense.encoder import PhraseEncoder, WindowSettings
from denspi.dense.models import find_model, packaged_models
from denspi.dense.quantizer import QUANTIZER, load_quantizer
from denspi.dense.runtime_folder import PHRASE_KIND, RuntimeRecord, check_files, read_record
from denspi.errors import ModelError
from denspi.index.manifest import ModelRecord

DEFAULT_MODEL = "small"


@dataclass(frozen=True, slots=True)
class IndexModel:
    """A model folder and what an index records of it."""

    folder: Path
    record: ModelRecord

    @property
    def windows(self) -> WindowSettings:
        """How paragraphs are cut: as when the index was begun, whatever the defaults are by now."""
        settings, usual = self.record.settings, WindowSettings()
        return WindowSettings(
            size=int(settings.get("window_pieces", usual.size)),
            overlap=int(settings.get("window_overlap_pieces", usual.overlap)),
        )

    def encoder(self) -> PhraseEncoder:
        """Load it; all files are checked."""
        from denspi.dense.onnx_encoder import load_encoder

        return load_encoder(self.folder, self.windows)


def model_for_new_index(name: str, precision: str) -> IndexModel:
    """The model of that name or folder, and the record that a new index gets."""
    folder = find_model(name)
    runtime = read_record(folder, PHRASE_KIND)
    if runtime.layout is None or QUANTIZER not in dict(runtime.files):
        raise ModelError(
            f"{folder}: has no quantizer, which an index needs; pass a model with a trained filter"
        )
    check_files(folder, runtime)
    windows = WindowSettings()
    record = ModelRecord(
        name=_recorded_name(folder),
        fingerprint=runtime.fingerprint,
        vector_dim=runtime.layout.vector_dim,
        coherency_dim=runtime.layout.coherency_dim,
        quantizer=load_quantizer(folder / QUANTIZER).fingerprint,
        precision=precision,
        settings={"window_pieces": windows.size, "window_overlap_pieces": windows.overlap},
    )
    return IndexModel(folder, record)


def model_of_index(index: Path, record: ModelRecord, given: str | None = None) -> IndexModel:
    """The model that an index was built with: where `given` says, else where its record does."""
    built_with = f"built with model {_shown(record)}"
    if given is not None:
        folder = find_model(given)
        found = read_record(folder, PHRASE_KIND)
        if found.fingerprint != record.fingerprint:
            raise ModelError(
                f"{index}: {built_with}, but {folder} is {found.fingerprint[:12]}; "
                "pass the model that it was built with, or build a new index"
            )
        return IndexModel(folder, record)
    for folder in _candidates(record):
        if _fingerprint(folder) == record.fingerprint:
            return IndexModel(folder, record)
    raise ModelError(f"{index}: {built_with}, which is not there; name its folder with --model")


def _candidates(record: ModelRecord) -> list[Path]:
    """Where the model may be; of these, only what has its fingerprint is opened."""
    recorded = Path(record.name)
    return [*packaged_models().values(), *([recorded] if recorded.is_absolute() else [])]


def _fingerprint(folder: Path) -> str | None:
    try:
        found: RuntimeRecord = read_record(folder, PHRASE_KIND)
    except ModelError:
        return None
    return found.fingerprint


def _recorded_name(folder: Path) -> str:
    for name, packaged in packaged_models().items():
        if packaged.resolve() == folder.resolve():
            return name
    return folder.resolve().as_posix()


def _shown(record: ModelRecord) -> str:
    return f"{record.name!r} (fingerprint {record.fingerprint[:12]})"
