"""idf is pinned: commits and merges change no score, and a refit makes a grown index equal a fresh one."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.made import MODEL, build, make
from tests.index.test_round_trip import scores

from denspi.index import IndexWriter, MergePolicy, Snapshot, WriterSettings, merge_beside, verify
from denspi.index.components import PartRef
from denspi.index.directory import Directory
from denspi.index.leftovers import MERGE_LOCK, MERGING
from denspi.index.manifest import Counts
from denspi.index.merge import Source, merge_rows
from denspi.index.merge_policy import Size, due_merges, joined_runs
from denspi.index.part import PartWriter

NEVER = WriterSettings(policy=MergePolicy(fanout=1000, most_deleted=1.0))


def test_adding_a_little_changes_no_score(tmp_path: Path) -> None:
    build(tmp_path / "index", [make(n) for n in range(10)])
    before = Snapshot.open(tmp_path / "index")
    with IndexWriter.open(tmp_path / "index") as writer:
        writer.add(*make(10))
        writer.commit()
    after = before.refresh()
    assert after.manifest.fit == before.manifest.fit
    old, new = scores(before), scores(after)
    assert {name: new[name] for name in old} == old


@settings(max_examples=10)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    deleted=st.sets(st.integers(0, 12)),
    beside=st.booleans(),
)
def test_a_merge_changes_no_score_by_a_bit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], deleted: set[int], beside: bool
) -> None:
    folder = tmp_path_factory.mktemp("merge") / "index"
    build(folder, [make(n) for n in range(5)])
    number = 5
    with IndexWriter.open(folder, settings=NEVER) as writer:
        for size in sizes:
            for _ in range(size):
                writer.add(*make(number))
                number += 1
            writer.commit()
        for each in deleted:
            writer.delete(f"d{each}")
        writer.commit()
    before = Snapshot.open(folder)
    expected = scores(before)
    if beside:
        merge_beside(folder, everything=True)
    else:
        with IndexWriter.open(folder, settings=NEVER) as writer:
            writer.merge()
            writer.commit()
    after = before.refresh()
    assert len(after.segments) <= 1
    assert scores(after) == expected
    assert after.manifest.fit == before.manifest.fit


def test_a_grown_index_equals_a_fresh_one_after_refit(tmp_path: Path) -> None:
    build(tmp_path / "grown", [make(n) for n in range(4)])
    with IndexWriter.open(tmp_path / "grown", settings=NEVER) as writer:
        for n in range(4, 7):
            writer.add(*make(n))
            writer.commit()
        writer.update(*make(2, version=1))
        writer.delete("d0")
        writer.commit()
        before = Snapshot.open(tmp_path / "grown")
        writer.refit()
        writer.commit()
    build(tmp_path / "fresh", [make(1), make(2, version=1), *(make(n) for n in range(3, 7))])
    grown, fresh = before.refresh(), Snapshot.open(tmp_path / "fresh")
    assert scores(before) != scores(fresh)  # or the test would show nothing
    assert scores(grown) == scores(fresh)
    assert grown.manifest.fit.fingerprint == fresh.manifest.fit.fingerprint
    assert len(grown.segments) > 1


def test_a_commit_fits_when_the_collection_has_doubled(tmp_path: Path) -> None:
    build(tmp_path / "index", [make(n) for n in range(4)])
    fits = []
    with IndexWriter.open(tmp_path / "index", settings=NEVER) as writer:
        for n in range(4, 9):
            writer.add(*make(n))
            writer.commit()
            fits.append(Snapshot.open(tmp_path / "index").manifest.fit)
    units = [fit.units for fit in fits]
    assert units == [12, 12, 12, 24, 24]
    build(tmp_path / "fresh", [make(n) for n in range(8)])
    assert fits[3].fingerprint == Snapshot.open(tmp_path / "fresh").manifest.fit.fingerprint


def test_segments_stay_few(tmp_path: Path) -> None:
    with IndexWriter.create(tmp_path / "index", MODEL) as writer:
        for n in range(40):
            writer.add(*make(n, paragraphs=1))
            writer.commit()
            assert len(Snapshot.open(tmp_path / "index").segments) <= 4
    assert Snapshot.open(tmp_path / "index").live.documents == 40


def test_large_merges_are_left_to_the_one_beside(tmp_path: Path) -> None:
    settings_small = WriterSettings(inline_words=10)
    with IndexWriter.create(tmp_path / "index", MODEL, settings=settings_small) as writer:
        for n in range(6):
            writer.add(*make(n))
            writer.commit()
    before = Snapshot.open(tmp_path / "index")
    assert len(before.segments) > 4
    merge_beside(tmp_path / "index")
    after = before.refresh()
    assert len(after.segments) == 1
    assert scores(after) == scores(before)


def copy_beside(folder: Path) -> tuple[list[Source], PartRef, Counts]:
    """What `merge_beside` does before it takes the write lock."""
    snapshot = Snapshot.open(folder)
    sources = [Source(segment, segment.live) for segment in snapshot.segments]
    return sources, *merge_rows(PartWriter(Directory(folder), MERGING), MODEL, sources)


def build_of_segments(folder: Path, count: int) -> None:
    with IndexWriter.create(folder, MODEL, settings=NEVER) as writer:
        for n in range(count):
            writer.add(*make(2 * n))
            writer.add(*make(2 * n + 1))
            writer.commit()


def test_a_merge_beside_a_writer_keeps_what_the_writer_did(tmp_path: Path) -> None:
    """Documents deleted and added, and a refit, between the copy and its commit."""
    folder = tmp_path / "index"
    build_of_segments(folder, 3)
    lock = Directory(folder).lock(MERGE_LOCK)
    sources, rows, counts = copy_beside(folder)
    with IndexWriter.open(folder, settings=NEVER) as other:
        other.delete("d1")
        other.update(*make(3, version=1))
        other.add(*make(9))
        other.refit()
        other.commit()
    expected = scores(Snapshot.open(folder))
    with IndexWriter.open(folder, settings=NEVER) as writer:
        assert writer.commit_merge(sources, MERGING, rows, counts) is not None
    lock.release()
    after = Snapshot.open(folder)
    assert len(after.segments) == 2
    assert scores(after) == expected
    assert sorted(expected) == ["d0", "d2", "d3", "d4", "d5", "d9"]
    assert after.document("d3") == make(3, version=1)[0]
    assert verify(folder).problems == ()


def test_a_merge_whose_sources_are_gone_is_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build_of_segments(folder, 3)
    lock = Directory(folder).lock(MERGE_LOCK)
    sources, rows, counts = copy_beside(folder)
    with IndexWriter.open(folder) as writer:
        writer.merge()
        generation = writer.commit()
        assert writer.commit_merge(sources, MERGING, rows, counts) is None
        assert writer.generation == generation
    lock.release()
    with IndexWriter.open(folder):
        assert not (folder / MERGING).exists()


def test_a_segment_that_is_deleted_to_the_last_document_goes(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    settings_lazy = WriterSettings(inline_words=-1)
    with IndexWriter.create(folder, MODEL, settings=settings_lazy) as writer:
        for n in range(2):
            writer.add(*make(n))
            writer.commit()
        writer.delete("d0")
        writer.commit()
    assert len(Snapshot.open(folder).segments) == 2
    merge_beside(folder)
    assert len(Snapshot.open(folder).segments) == 1
    with IndexWriter.open(folder, settings=settings_lazy) as writer:
        writer.delete("d1")
        writer.commit()
    merge_beside(folder, everything=True)
    assert Snapshot.open(folder).segments == ()
    assert verify(folder).problems == ()


SIZES = st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**6)), max_size=40)


@given(sizes=SIZES)
def test_the_policy_comes_to_an_end_with_few_segments(sizes: list[tuple[int, int]]) -> None:
    policy = MergePolicy()
    held = [Size(Counts(documents=1, words=live), live + deleted) for live, deleted in sizes]
    merges = 0
    while run := next(due_merges(held, policy), None):
        words = sum(held[n].live.words for n in run)
        assert words <= policy.largest_words or len(run) == 1
        held[run.start : run.stop] = [Size(Counts(documents=len(run), words=words), words)]
        merges += 1
        assert merges <= 2 * len(sizes)
    levels = [next(n for n in range(40) if size.live.words <= policy.smallest_words * 4**n) for size in held]
    for level in set(levels):  # neighbours of a level are fewer than four, or too large together
        for is_low, group in groupby(range(len(held)), lambda n, level=level: levels[n] <= level):
            run = list(group)
            if is_low and [levels[n] for n in run].count(level) >= 4:
                assert sum(held[n].live.words for n in run) > policy.largest_words
    runs = joined_runs(held, policy)
    assert [n for each in runs for n in each] == list(range(len(held)))
