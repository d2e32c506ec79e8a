"""Which documents a search may find: conditions on fields, as masks over the documents of a segment.

Different fields must all fit; of the values given for a field, one must (see `fields`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from denspi.errors import InputError
from denspi.search.fields import OWN_FIELDS, as_text
from denspi.search.view import Mask, SearchView, SegmentView

Where = Mapping[str, object] | Iterable[str] | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Fields and, for each, the values of which a document must have one. Values are compared as texts."""

    conditions: tuple[tuple[str, frozenset[str]], ...] = ()

    @classmethod
    def of(cls, where: Where | Filter) -> Filter:
        """From a mapping of fields to a value or several, or from texts like ``field=value``."""
        if isinstance(where, Filter):
            return where
        if not where:
            return EVERYTHING
        if isinstance(where, str):
            where = [where]
        if not isinstance(where, Iterable):
            raise InputError(f"conditions {where!r}: give a mapping of fields, or texts like field=value")
        pairs = where.items() if isinstance(where, Mapping) else [_parse(each) for each in where or ()]
        found: dict[str, set[str]] = {}
        for field, value in pairs:
            several = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
            found.setdefault(field, set()).update(as_text(each) for each in several)
        return cls(tuple((field, frozenset(values)) for field, values in sorted(found.items())))

    def applied_to(self, view: SearchView) -> SearchView:
        """The view with only such documents."""
        return view.where(self.mask_of) if self.conditions else view

    def unknown_fields(self, view: SearchView) -> list[str]:
        """Fields of the conditions that no document of the view has, as happens to those who mistype."""
        known = self.fields_of(view)
        return [field for field, _ in self.conditions if field not in known]

    def fields_of(self, view: SearchView) -> list[str]:
        """All fields that documents of the view have; those that all have first."""
        asked = {field for field, _ in self.conditions} - set(OWN_FIELDS)
        if not asked:
            return list(OWN_FIELDS)
        names = [segment.memo.columns.names_in(segment.reader) for segment in view.segments]
        return [*OWN_FIELDS, *sorted(set().union(*names) - set(OWN_FIELDS))]

    def mask_of(self, segment: SegmentView) -> Mask:
        """``[document]`` whether each fits; deleted ones included."""
        reader, columns = segment.reader, segment.memo.columns
        fits = np.ones(reader.counts.documents, np.bool_)
        for field, values in self.conditions:
            has_value = np.zeros(len(fits), np.bool_)
            for value in values:
                has_value[columns.documents_with(reader, field, value)] = True
            fits &= has_value
        return fits


EVERYTHING = Filter()


def _parse(condition: str) -> tuple[str, str]:
    field, sign, value = condition.partition("=") if isinstance(condition, str) else ("", "", "")
    if not sign or not field.strip():
        raise InputError(f"condition {condition!r}: write it as field=value")
    return field.strip(), value.strip()
