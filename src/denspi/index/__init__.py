"""The stored phrase index: immutable mapped segments, atomic commits, snapshots. Sees arrays, no model.

`IndexWriter` changes an index, `Snapshot` reads one generation of it, `merge_beside` keeps segments few,
`verify` reads every byte. docs/index-format.md describes every file.
"""

from denspi.index.documents import DocumentRecord
from denspi.index.manifest import Manifest, ModelRecord
from denspi.index.merge_beside import merge_beside
from denspi.index.merge_policy import MergePolicy
from denspi.index.rows import ParagraphRows
from denspi.index.segment import SegmentReader, SideRows
from denspi.index.snapshot import DocumentPlace, Snapshot
from denspi.index.verify import VerifyReport, verify
from denspi.index.writer import IndexWriter, WriterSettings

__all__ = [
    "DocumentPlace",
    "DocumentRecord",
    "IndexWriter",
    "Manifest",
    "MergePolicy",
    "ModelRecord",
    "ParagraphRows",
    "SegmentReader",
    "SideRows",
    "Snapshot",
    "VerifyReport",
    "WriterSettings",
    "merge_beside",
    "verify",
]
