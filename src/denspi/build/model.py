"""Which model an index is built with: found by what the index has recorded, refused where it is another.

The fingerprint decides; the name only says where to look. A packaged model is recorded by its name, any other
by its folder, which whoever receives the index may not have: then it is named with ``--model``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from denspi.corpus.records import shortened
from denspi.dense.codec import RowCodec
from denspi.dense.compact import COMPACT, load_compact
from denspi.dense.encoder import PhraseEncoder, WindowSettings
from denspi.dense.models import find_model, packaged_models
from denspi.dense.quantizer import QUANTIZER, load_quantizer
from denspi.dense.runtime_folder import PHRASE_KIND, RuntimeRecord, check_files, read_record
from denspi.errors import IndexDamagedError, ModelError
from denspi.index.manifest import ModelRecord, check_precision

DEFAULT_MODEL = "small"
_CODECS: dict[str, tuple[str, Callable[[Path], RowCodec]]] = {
    "int8": (QUANTIZER, load_quantizer),
    "compact": (COMPACT, load_compact),
}


@dataclass(frozen=True, slots=True)
class IndexModel:
    """A model folder and what an index records of it."""

    folder: Path
    record: ModelRecord

    @property
    def windows(self) -> WindowSettings:
        """How paragraphs are cut: as when the index was begun, whatever the defaults are by now."""
        return _windows(self.record)

    def encoder(self) -> PhraseEncoder:
        """Load it; all files are checked."""
        try:
            from denspi.dense.onnx_encoder import load_encoder
        except ImportError as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # so an extension tells of Ctrl-C
                raise KeyboardInterrupt from None
            raise
        return load_encoder(self.folder, self.windows)

    def codec(self) -> RowCodec:
        """What the stored rows mean: decodes them, and multiplies questions with them."""
        name, load = _CODECS[self.record.precision]
        codec, layout = load(self.folder / name), self.record.layout
        is_its_own = codec.fingerprint == self.record.quantizer
        if not is_its_own or (codec.vector_bytes, codec.key_bytes) != (layout.vector_bytes, layout.key_bytes):
            raise ModelError(
                f"{self.folder / name}: not the one that the index was built with; copy the model again"
            )
        return codec


def model_for_new_index(name: str, precision: str) -> IndexModel:
    """The model of that name or folder, and the record that a new index gets."""
    check_precision(precision)
    folder = find_model(name)
    runtime = read_record(folder, PHRASE_KIND)
    names = dict(runtime.files)
    if runtime.layout is None or QUANTIZER not in names:
        raise ModelError(
            f"{folder}: has no quantizer, which an index needs; pass a model with a trained filter"
        )
    codec_name, load = _CODECS[precision]
    if codec_name not in names:
        raise ModelError(
            f"{folder}: has no {codec_name}, which precision {precision} needs; "
            "choose int8, or a model that was trained with filter.compact_bytes"
        )
    check_files(folder, runtime)
    codec, windows = load(folder / codec_name), WindowSettings()
    is_compact = precision == "compact"
    record = ModelRecord(
        name=_recorded_name(folder),
        fingerprint=runtime.fingerprint,
        vector_dim=runtime.layout.vector_dim,
        coherency_dim=runtime.layout.coherency_dim,
        quantizer=codec.fingerprint,
        precision=precision,
        settings={"window_pieces": windows.size, "window_overlap_pieces": windows.overlap},
        vector_bytes=codec.vector_bytes if is_compact else None,
        key_bytes=codec.key_bytes if is_compact else None,
    )
    return IndexModel(folder, record)


def model_of_index(index: Path, record: ModelRecord, given: str | None = None) -> IndexModel:
    """The model that an index was built with: where `given` says, else where its record does."""
    try:
        _windows(record)
    except ValueError as error:
        raise IndexDamagedError(f"{index}: its model record has {error}; the index is damaged") from None
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
    except (ModelError, OSError):  # a name that no system takes, a folder of somebody else
        return None
    return found.fingerprint


def _recorded_name(folder: Path) -> str:
    for name, packaged in packaged_models().items():
        if packaged.resolve() == folder.resolve():
            return name
    return folder.resolve().as_posix()


def _windows(record: ModelRecord) -> WindowSettings:
    """ValueError for what cannot have been recorded by us."""
    usual = WindowSettings()
    size = record.settings.get("window_pieces", usual.size)
    overlap = record.settings.get("window_overlap_pieces", usual.overlap)
    if type(size) is not int or type(overlap) is not int or size < 1 or overlap < 0:
        raise ValueError(
            f"windows of {shortened(repr(size), 40)} pieces that overlap by {shortened(repr(overlap), 40)}"
        )
    return WindowSettings(size=size, overlap=overlap)


def _shown(record: ModelRecord) -> str:
    return f"{shortened(record.name)!r} (fingerprint {record.fingerprint[:12]})"
