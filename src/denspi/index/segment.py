"""One segment as a reader sees it: rows, places, texts and postings, each mapped and checked when first used.

Rows, paragraphs and documents are numbered from 0 within the segment. Opening reads only the tables of the
parts; every array is opened by the first access to it. Immutable, and threads may share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspi.errors import IndexDamagedError
from denspi.index.blocks import Checked
from denspi.index.components import PartRef
from denspi.index.documents import StoredDocuments
from denspi.index.lists import StartLists, open_lists
from denspi.index.manifest import Counts, ModelRecord
from denspi.index.part import PartReader
from denspi.index.rows import ParagraphRows
from denspi.index.sparse_part import open_norms, open_postings
from denspi.index.tombstones import read_tombstones
from denspi.sparse.layout import Segment as SparseSegment
from denspi.sparse.norms import Norms
from denspi.sparse.postings import Postings


@dataclass(frozen=True, slots=True)
class SideRows:
    """The start rows, or the end rows, of a segment: sorted by paragraph, then by word."""

    codes: Checked  # [row, vector_bytes] of the type of the index's precision
    keys: Checked  # [row, key_bytes] of the same type
    words: Checked  # [row] number of the word in its paragraph
    chars: Checked  # [row] its first character in the paragraph (starts), or one past its last (ends)
    offsets: NDArray[np.int64]  # [paragraph + 1] first row of each paragraph

    def of(self, paragraph: int) -> slice:
        """The rows of one paragraph."""
        return slice(int(self.offsets[paragraph]), int(self.offsets[paragraph + 1]))

    def paragraphs_of(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """The paragraph of each row."""
        return np.searchsorted(self.offsets, rows, side="right") - 1

    def cut(
        self, paragraph: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[Any], NDArray[Any]]:
        """Words, characters, codes and keys of one paragraph."""
        rows = self.of(paragraph)
        words, chars = self.words.rows(rows.start, rows.stop), self.chars.rows(rows.start, rows.stop)
        codes, keys = self.codes.rows(rows.start, rows.stop), self.keys.rows(rows.start, rows.stop)
        return words.astype(np.uint32), chars.astype(np.uint32), codes, keys


class SegmentReader(StoredDocuments):
    """Documents ``[0, counts.documents)``, deleted ones included; `live` says which are not."""

    def __init__(
        self,
        counts: Counts,
        model: ModelRecord,
        rows: PartReader,
        norms: PartReader | None = None,
        tombstones: PartReader | None = None,
        lists: PartReader | None = None,
        fit_fingerprint: str | None = None,
    ) -> None:
        super().__init__(counts, rows)
        self.model = model
        self.lists = lists  # the optional vector index over the stored rows
        self._norms, self._tombstones = norms, tombstones
        self._fit_fingerprint = fit_fingerprint
        # Before anything is sized by them: what is claimed must at least be what the table lists.
        listed = [rows.length(name) for name in ("id_hashes", "paragraph_words", "starts", "ends")]
        if listed != [counts.documents, counts.paragraphs, counts.starts, counts.ends]:
            raise IndexDamagedError(f"{rows.path}: holds another number of rows than is said of it; damaged")

    @property
    def rows_ref(self) -> PartRef:
        """What its rows are, by their checksum: of an index that was built anew, not even its name is."""
        return self._rows.ref

    @cached_property
    def starts(self) -> SideRows:
        """The start rows."""
        return self._side("start", self.counts.starts)

    @cached_property
    def ends(self) -> SideRows:
        """The end rows."""
        return self._side("end", self.counts.ends)

    def rows_of(self, paragraph: int) -> ParagraphRows:
        """Everything that was stored of a paragraph, as it came in."""
        word_count = int(self.paragraph_words.rows(paragraph, paragraph + 1)[0])
        return ParagraphRows(word_count, *self.starts.cut(paragraph), *self.ends.cut(paragraph))

    @cached_property
    def start_lists(self) -> StartLists | None:
        """The vector index over the start rows, where there is one."""
        return open_lists(self.lists, self.model.layout, self.counts.starts)

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """For each document whether it is not deleted."""
        return ~read_tombstones(self._tombstones, self.counts.documents)

    @cached_property
    def live_paragraphs(self) -> NDArray[np.bool_]:
        """For each paragraph whether its document is not deleted."""
        return np.repeat(self.live, np.diff(self.document_paragraphs))

    def find(self, document_id: str) -> int | None:
        """The number of a live document by its id; None where there is none."""
        return next((number for number in self.numbers_of(document_id) if self.live[number]), None)

    def counts_of(self, is_chosen: NDArray[np.bool_]) -> Counts:
        """How much some of the documents are, together."""
        paragraphs = np.repeat(is_chosen, np.diff(self.document_paragraphs))
        words, starts, ends = (
            int(each[paragraphs].sum(dtype=np.int64))
            for each in (
                self.paragraph_words.whole(),
                np.diff(self.starts.offsets),
                np.diff(self.ends.offsets),
            )
        )
        return Counts(int(is_chosen.sum()), int(paragraphs.sum()), words, starts, ends)

    @cached_property
    def sparse(self) -> SparseSegment:
        """The counts of n-grams, which no idf is in."""
        return open_postings(self._rows, self.counts)

    @cached_property
    def norms(self) -> Norms:
        """Lengths of the sparse vectors under the pinned idf."""
        assert self._norms is not None, "a segment that is not committed yet has no norms"
        return open_norms(self._norms, self.sparse, self._fit_fingerprint)

    @cached_property
    def postings(self) -> Postings:
        """Sparse search under the pinned idf."""
        return Postings(self.sparse, self.norms)

    def under(self, norms: PartReader, fit_fingerprint: str) -> SegmentReader:
        """The same segment under another fit; its norms so far may be deleted."""
        if self._norms is not None:
            self._norms.release()
        parts = self._rows, norms, self._tombstones, self.lists
        return SegmentReader(self.counts, self.model, *parts, fit_fingerprint)

    def without(self, tombstones: PartReader) -> SegmentReader:
        """The same segment with these documents deleted; its tombstones so far may be deleted themselves."""
        if self._tombstones is not None:
            self._tombstones.release()
        parts = self._rows, self._norms, tombstones, self.lists
        return SegmentReader(self.counts, self.model, *parts, self._fit_fingerprint)

    def check_rows(self) -> None:
        """Read every byte of rows, texts and postings; IndexDamagedError where one is not as written."""
        self._rows.check_all()

    def release(self) -> None:
        """Allow the parts to be deleted while this reader still lives."""
        for part in (self._rows, self._norms, self._tombstones, self.lists):
            if part is not None:
                part.release()

    def _side(self, side: str, count: int) -> SideRows:
        last, layout = self.counts.paragraphs, self.model.layout
        return SideRows(
            self._array(f"{side}s", count, layout.dtype, columns=layout.vector_bytes),
            self._array(f"{side}_keys", count, layout.dtype, columns=layout.key_bytes),
            self._array(f"{side}_words", count, "uint16", "uint32"),
            self._array(f"{side}_chars", count, "uint16", "uint32"),
            self._offsets(f"paragraph_{side}s", "uint32", last, count),
        )
