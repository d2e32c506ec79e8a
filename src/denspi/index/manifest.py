"""The manifest: which segments an index has in one generation, and under which model and idf. Pure.

Canonical JSON with its own SHA-256, no times and no random names, so equal indexes have equal manifests.
It may come from a stranger: every field is checked before it is believed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from denspi.errors import IndexDamagedError, InputError
from denspi.index.components import PartRef
from denspi.index.jsonfields import Fields, canonical, parse_json
from denspi.index.rows import CodeLayout

MANIFEST = "manifest.json"
FORMAT = 1
"""The version that this code writes, and the newest that it reads."""
PRECISIONS = ("int8", "compact")
MANIFEST_LIMIT_BYTES = 1 << 26
_DIM_LIMIT = 1 << 16


class NewerFormatError(IndexDamagedError):
    """Not damage at all: whoever wrote it knows more than we do, and it is not ours to remove."""


def check_precision(precision: str) -> None:
    """`InputError` unless an index can have it."""
    if precision not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        raise InputError(f"precision {precision!r}: this version knows {known}; choose one of them")


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The model that an index was built with. Rows of another one mean something else."""

    name: str  # how it was called; the fingerprint decides
    fingerprint: str
    vector_dim: int
    coherency_dim: int
    quantizer: str  # fingerprint of the codec of this precision, without which codes are no vectors
    precision: str = "int8"
    settings: Mapping[str, str | int | float] = field(default_factory=dict)  # for whoever opens the model
    # Compact only, where they do not follow from the dimensions: the bytes of a row's codes.
    vector_bytes: int | None = None
    key_bytes: int | None = None

    def __post_init__(self) -> None:
        check_precision(self.precision)
        if not (0 < self.vector_dim <= _DIM_LIMIT and 0 <= self.coherency_dim <= _DIM_LIMIT):
            raise InputError(
                f"vectors of {self.vector_dim} and keys of {self.coherency_dim} dimensions: not stored"
            )
        for given in (self.vector_bytes, self.key_bytes):
            if (given is not None) != (self.precision == "compact") or not 0 <= (given or 0) <= _DIM_LIMIT:
                raise InputError(
                    f"precision {self.precision}: rows of {self.vector_bytes} and {self.key_bytes} bytes; "
                    "compact rows say theirs, and no others do"
                )
        if self.vector_bytes == 0:
            raise InputError("rows of 0 bytes: not stored")

    @property
    def layout(self) -> CodeLayout:
        """What the stored codes look like."""
        if self.vector_bytes is None or self.key_bytes is None:
            return CodeLayout("int8", self.vector_dim, self.coherency_dim)
        return CodeLayout("uint8", self.vector_bytes, self.key_bytes)

    def gives_the_rows_of(self, other: ModelRecord) -> bool:
        """Whether rows of both mean the same; a model may be called or placed otherwise."""
        fields = ("fingerprint", "vector_dim", "coherency_dim", "quantizer", "precision", "layout")
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    def encoded(self) -> dict[str, object]:
        """As JSON."""
        widths = {"vector_bytes": self.vector_bytes, "key_bytes": self.key_bytes}
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "vector_dim": self.vector_dim,
            "coherency_dim": self.coherency_dim,
            "quantizer": self.quantizer,
            "precision": self.precision,
            "settings": dict(self.settings),
            **(widths if self.precision == "compact" else {}),
        }

    @classmethod
    def of(cls, fields: Fields) -> ModelRecord:
        """From JSON."""
        precision = fields.text("precision")
        if precision not in PRECISIONS:
            raise IndexDamagedError(
                f"{fields.where}: precision {precision!r} is not known here; install a newer denspi"
            )
        if not fields.count("vector_dim", _DIM_LIMIT):
            raise fields.damaged("vector_dim", "a positive number")
        is_compact = precision == "compact"
        if is_compact and not fields.count("vector_bytes", _DIM_LIMIT):
            raise fields.damaged("vector_bytes", "a positive number")
        return cls(
            fields.text("name"),
            fields.text("fingerprint"),
            fields.count("vector_dim", _DIM_LIMIT),
            fields.count("coherency_dim", _DIM_LIMIT),
            fields.text("quantizer"),
            precision,
            fields.scalars("settings"),
            fields.count("vector_bytes", _DIM_LIMIT) if is_compact else None,
            fields.count("key_bytes", _DIM_LIMIT) if is_compact else None,
        )


@dataclass(frozen=True, slots=True)
class Counts:
    """What a segment holds, deleted documents included."""

    documents: int = 0
    paragraphs: int = 0
    words: int = 0
    starts: int = 0
    ends: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in _COUNTS))

    @property
    def units(self) -> int:
        """Titles and paragraphs, as sparse search counts them."""
        return self.documents + self.paragraphs

    def encoded(self) -> dict[str, object]:
        """As JSON."""
        return {name: getattr(self, name) for name in _COUNTS}

    @classmethod
    def of(cls, fields: Fields) -> Counts:
        """From JSON."""
        return cls(*(fields.count(name) for name in _COUNTS))


_COUNTS = ("documents", "paragraphs", "words", "starts", "ends")


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One live segment: its rows and texts, and the replaceable parts that lie beside them."""

    rows: PartRef
    norms: PartRef  # under the manifest's fit
    tombstones: PartRef | None
    lists: PartRef | None  # an optional vector index over the stored rows
    counts: Counts
    deleted: Counts  # of these, what tombstones cover

    @property
    def live(self) -> Counts:
        """What a search can find."""
        return Counts(*(getattr(self.counts, name) - getattr(self.deleted, name) for name in _COUNTS))

    @property
    def parts(self) -> tuple[PartRef, ...]:
        """All that are there."""
        return tuple(part for part in (self.rows, self.norms, self.tombstones, self.lists) if part)

    def encoded(self) -> dict[str, object]:
        """As JSON."""
        return {
            "rows": self.rows.encoded(),
            "norms": self.norms.encoded(),
            "tombstones": self.tombstones.encoded() if self.tombstones else None,
            "lists": self.lists.encoded() if self.lists else None,
            "counts": self.counts.encoded(),
            "deleted": self.deleted.encoded(),
        }

    @classmethod
    def of(cls, fields: Fields) -> SegmentEntry:
        """From JSON."""
        tombstones, lists = fields.optional("tombstones"), fields.optional("lists")
        entry = cls(
            PartRef.of(fields.inside("rows")),
            PartRef.of(fields.inside("norms")),
            PartRef.of(tombstones) if tombstones else None,
            PartRef.of(lists) if lists else None,
            Counts.of(fields.inside("counts")),
            Counts.of(fields.inside("deleted")),
        )
        if min(getattr(entry.live, name) for name in _COUNTS) < 0:
            raise fields.damaged("deleted", "at most what the segment counts")
        return entry


@dataclass(frozen=True, slots=True)
class Fit:
    """The n-gram frequencies that every norm and every question of this generation is weighted with."""

    part: PartRef
    fingerprint: str
    units: int

    def encoded(self) -> dict[str, object]:
        """As JSON."""
        return {"part": self.part.encoded(), "fingerprint": self.fingerprint, "units": self.units}

    @classmethod
    def of(cls, fields: Fields) -> Fit:
        """From JSON."""
        return cls(PartRef.of(fields.inside("part")), fields.text("fingerprint", 64), fields.count("units"))


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation."""

    generation: int
    next_part: int  # parts are numbered through, and no number is used twice
    model: ModelRecord
    fit: Fit
    segments: tuple[SegmentEntry, ...]

    @property
    def parts(self) -> tuple[PartRef, ...]:
        """Every part that this generation consists of."""
        return (self.fit.part, *(part for segment in self.segments for part in segment.parts))

    @property
    def fingerprint(self) -> str:
        """Of all that is stored: two indexes with the same one give the same answers."""
        tables = "".join(part.table_sha256 for part in self.parts)
        return hashlib.sha256(tables.encode()).hexdigest()[:16]

    @property
    def live(self) -> Counts:
        """What a search can find in all segments."""
        return sum((segment.live for segment in self.segments), Counts())

    def encoded(self) -> bytes:
        """The content of manifest.json."""
        body = {
            "format": FORMAT,
            "generation": self.generation,
            "next_part": self.next_part,
            "model": self.model.encoded(),
            "fit": self.fit.encoded(),
            "segments": [segment.encoded() for segment in self.segments],
        }
        return sealed(body)

    @classmethod
    def of(cls, content: bytes, where: str) -> Manifest:
        """From the content of manifest.json."""
        fields = unsealed(content, where)
        manifest = cls(
            fields.count("generation"),
            fields.count("next_part"),
            ModelRecord.of(fields.inside("model")),
            Fit.of(fields.inside("fit")),
            tuple(SegmentEntry.of(each) for each in fields.each("segments")),
        )
        folders = [part.folder for part in manifest.parts]
        if len(set(folders)) != len(folders):
            raise fields.damaged("segments", "made of parts that are named once each")
        if any(int(folder.split("-")[0]) >= manifest.next_part for folder in folders):
            raise fields.damaged("next_part", "above the number of every part")
        return manifest


def sealed(body: Mapping[str, object]) -> bytes:
    """A JSON object with the SHA-256 of its canonical bytes beside it."""
    return canonical({"content": body, "sha256": hashlib.sha256(canonical(body)).hexdigest()})


def unsealed(content: bytes, where: str) -> Fields:
    """The object inside, if it is undamaged and of a version that we know."""
    _refuse_newer(content, where)
    outer = Fields(parse_json(content, where), where)
    fields = outer.inside("content")
    body = json.loads(content)["content"]
    if hashlib.sha256(canonical(body)).hexdigest() != outer.text("sha256", 64):
        raise IndexDamagedError(
            f"{where}: damaged (its checksum is another); restore it from a copy or rebuild"
        )
    if fields.count("format") != FORMAT:
        raise fields.damaged("format", str(FORMAT))
    return Fields(body, where)


def _refuse_newer(content: bytes, where: str) -> None:
    """Before anything else: a newer version may spell and seal its content in another way."""
    try:
        found = json.loads(content)["content"]["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # not readable at all, which is said elsewhere
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormatError(
            f"{where}: format {found} is newer than this denspi knows ({FORMAT}); install a newer one"
        )
