"""A merge that keeps no writer waiting: it copies without the write lock, and takes it only to commit.

Sources are held by a snapshot, so nobody deletes them. At the commit, documents deleted meanwhile become
tombstones of the copy, norms are gathered anew, and if the sources themselves are gone, the copy is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from denspi.index.directory import Directory
from denspi.index.leftovers import MERGE_LOCK, MERGING
from denspi.index.locks import NO_WAIT, Wait
from denspi.index.merge import MOST_AT_ONCE, Source, merge_rows
from denspi.index.merge_policy import MergePolicy, Size, due_merges, joined_runs
from denspi.index.part import PartWriter
from denspi.index.segment import SegmentReader
from denspi.index.snapshot import Snapshot, open_snapshot
from denspi.index.unfinished import UnfinishedError
from denspi.index.writer import IndexWriter


def merge_beside(
    folder: Path,
    everything: bool = False,
    policy: MergePolicy | None = None,
    wait: Wait = NO_WAIT,
    directory: Directory | None = None,
) -> int:
    """Merge what the policy says, or `everything` into as few segments as it allows; the last generation.

    Waits so long for a writer to finish before each commit; IndexLockedError if it does not, or if another
    merge is running. What was committed before that stays merged. Where that writer was interrupted, its
    changes could still be gone on with: then nothing more is merged.
    """
    directory, policy = directory or Directory(folder), policy or MergePolicy()
    lock = directory.lock(MERGE_LOCK)
    try:
        if MERGING in directory.entries():
            directory.remove_folder(MERGING)
        while True:
            with closing(open_snapshot(directory)) as snapshot:
                chosen = _next_run(snapshot, everything, policy)[:MOST_AT_ONCE]
                if not chosen:
                    return snapshot.generation
                try:
                    _merge(directory, folder, chosen, wait, snapshot)
                except UnfinishedError:
                    return snapshot.generation
    finally:
        lock.release()


def _next_run(snapshot: Snapshot, everything: bool, policy: MergePolicy) -> Sequence[SegmentReader]:
    entries, segments = snapshot.manifest.segments, snapshot.segments
    sizes = [Size(entry.live, entry.counts.words) for entry in entries]
    if everything:
        for run in joined_runs(sizes, policy):
            if len(run) > 1 or entries[run.start].deleted.documents:
                return segments[run.start : run.stop]
        return ()
    due = next(due_merges(sizes, policy), None)
    return segments[due.start : due.stop] if due else ()


def _merge(
    directory: Directory,
    folder: Path,
    chosen: Sequence[SegmentReader],
    wait: Wait,
    snapshot: Snapshot,
) -> None:
    sources = [Source(segment, segment.live) for segment in chosen]
    part = PartWriter(directory, MERGING)
    try:
        rows, counts = merge_rows(part, snapshot.model, sources)
        with IndexWriter.open(folder, wait=wait, directory=directory, keep_unfinished=True) as writer:
            snapshot.close()  # the writer holds the sources from here on, and deletes them after the commit
            adopted = writer.commit_merge(sources, MERGING, rows, counts)
    except BaseException:
        _drop(directory)
        raise
    if adopted is None:
        _drop(directory)


def _drop(directory: Directory) -> None:
    if MERGING in directory.entries():
        directory.remove_folder(MERGING)
