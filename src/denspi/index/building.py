"""building.jsonl: finished segments of changes that are not committed yet, so that they can be gone on with.

A header names the generation that is built on (the file is worthless beside any other), then each flush adds
one line. Every line is sealed as a manifest is; what counts is the lines up to the first that is not whole,
so a line that was only half written takes nothing with it. Pure; no field is believed unchecked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from denspi.errors import IndexDamagedError
from denspi.index.components import PartRef
from denspi.index.jsonfields import Fields
from denspi.index.manifest import FORMAT, Counts, ModelRecord, sealed, unsealed

Deleted = Mapping[str, tuple[int, ...]]
"""Folder of a segment's rows -> numbers of its deleted documents."""
_LINE_END = b"\n"


@dataclass(frozen=True, slots=True)
class Step:
    """What has been written and deleted since the line before; one line."""

    next_part: int
    segments: tuple[tuple[PartRef, Counts], ...]
    deleted: Deleted

    def encoded(self) -> bytes:
        """The line."""
        body = {
            "format": FORMAT,
            "next_part": self.next_part,
            "segments": [
                {"rows": rows.encoded(), "counts": counts.encoded()} for rows, counts in self.segments
            ],
            "deleted": [
                {"folder": folder, "documents": list(numbers)}
                for folder, numbers in sorted(self.deleted.items())
            ],
        }
        return sealed(body) + _LINE_END

    @classmethod
    def of(cls, line: bytes, where: str) -> Step:
        """From a line without its end."""
        fields = unsealed(line, where)
        return cls(
            fields.count("next_part"),
            tuple(_segment(each) for each in fields.each("segments")),
            {each.text("folder"): each.counts("documents", 1 << 32) for each in fields.each("deleted")},
        )


@dataclass(frozen=True, slots=True)
class Building:
    """What has been written since the generation `base` (0: there was none)."""

    base: int
    model: ModelRecord
    steps: tuple[Step, ...] = field(default=())

    @property
    def segments(self) -> tuple[tuple[PartRef, Counts], ...]:
        """The finished segments, in order."""
        return tuple(segment for step in self.steps for segment in step.segments)

    @property
    def deleted(self) -> list[tuple[str, tuple[int, ...]]]:
        """Folders of segments and the numbers of documents deleted there; a folder may come again."""
        return [pair for step in self.steps for pair in step.deleted.items()]

    @property
    def next_part(self) -> int:
        """The number of the next part."""
        return max((step.next_part for step in self.steps), default=1)

    def encoded(self) -> bytes:
        """The content of building.jsonl."""
        header = sealed({"format": FORMAT, "base": self.base, "model": self.model.encoded()})
        return header + _LINE_END + b"".join(step.encoded() for step in self.steps)

    @classmethod
    def of(cls, content: bytes, where: str) -> Building:
        """From the content of building.jsonl, as far as it is whole; its header must be."""
        header, *lines = content.split(_LINE_END)[:-1] or [content]
        fields = unsealed(header, where)
        steps: list[Step] = []
        folders: set[str] = set()
        for number, line in enumerate(lines, 2):
            try:
                step = Step.of(line, f"{where}:{number}")
            except IndexDamagedError:
                break
            new = [rows.folder for rows, _ in step.segments]
            if len({*folders, *new}) != len(folders) + len(new):  # a part is named once
                break
            folders.update(new)
            steps.append(step)
        return cls(fields.count("base"), ModelRecord.of(fields.inside("model")), tuple(steps))


def _segment(fields: Fields) -> tuple[PartRef, Counts]:
    return PartRef.of(fields.inside("rows")), Counts.of(fields.inside("counts"))
