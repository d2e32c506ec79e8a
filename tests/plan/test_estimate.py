"""The arithmetic of a plan, against sums done by hand and against indexes that were really built."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi import Document, Index
from denspi.build.index import SEGMENT_WORDS
from denspi.build.model import model_for_new_index
from denspi.corpus import read_corpus
from denspi.index.merge_policy import MergePolicy
from denspi.index.rows import CodeLayout
from denspi.plan import Load, estimate, measured_constants
from denspi.plan.estimate import along
from denspi.plan.measured import KeptRows, Measured, Memory, Pace, TextPoint
from denspi.plan.request import kept_rows
from denspi.sample import sample_articles_path

AGREEMENT = 0.15
ROWS = KeptRows("small", "f", 1000, 0.5, 0.25, 0.5, 0.25)
FLAT = Measured(
    command="",
    collection="",
    signs_per_word=1.0,
    model=ROWS,
    points=(
        TextPoint(100, {"postings": 1000, "n-gram frequencies": 100}),
        TextPoint(10_000, {"postings": 100_000, "n-gram frequencies": 1000}),
    ),
    memory=Memory(
        worker_bytes=5000, parent_bytes=7000, segment_bytes=0, search_bytes=3000, search_bytes_per_word=0.5
    ),
    pace=Pace(3.0, 0.5, 1.0, 0.0),
)


def load(words: int, rate: float = 100.0) -> Load:
    return Load(words, CodeLayout("int8", 8, 2), 0.5, 0.25, rate, 2, 1500)


def test_rows_are_counted() -> None:
    sizes = estimate(load(1000), FLAT).bytes_by_component
    assert sizes["start vectors"] == 4000
    assert sizes["end vectors"] == 2000
    assert sizes["coherency keys"] == 1500
    assert sizes["places of rows"] == 3000
    assert sizes["postings"] == 10_000  # ten bytes a word at every size


def test_memory_and_time() -> None:
    plan = estimate(load(1000), FLAT)
    assert plan.build_seconds == pytest.approx(3 + 20)  # half of the rate goes into writing
    assert plan.build_memory_bytes == 7000 + 2 * 5500  # a model that is 500 bytes larger
    assert plan.search_memory_bytes == 3000 + 500 + 500


@pytest.mark.parametrize(
    ("segments", "on_the_way"),
    [(2, 0), (16, 0), (17, 2), (20, 5), (31, 16), (32, 18), (60, 47), (240, 239), (300, 300)],
)
def test_what_is_flushed_and_merged_stays_until_the_commit(segments: int, on_the_way: int) -> None:
    """By hand: of 60, the last merge takes groups of 16, 16 and 15 and 13 as they were flushed."""
    plan = estimate(load(segments * SEGMENT_WORDS), FLAT)
    copies = 2 + on_the_way / segments
    assert plan.building_disk_bytes == pytest.approx(plan.disk_bytes * copies, rel=1e-3)


@pytest.mark.parametrize("words", [1, 1000, SEGMENT_WORDS])
def test_one_segment_is_merged_with_nothing(words: int) -> None:
    plan = estimate(load(words), FLAT)
    assert plan.building_disk_bytes == pytest.approx(plan.disk_bytes, abs=len(plan.bytes_by_component))


def test_what_leads_to_one_segment_is_gone_before_the_next() -> None:
    policy = MergePolicy(largest_words=60 * SEGMENT_WORDS)
    plan = estimate(load(10 * 60 * SEGMENT_WORDS), FLAT, policy)
    assert plan.segments == 10
    assert plan.building_disk_bytes == pytest.approx(plan.disk_bytes * (2 + 47 / 600), rel=1e-3)


def test_a_vocabulary_grows_slower_than_the_text() -> None:
    sizes = estimate(load(1_000_000), FLAT).bytes_by_component
    assert sizes["n-gram frequencies"] == 10_000  # the square root, as between the measured sizes
    assert sizes["postings"] == 10_000_000


def test_segments_have_postings_of_their_own() -> None:
    points = (TextPoint(100, {"postings": 100}), TextPoint(10_000, {"postings": 1000}))
    measured = Measured("", "", 1.0, ROWS, points, FLAT.memory, FLAT.pace)
    policy = MergePolicy(largest_words=10_000)
    one, four = (estimate(load(words), measured, policy) for words in (10_000, 40_000))
    assert (one.segments, four.segments) == (1, 4)
    assert four.bytes_by_component["postings"] == 4 * one.bytes_by_component["postings"]


@given(st.integers(1, 10**12), st.floats(1.01, 50))
def test_more_words_never_cost_less(words: int, factor: float) -> None:
    measured = measured_constants()
    smaller, larger = estimate(load(words), measured), estimate(load(math.ceil(words * factor)), measured)
    assert larger.disk_bytes >= smaller.disk_bytes
    assert larger.build_seconds >= smaller.build_seconds


@given(st.floats(0.3, 1.2), st.floats(1, 1000), st.integers(1, 10**9))
def test_a_power_law_goes_on(power: float, factor: float, words: int) -> None:
    curve = [(each, factor * each**power) for each in (50, 700, 3000)]
    assert along(curve, words) == pytest.approx(factor * words**power, rel=1e-6)


def test_the_constants_meet_their_own_points() -> None:
    measured = measured_constants()
    for point, name in itertools.product(measured.points, measured.points[0].bytes_by_component):
        curve = [(each.words, each.bytes_by_component[name]) for each in measured.points]
        assert along(curve, point.words) == pytest.approx(point.bytes_by_component[name])


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["int8", "compact"])
def test_the_plan_of_the_sample_corpus_agrees_with_its_index(precision: str, tmp_path: Path) -> None:
    documents = [item for item in read_corpus(sample_articles_path()) if isinstance(item, Document)]
    _agrees(documents, tmp_path / "sample", precision, on_sample=True)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("articles", [3, 8])
def test_plans_agree_with_real_builds(articles: int, tmp_path: Path, data_dir: Path) -> None:
    found = read_corpus(data_dir / "squad" / "dev-v1.1.json.gz")
    documents = itertools.islice((item for item in found if isinstance(item, Document)), articles)
    _agrees(list(documents), tmp_path / "index", "int8", on_sample=False)


def test_the_shipped_model_is_the_one_that_was_measured() -> None:
    """Otherwise `denspi plan` would know nothing about its own default."""
    shipped = model_for_new_index("small", "int8").record
    assert measured_constants().model.fingerprint == shipped.fingerprint, (
        "run experiments/tables/plan_constants.py"
    )


def _agrees(documents: list[Document], folder: Path, precision: str, on_sample: bool) -> None:
    """Disk, by component too where it weighs something; a build's time is told by docs/results/plan.md."""
    with Index.create(folder, precision=precision) as index:
        index.add(documents)
        index.commit()
    info, measured = Index.open(folder).info(), measured_constants()
    model = model_for_new_index("small", precision)
    if on_sample:  # its texts are no articles: what the filter keeps is counted, not known
        starts, ends = info.starts / info.words, info.ends / info.words
    else:
        starts, ends = kept_rows(measured, None)
    plan = estimate(Load(info.words, model.record.layout, starts, ends, 1000, 1, 0), measured)
    assert plan.disk_bytes == pytest.approx(info.bytes, rel=AGREEMENT)
    for name, size in info.bytes_by_component.items():
        if size > 0.1 * info.bytes:
            assert plan.bytes_by_component[name] == pytest.approx(size, rel=2 * AGREEMENT), name
