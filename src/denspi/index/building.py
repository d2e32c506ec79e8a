"""building.json: finished segments of changes that are not committed yet, so that they can be gone on with.

It names the generation it builds on and is worthless beside any other. Pure; the same care as for a manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from denspi.index.components import PartRef
from denspi.index.jsonfields import Fields
from denspi.index.manifest import FORMAT, Counts, ModelRecord, sealed, unsealed


@dataclass(frozen=True, slots=True)
class Building:
    """What has been written since the generation `base` (0: there was none)."""

    base: int
    next_part: int
    model: ModelRecord
    segments: tuple[tuple[PartRef, Counts], ...]
    deleted: Mapping[str, tuple[int, ...]]  # folder of a segment's rows -> numbers of its deleted documents

    def encoded(self) -> bytes:
        """The content of building.json."""
        return sealed(
            {
                "format": FORMAT,
                "base": self.base,
                "next_part": self.next_part,
                "model": self.model.encoded(),
                "segments": [
                    {"rows": rows.encoded(), "counts": counts.encoded()} for rows, counts in self.segments
                ],
                "deleted": [
                    {"folder": folder, "documents": list(numbers)}
                    for folder, numbers in sorted(self.deleted.items())
                ],
            }
        )

    @classmethod
    def of(cls, content: bytes, where: str) -> Building:
        """From the content of building.json."""
        fields = unsealed(content, where)
        building = cls(
            fields.count("base"),
            fields.count("next_part"),
            ModelRecord.of(fields.inside("model")),
            tuple(_segment(each) for each in fields.each("segments")),
            {each.text("folder"): each.counts("documents", 1 << 32) for each in fields.each("deleted")},
        )
        folders = [rows.folder for rows, _ in building.segments]
        if len(set(folders)) != len(folders):
            raise fields.damaged("segments", "made of parts that are named once each")
        return building


def _segment(fields: Fields) -> tuple[PartRef, Counts]:
    return PartRef.of(fields.inside("rows")), Counts.of(fields.inside("counts"))
