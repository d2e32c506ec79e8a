"""Building and merging give the same bytes; damaged files are named; a merge changes no score."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.errors import InputError
from denspi.sparse import (
    Norms,
    Postings,
    Segment,
    SparseRetriever,
    UnitFrequencies,
    build_segment,
    compute_norms,
    document_scores_of,
    explain_document,
    explain_paragraph,
    merge_segments,
    paragraph_scores_of,
    weigh_question,
)
from denspi.types import Document

Make = Callable[..., Any]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_documents_give_the_same_bytes(documents: list[Document], tmp_path: Path) -> None:
    SparseRetriever.build(documents, tmp_path / "one")
    SparseRetriever.build(iter(documents), tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("run_characters", [1, 60, 10_000])
def test_runs_of_any_size_give_the_same_bytes(
    documents: list[Document], tmp_path: Path, run_characters: int
) -> None:
    build_segment(documents, tmp_path / "whole")
    build_segment(documents, tmp_path / "runs", run_characters)
    assert contents(tmp_path / "runs") == contents(tmp_path / "whole")


@given(cuts=st.lists(st.integers(0, 5), max_size=3))
def test_merged_parts_equal_the_whole(
    documents: list[Document], tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    whole = build_segment(documents, folder / "whole")
    bounds = [0, *sorted(cuts), len(documents)]
    parts = [
        build_segment(documents[start:end], folder / f"part{number}")
        for number, (start, end) in enumerate(pairwise(bounds))
    ]
    merge_segments(parts, folder / "merged")
    assert contents(folder / "merged") == contents(folder / "whole")
    total = sum((part.frequencies() for part in parts), UnitFrequencies.fit([]))
    assert total.fingerprint() == whole.frequencies().fingerprint()


def test_dropping_documents_equals_never_having_had_them(documents: list[Document], tmp_path: Path) -> None:
    whole = build_segment(documents, tmp_path / "whole")
    kept = np.array([True, False, True, False, True])
    merge_segments([whole], tmp_path / "kept", [kept])
    build_segment([each for each, keep in zip(documents, kept, strict=True) if keep], tmp_path / "fresh")
    assert contents(tmp_path / "kept") == contents(tmp_path / "fresh")


def test_a_segment_counts_as_a_fit_does(documents: list[Document], folder: Path) -> None:
    texts = [text for each in documents for text in (each.title, *each.paragraph_texts())]
    fitted = UnitFrequencies.fit(texts)
    assert build_segment(documents, folder).frequencies().fingerprint() == fitted.fingerprint()


def test_a_merge_changes_no_score(documents: list[Document], tmp_path: Path) -> None:
    """Under one pinned idf, parts and whole agree to the last bit."""
    parts = [build_segment(documents[:2], tmp_path / "a"), build_segment(documents[2:], tmp_path / "b")]
    whole = merge_segments(parts, tmp_path / "whole")
    pinned = whole.frequencies()
    question = weigh_question("When was the Old Town of Warsaw rebuilt? album", pinned)
    separate = [Postings(part, compute_norms(part, pinned)) for part in parts]
    together = Postings(whole, compute_norms(whole, pinned))
    for scores in ("paragraph_scores", "document_scores"):
        apart = np.concatenate([getattr(each, scores)(question) for each in separate])
        assert apart.tolist() == getattr(together, scores)(question).tolist()


def test_norms_know_their_frequencies(retriever: SparseRetriever, folder: Path) -> None:
    segment, norms = retriever.postings.segment, retriever.postings.norms
    norms.save(folder)
    assert Norms.open(folder, segment, norms.fingerprint).fingerprint == retriever.frequencies.fingerprint()
    with pytest.raises(InputError, match="opened with 0123"):
        Norms.open(folder, segment, "0123")


def test_arrays_are_mapped_not_read(documents: list[Document], folder: Path) -> None:
    segment = build_segment(documents, folder)
    base = segment.postings.base
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap | mmap.mmap)
    assert not segment.postings.flags.writeable


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


FILES = [
    "postings",
    "overflow",
    "overflow_counts",
    "document_units",
    "unit_documents",
    "lengths-low",
    "lengths-small",
]
FILES += [
    "lengths-group_rows",
    "lengths-group_sums",
    "lengths-large_rows",
    "frequencies-units",
    "frequencies-low",
]
FILES += ["norms-units", "norms-documents"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["missing", "cut", "garbage", "empty", "other", "shorter"])
def test_damaged_files_are_named(documents: list[Document], folder: Path, name: str, how: str) -> None:
    SparseRetriever.build([*documents, *documents], folder)
    path = folder / f"{name}.npy"
    array = np.load(path)
    if how == "missing":
        path.unlink()
    elif how == "other":
        np.save(path, np.array(["a"]))
    elif how == "shorter" and len(array):
        np.save(path, array[:-1])
    else:
        changes = {"cut": lambda data: data[:-1], "garbage": lambda data: b"x" * len(data)}
        damage(path, changes.get(how, lambda _: b""))
    # Where two files disagree, either may be named.
    with pytest.raises(InputError, match="rebuild the sparse index" if how == "shorter" else name):
        SparseRetriever.open(folder)


@pytest.mark.parametrize("name", ["document_units", "lengths-group_rows", "lengths-group_sums"])
def test_offsets_must_ascend(documents: list[Document], folder: Path, name: str) -> None:
    SparseRetriever.build(documents, folder)
    array = np.load(folder / f"{name}.npy")
    array[len(array) // 2] = array[-1] + 1
    np.save(folder / f"{name}.npy", array)
    with pytest.raises(InputError, match=f"{name}.*ascend"):
        SparseRetriever.open(folder)


def test_pickles_are_refused(documents: list[Document], folder: Path) -> None:
    SparseRetriever.build(documents, folder)
    np.save(folder / "postings.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"postings\.npy"):
        SparseRetriever.open(folder)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Segment.open(tmp_path / "nowhere")


def test_postings_are_written_once(documents: list[Document], folder: Path) -> None:
    SparseRetriever.build(documents, folder)
    before = contents(folder)
    with pytest.raises(InputError, match="already holds postings"):
        SparseRetriever.build(documents[:1], folder)
    assert contents(folder) == before


def test_frequencies_of_another_index_are_refused(documents: list[Document], tmp_path: Path) -> None:
    SparseRetriever.build(documents, tmp_path / "one")
    SparseRetriever.build(documents[:2], tmp_path / "two")
    for path in (tmp_path / "two").glob("frequencies-*"):
        (tmp_path / "one" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="norms were computed with n-gram frequencies"):
        SparseRetriever.open(tmp_path / "one")


class UncheckedError(Exception):
    """Somebody is about to read postings."""


def test_every_way_to_the_postings_is_checked(
    documents: list[Document], folder: Path, tmp_path: Path
) -> None:
    """An index hands in a check of its checksums; no search, merge or fit may read past it."""
    frequencies = build_segment(documents, folder).frequencies()
    norms = compute_norms(Segment.open(folder), frequencies)

    def refuse(start: int, end: int) -> None:
        if end > start:
            raise UncheckedError

    segment = Segment.open(folder, refuse)
    question = weigh_question("the Old Town of Warsaw", frequencies)
    postings, compiled = Postings(segment, norms), Postings(segment, norms, compiled=True)
    every = np.arange(segment.document_count)
    readers: list[Callable[[], object]] = [
        lambda: postings.top_documents(question, 3),
        lambda: postings.top_paragraphs(question, 3),
        lambda: postings.top_paragraphs_by_both(question, 3),
        lambda: postings.document_scores(question),
        lambda: postings.paragraph_scores(question),
        lambda: compiled.top_paragraphs(question, 3),
        lambda: document_scores_of(postings, question, every),
        lambda: paragraph_scores_of(postings, question, every),
        lambda: explain_document(postings, question, 0),
        lambda: explain_paragraph(postings, question, 0),
        lambda: segment.counts_at(0, 1),
        lambda: compute_norms(segment, frequencies),
        lambda: merge_segments([segment], tmp_path / "merged"),
    ]
    for read in readers:
        with pytest.raises(UncheckedError):
            read()
