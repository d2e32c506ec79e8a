"""A merge that keeps no writer waiting: it copies without the write lock, and takes it only to commit.

Sources are held by a snapshot, so nobody deletes them. At the commit, documents deleted meanwhile become
tombstones of the copy, norms are gathered anew, and if the sources themselves are gone, the copy is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from denspi.errors import IndexLockedError
from denspi.index.directory import Directory
from denspi.index.leftovers import LOCK, MERGE_LOCK, MERGING, remove_merging
from denspi.index.locks import NO_WAIT, Lock, Wait
from denspi.index.merge import MOST_AT_ONCE, Source, merge_rows
from denspi.index.merge_policy import MergePolicy, Size, due_merges, joined_runs, next_group
from denspi.index.part import PartWriter
from denspi.index.segment import SegmentReader
from denspi.index.snapshot import Snapshot, open_snapshot
from denspi.index.unfinished import UnfinishedError, find_unfinished
from denspi.index.writer import IndexWriter


def merge_beside(
    folder: Path,
    everything: bool = False,
    policy: MergePolicy | None = None,
    wait: Wait = NO_WAIT,
    directory: Directory | None = None,
) -> int:
    """Merge what the policy says, or `everything` into as few segments as it allows; the last generation.

    Waits so long for another merge, and for a writer to finish before each commit; IndexLockedError if it
    does not. What was committed before that stays merged. Where a writer was interrupted, its changes could
    still be gone on with: nothing more is merged, and whoever asked for `everything` has an UnfinishedError.
    """
    directory, policy = directory or Directory(folder), policy or MergePolicy()
    lock = directory.lock(MERGE_LOCK, wait, "merging")
    try:
        remove_merging(directory)
        while True:
            with closing(open_snapshot(directory)) as snapshot:
                chosen = _next_group(snapshot, everything, policy)
                if not chosen:
                    return snapshot.generation
                try:
                    _require_finished(directory, snapshot)
                    _merge(directory, folder, chosen, wait, snapshot, lock)
                except UnfinishedError:
                    if everything:
                        raise
                    return snapshot.generation
    finally:
        lock.release()


def _require_finished(directory: Directory, snapshot: Snapshot) -> None:
    """UnfinishedError before the copying, where it would be given up at its end; not beside a live writer."""
    if find_unfinished(directory, snapshot.generation, snapshot.model) is None:
        return
    try:
        lock = directory.lock(LOCK)
    except IndexLockedError:  # whose changes they are
        return
    try:
        if find_unfinished(directory, snapshot.generation, snapshot.model) is not None:
            raise UnfinishedError.at(directory)
    finally:
        lock.release()


def _next_group(snapshot: Snapshot, everything: bool, policy: MergePolicy) -> Sequence[SegmentReader]:
    entries = snapshot.manifest.segments
    sizes = [Size(entry.live, entry.counts.words) for entry in entries]
    if everything:
        runs = joined_runs(sizes, policy)
        run = next((each for each in runs if len(each) > 1 or entries[each.start].deleted.documents), None)
    else:
        run = next(due_merges(sizes, policy), None)
    if run is None:
        return ()
    group = next_group([sizes[number].live.words for number in run], MOST_AT_ONCE)
    return snapshot.segments[run.start + group.start : run.start + group.stop]


def _merge(
    directory: Directory,
    folder: Path,
    chosen: Sequence[SegmentReader],
    wait: Wait,
    snapshot: Snapshot,
    lock: Lock,
) -> None:
    sources = [Source(segment, segment.live) for segment in chosen]
    part = PartWriter(directory, MERGING)
    try:
        rows, counts = merge_rows(part, snapshot.model, sources)
        with IndexWriter.open(folder, wait=wait, directory=directory, keep_unfinished=True) as writer:
            _require_sole(directory, lock)
            snapshot.close()  # the writer holds the sources from here on, and deletes them after the commit
            adopted = writer.commit_merge(sources, MERGING, rows, counts)
    except BaseException:
        if directory.holds(lock, MERGE_LOCK):
            remove_merging(directory)
        raise
    if adopted is None:
        remove_merging(directory)


def _require_sole(directory: Directory, lock: Lock) -> None:
    """IndexLockedError if another merge may be at our copy: whoever removes the lock file lets one in."""
    if not directory.holds(lock, MERGE_LOCK):
        raise IndexLockedError(
            f"{directory.path}: its file {MERGE_LOCK!r} was removed or replaced while this merge held it; "
            "nothing of this one was committed, merge again"
        )
