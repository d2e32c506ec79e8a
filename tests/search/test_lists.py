"""Starts from lists against a scan of all rows: the same where all lists are looked into, and never wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.index.made import make
from tests.search.conftest import CODES, COMPACT_CODES, ask

from denspi.build.lists import attach_missing_lists, make_lists
from denspi.dense.points import CompactPoints, Int8Points
from denspi.errors import IndexDamagedError
from denspi.index import IndexWriter, MergePolicy, Snapshot, WriterSettings, verify
from denspi.index.lists import list_arrays, list_count
from denspi.search.candidates import Limits, Reach
from denspi.search.exact import exact
from denspi.search.kernel_choice import kernels_of
from denspi.search.starts import ListedStarts, is_probed
from denspi.search.strategies import hybrid
from denspi.search.view import SearchView

ALL = 10**6


@pytest.fixture(scope="module", params=["int8", "compact"])
def listed(
    request: pytest.FixtureRequest,
    folder: Path,
    compact_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The index of the other tests with a vector index for each segment."""
    path = tmp_path_factory.mktemp("lists") / "index"
    shutil.copytree(folder if request.param == "int8" else compact_folder, path)
    before = Snapshot.open(path).generation
    assert attach_missing_lists(path, lambda: COMPACT_CODES, fewest_starts=1) > before
    return path


def open_view(path: Path, compiled: bool = False) -> SearchView:
    snapshot = Snapshot.open(path)
    codec = COMPACT_CODES if snapshot.model.precision == "compact" else CODES
    return SearchView.of(snapshot, codec, kernels_of(snapshot.model, compiled=compiled))


def found(
    view: SearchView, seed: int, count: int, probes: int, scan_below: int = 0
) -> list[tuple[int, list[int]]]:
    starts = ListedStarts(Reach(count, probes), scan_below).top_starts(view, ask(view, seed))
    return [(number, rows.tolist()) for number, rows in starts]


def odd_documents(view: SearchView) -> SearchView:
    return view.where(lambda segment: np.arange(segment.reader.counts.documents) % 2 == 1)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 40, ALL])
def test_all_lists_together_are_a_scan(listed: Path, compiled: bool, count: int) -> None:
    view = open_view(listed, compiled)
    assert all(is_probed(segment, 0) and not is_probed(segment) for segment in view.segments)
    for seed in range(4):
        for each in (view, odd_documents(view)):
            assert found(each, seed, count, ALL) == found(each, seed, count, 1, scan_below=ALL)


def test_deleted_and_forbidden_rows_are_never_found(listed: Path) -> None:
    view = odd_documents(open_view(listed))
    for number, rows in found(view, 1, ALL, ALL):
        segment = view.segments[number]
        documents = segment.documents[segment.reader.starts.paragraphs_of(np.array(rows))]
        assert segment.reader.live[documents].all()
        assert (documents % 2 == 1).all()


def test_more_probes_find_no_worse_and_both_kernels_the_same(listed: Path) -> None:
    plain, compiled = open_view(listed), open_view(listed, compiled=True)
    for seed in range(5):
        best = []
        for probes in (1, 2, 4, ALL):
            starts = found(plain, seed, 10, probes)
            assert starts == found(compiled, seed, 10, probes)
            weights = ask(plain, seed).fixed.start_weights
            scores = [
                plain.kernels.row_scores(
                    plain.segments[n].reader.starts.codes.whole(), weights, np.array(rows)
                )
                for n, rows in starts
            ]
            best.append(int(np.concatenate(scores).max()))
        assert best == sorted(best)


def close_lists(view: SearchView, wanted: Callable[[int], bool]) -> dict[int, np.ndarray]:
    """Scores of all lists: the lower the number, the closer; of those that `wanted` names, the farthest."""
    found = {}
    for number, segment in enumerate(view.segments):
        lists = segment.reader.start_lists
        assert lists is not None
        found[number] = np.array([-n - 1000 * wanted(n) for n in range(len(lists))], np.int32)
    return found


@pytest.mark.parametrize("reach", [Reach(1, probes=2), Reach(1, probes=1, lists_per_probe=3)])
def test_a_filter_brings_more_probes_even_where_all_that_it_allows_is_far_away(
    listed: Path, reach: Reach
) -> None:
    view = open_view(listed)
    segment = view.segments[0]
    lists = segment.reader.start_lists
    assert lists is not None
    far = len(lists) - 1  # the documents of one list are all that may be found, and it comes last
    documents = segment.documents[segment.reader.starts.paragraphs_of(lists.rows_of(np.array([far])))]
    only = view.where(
        lambda each: (each is segment) & np.isin(np.arange(each.reader.counts.documents), documents)
    )
    close = close_lists(only, lambda number: number == far)
    source = ListedStarts(reach, 0)
    usual = sum(map(len, source._closest(view, close).values()))
    found = source._closest(only, close)
    allowed = sum(each.allowed_start_count for each in only.segments)
    assert sum(map(len, found.values())) >= min(usual, allowed) // 2 > 0
    assert set(found[0].tolist()) <= set(segment.allowed_of(np.arange(segment.reader.counts.starts)).tolist())


def test_one_list_in_so_many_is_looked_into_where_that_is_more(listed: Path) -> None:
    view = open_view(listed)
    total = sum(len(segment.reader.start_lists or ()) for segment in view.segments)
    assert total > 4
    for lists_per_probe, probes in ((1, total), (2, total // 2), (total, 2)):
        source = ListedStarts(Reach(ALL, 2, lists_per_probe), 0)
        for seed in range(4):
            starts = source.top_starts(view, ask(view, seed))
            assert [(n, rows.tolist()) for n, rows in starts] == found(view, seed, ALL, probes)


def test_segments_with_and_without_lists_are_searched_together(listed: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    shutil.copytree(listed, path)
    model = Snapshot.open(path).model
    with IndexWriter.open(path, settings=WriterSettings(policy=MergePolicy(fanout=100))) as writer:
        writer.add(*make(50, paragraphs=3, words=40, model=model))
        writer.commit()
    view = open_view(path)
    assert [is_probed(segment, 0) for segment in view.segments] == [True, True, True, False]
    for seed in range(4):
        for count in (1, 9, ALL):
            assert found(view, seed, count, ALL) == found(view, seed, count, 1, scan_below=ALL)


def test_hybrid_with_all_lists_equals_exact(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denspi.search.strategies.start_source", lambda reach: ListedStarts(reach, 0))
    view = open_view(listed)
    limits = Limits(phrases=5, top_starts=ALL, probes=ALL)
    for seed in range(4):
        question = ask(view, seed)
        assert hybrid(view, question, limits).scores.tolist() == exact(view, question, limits).scores.tolist()


def test_lists_are_the_same_whoever_makes_them(listed: Path) -> None:
    segment = Snapshot.open(listed).segments[0]
    is_compact = segment.model.precision == "compact"
    code = CompactPoints(COMPACT_CODES.start) if is_compact else Int8Points()
    made, stored = make_lists(segment, code), segment.start_lists
    assert stored is not None
    np.testing.assert_array_equal(made["centres"], stored.centres.whole())
    np.testing.assert_array_equal(made["rows"], stored.rows.whole())
    rows = stored.rows_of(np.arange(len(stored)))
    assert sorted(rows.tolist()) == list(range(segment.counts.starts))


def test_a_merge_drops_lists_and_they_are_made_again(listed: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    shutil.copytree(listed, path)
    with IndexWriter.open(path) as writer:
        writer.merge()
        writer.commit()
    assert [segment.start_lists for segment in Snapshot.open(path).segments] == [None]
    generation = Snapshot.open(path).generation
    assert attach_missing_lists(path, lambda: COMPACT_CODES) == generation  # far too small to need any
    assert attach_missing_lists(path, lambda: COMPACT_CODES, fewest_starts=1) == generation + 1
    assert verify(path).problems == ()
    view = open_view(path)
    assert found(view, 1, 20, ALL) == found(view, 1, 20, 1, scan_below=ALL)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda rows: np.where(rows == 3, 10**6, rows), "names rows that are not there"),
        (lambda rows: rows[::-1], "do not ascend within their lists"),
        (lambda rows: np.where(rows == 3, 4, rows), "in no list, or in two|do not ascend"),
        (lambda rows: rows[:-1], "lists of other rows"),
    ],
)
def test_lists_of_a_stranger_are_not_believed(
    listed: Path, tmp_path: Path, change: object, finding: str
) -> None:
    path = tmp_path / "index"
    shutil.copytree(listed, path)
    segment = Snapshot.open(path).segments[1]
    stored = segment.start_lists
    assert stored is not None
    arrays = {
        "centres": stored.centres.whole(),
        "rows": change(stored.rows.whole().astype(np.int64)).astype(np.uint32),  # type: ignore[operator]
        "list_rows": stored.offsets.astype(np.uint32),
    }
    with IndexWriter.open(path) as writer:
        writer.attach_lists(segment.name, arrays)
        writer.commit()
    problems = verify(path).problems
    assert len(problems) == 1
    assert re.search(finding, problems[0])
    if "names rows" in finding or "other rows" in finding:
        with pytest.raises(IndexDamagedError, match=finding):
            found(open_view(path), 1, 10, ALL)


def test_a_flipped_byte_is_named(listed: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    shutil.copytree(listed, path)
    manifest = json.loads((path / "manifest.json").read_bytes())
    file = path / manifest["content"]["segments"][0]["lists"]["folder"] / "centres"
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    assert any("centres: damaged" in problem for problem in verify(path).problems)
    with pytest.raises(IndexDamagedError, match="centres: damaged"):
        found(open_view(path), 1, 10, 1)


def test_lists_of_another_kind_are_left_alone(listed: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    shutil.copytree(listed, path)
    segment = Snapshot.open(path).segments[0]
    with IndexWriter.open(path) as writer:
        writer.attach_lists(segment.name, {"something-new": np.zeros(3, np.uint8)})
        writer.commit()
    view = open_view(path)
    assert not is_probed(view.segments[0], 0)
    assert found(view, 1, 10, ALL) == found(view, 1, 10, 1, scan_below=ALL)


def test_sizes() -> None:
    assert [list_count(starts) for starts in (1, 127, 1 << 17, 1_266_469, 50_000_000)] == [
        *(1, 1, 1024, 9003, 56568)
    ]
    arrays = list_arrays(np.zeros((3, 2), np.int8), np.array([2, 0, 2, 2]))
    assert arrays["rows"].tolist() == [1, 0, 2, 3]
    assert arrays["list_rows"].tolist() == [0, 1, 1, 4]


def test_compact_points_keep_their_place() -> None:
    """A centre that is one of the rows comes back as codes whose scores are about those of the row."""
    random, code = np.random.default_rng(0), COMPACT_CODES.start
    rows = code.encode(random.normal(0, 0.3, (50, code.dim)).astype(np.float32))
    points = CompactPoints(code)
    again = points.rows(points.points(rows))
    assert again.dtype == np.uint8
    assert again.shape == rows.shape
    spread = np.abs(code.decode(rows)).max()
    assert np.abs(code.decode(again) - code.decode(rows)).mean() < 0.15 * spread
