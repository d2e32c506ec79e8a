"""Memory stays flat: files of very different size are read at about the same peak."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

PROGRAM = """
import resource, sys
from denspi.corpus import CorpusReport, read_corpus_by_path
report = CorpusReport.of_paths(sys.argv[1:])
for place, item in read_corpus_by_path(sys.argv[1:]):
    report.add(place, item)
assert not report.skipped, report.skipped[:3]
print(report.total.words, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
ALLOWED_GROWTH_KB = 48 * 1024
PARAGRAPH = "Rivers carry sand and silt down to the sea, where they build deltas. " * 12
PAGE = (
    f"<page><title>Page %d</title><ns>0</ns><id>%d</id><revision><text>{PARAGRAPH}</text></revision></page>\n"
)


def lines(count: int) -> Iterable[str]:
    return (json.dumps({"id": number, "text": PARAGRAPH}) + "\n" for number in range(count))


def paragraphs(count: int) -> Iterable[str]:
    return (f"{number} {PARAGRAPH}\n\n" for number in range(count))


def pages(count: int) -> Iterable[str]:
    yield "<mediawiki>\n"
    yield from (PAGE % (number, number) for number in range(count))
    yield "</mediawiki>\n"


def words_and_peak_kb(path: Path) -> tuple[int, int]:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    words, peak_kb = finished.stdout.split()
    return int(words), int(peak_kb)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "small", "large"),
    [
        ("a.txt", paragraphs, 12_000, 240_000),  # 10 MB, 200 MB
        ("a.jsonl.gz", lines, 6_000, 120_000),  # 5 MB, 100 MB
        ("a.xml", pages, 1_000, 10_000),
    ],
)
def test_peak_memory(name: str, content: Callable, small: int, large: int, tmp_path: Path) -> None:
    measured = []
    for count in (small, large):
        path = tmp_path / f"{count}-{name}"
        with gzip.open(path, "wt", compresslevel=1) if name.endswith(".gz") else path.open("w") as file:
            file.writelines(content(count))
        measured.append(words_and_peak_kb(path))
        path.unlink()
    (small_words, small_kb), (large_words, large_kb) = measured
    assert large_words > 9 * small_words
    assert large_kb - small_kb < ALLOWED_GROWTH_KB, (small_kb, large_kb)
