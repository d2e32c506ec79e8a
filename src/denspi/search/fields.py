"""Which documents of a segment have a value in a field: read from the records once, then looked up.

Fields are those of the metadata and `document_id`, `title`, `source`. Values are compared as texts, of which
a column keeps the hashes of this process: twelve bytes for each document and value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from denspi.index.documents import DocumentRecord, StoredDocuments

OWN_FIELDS = ("document_id", "title", "source")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The values of one field, by their hashes."""

    hashes: NDArray[np.int64]  # [value] ascending
    documents: NDArray[np.uint32]  # [value] the document that has it

    def documents_with(self, value: str) -> NDArray[np.uint32]:
        """The documents with this value."""
        wanted = np.int64(hash(value))
        first, last = (int(np.searchsorted(self.hashes, wanted, side)) for side in ("left", "right"))
        return self.documents[first:last]


@dataclass(slots=True, eq=False)
class FieldColumns:
    """The columns of a segment that somebody has asked for. Threads may share it."""

    columns: dict[str, Column] = field(default_factory=dict)
    names: frozenset[str] | None = None  # of all fields, once the records were read

    def documents_with(self, reader: StoredDocuments, name: str, value: str) -> NDArray[np.integer]:
        """The numbers of the documents that have this value, deleted ones included."""
        if name == "document_id":  # the index has hashes of its own for them
            return np.array(reader.numbers_of(value), np.int64)
        if name not in self.columns:
            if self.names is not None and name not in self.names:
                return np.zeros(0, np.int64)  # a field that nobody has costs no second reading
            self.columns[name] = self._read(reader, name)
        return self.columns[name].documents_with(value)

    def names_in(self, reader: StoredDocuments) -> frozenset[str]:
        """Of all fields that a document has."""
        if self.names is None:
            self._read(reader, "title")
        assert self.names is not None
        return self.names

    def _read(self, reader: StoredDocuments, name: str) -> Column:
        hashes: list[int] = []
        documents: list[int] = []
        names = set(OWN_FIELDS)
        for number in range(reader.counts.documents):
            record = reader.record(number)
            names.update(record.metadata)
            for value in values_of(record, name):
                hashes.append(hash(value))
                documents.append(number)
        self.names = frozenset(names)
        found = np.array(hashes, np.int64)
        order = np.argsort(found, kind="stable")
        return Column(found[order], np.array(documents, np.uint32)[order])


def values_of(record: DocumentRecord, name: str) -> Iterable[str]:
    """What a document has in a field, as texts; of a list, each element."""
    value = getattr(record, name) if name in OWN_FIELDS else record.metadata.get(name)
    several = value if isinstance(value, list) else [value]
    return [as_text(each) for each in several if isinstance(each, str | int | float)]


def as_text(value: object) -> str:
    """Texts as they are, numbers and truth values as in JSON; 1889.0 is 1889, and a date what it prints."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value) if isinstance(value, int | float | None) else str(value)
