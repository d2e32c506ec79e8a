"""Which documents a search may find: conditions on fields, as masks over the documents of a segment.

Fields are those of the metadata and `document_id`, `title`, `source`. Different fields must all fit; of the
values given for a field, one must. Masks depend on the stored records alone and are kept with the segment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from denspi.errors import InputError
from denspi.index.documents import DocumentRecord
from denspi.search.view import Mask, SearchView, SegmentView

Where = Mapping[str, object] | Iterable[str] | None
_KEPT_MASKS = 64  # for each segment


@dataclass(frozen=True, slots=True)
class Filter:
    """Fields and, for each, the values of which a document must have one. Values are compared as texts."""

    conditions: tuple[tuple[str, frozenset[str]], ...] = ()

    @classmethod
    def of(cls, where: Where | Filter) -> Filter:
        """From a mapping of fields to a value or several, or from texts like ``field=value``."""
        if isinstance(where, Filter):
            return where
        if isinstance(where, str):
            where = [where]
        pairs = where.items() if isinstance(where, Mapping) else [_parse(each) for each in where or ()]
        found: dict[str, set[str]] = {}
        for field, value in pairs:
            several = value if isinstance(value, list | tuple | set | frozenset) else [value]
            found.setdefault(field, set()).update(_as_text(each) for each in several)
        return cls(tuple((field, frozenset(values)) for field, values in sorted(found.items())))

    def fits(self, record: DocumentRecord) -> bool:
        """Whether a document may be found."""
        return all(not values.isdisjoint(_values(record, field)) for field, values in self.conditions)

    def applied_to(self, view: SearchView) -> SearchView:
        """The view with only such documents."""
        return view.where(self.mask_of) if self.conditions else view

    def mask_of(self, segment: SegmentView) -> Mask:
        """``[document]`` whether each fits; deleted ones included."""
        masks = segment.memo.document_masks
        found = masks.get(self)
        if found is None:
            found = self._computed(segment)
            while len(masks) >= _KEPT_MASKS:
                masks.pop(next(iter(masks)), None)
            masks[self] = found
        return found

    def _computed(self, segment: SegmentView) -> Mask:
        reader = segment.reader
        ids = dict(self.conditions).get("document_id")
        numbers: Iterable[int] = range(reader.counts.documents)
        if ids is not None:  # found by their hashes, without reading every record
            numbers = [number for each in ids for number in reader.numbers_of(each)]
        mask = np.zeros(reader.counts.documents, np.bool_)
        for number in numbers:
            mask[number] = self.fits(reader.record(number))
        return mask


def _parse(condition: str) -> tuple[str, str]:
    field, sign, value = condition.partition("=") if isinstance(condition, str) else ("", "", "")
    if not sign or not field.strip():
        raise InputError(f"condition {condition!r}: write it as field=value")
    return field.strip(), value.strip()


def _values(record: DocumentRecord, field: str) -> Iterable[str]:
    own = {"document_id": record.document_id, "title": record.title, "source": record.source}
    value = own[field] if field in own else record.metadata.get(field)
    several = value if isinstance(value, list) else [value]
    return [_as_text(each) for each in several if isinstance(each, str | int | float)]


def _as_text(value: object) -> str:
    """Texts as they are, numbers and truth values as in JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
