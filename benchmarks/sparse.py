"""Speed, size and quality of the sparse layer beside scipy and bm25s, all in one run on one core.

The systems take turns, a hundred questions each, so that a busy machine slows all of them alike.
Writes the figures as JSON and, beside it, the same as a page of tables.

    python benchmarks/sparse.py --data ../shared/data --output docs/results/sparse.json
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import numba
import numpy as np
from scipy.sparse import csr_matrix

from denspi.corpus import read_corpus, read_squad
from denspi.sparse import (
    Hits,
    Postings,
    Segment,
    SparseRetriever,
    UnitFrequencies,
    build_segment,
    compute_norms,
)
from denspi.sparse.layout import COUNT_BITS
from denspi.sparse.ngrams import BUCKETS
from denspi.types import Document
from machine import machine

K = 10
ROUND = 100  # questions put to one system before the next has its turn
SLOW = ("scipy CSR times vector, paragraphs", "bm25s numpy, paragraphs")  # two rounds are enough
Ask = Callable[[str], Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/ and wikipedia/")
    parser.add_argument(
        "--output", type=Path, required=True, help="the JSON file to write; a .md goes beside it"
    )
    parser.add_argument("--questions", type=int, default=1000, help="questions timed, from SQuAD dev")
    arguments = parser.parse_args()
    numba.set_num_threads(1)  # everything else here runs on one core by itself
    squad_files = [arguments.data / "squad" / f"{part}-v1.1.json.gz" for part in ("dev", "train")]
    asked = [
        (question.text, paragraph.context)
        for article in read_squad(squad_files[0])
        for paragraph in article.paragraphs
        for question in paragraph.questions
    ]
    every = max(1, len(asked) // arguments.questions)
    timed = [text for text, _ in asked[::every]][: arguments.questions]
    squad, wikipedia = documents_of(squad_files), documents_of([arguments.data / "wikipedia"])
    results: dict[str, Any] = {
        "machine": machine(("numpy", "scipy", "bm25s", "numba")),
        "k": K,
        "questions_timed": len(timed),
        "collections": {},
    }
    with tempfile.TemporaryDirectory() as scratch:
        results["collections"]["SQuAD articles"] = measure(squad, Path(scratch) / "squad", timed, asked)
        results["collections"]["Wikipedia"] = measure(wikipedia, Path(scratch) / "wikipedia", timed, [])
    results["machine"]["load_average_at_end"] = os.getloadavg()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    arguments.output.with_suffix(".md").write_text(render(results), encoding="utf-8")


def measure(
    documents: list[Document], folder: Path, timed: list[str], asked: list[tuple[str, str]]
) -> dict[str, Any]:
    texts = [text for each in documents for text in each.paragraph_texts()]
    words = sum(len(text.split()) for text in texts)
    segment, build_s = clocked(lambda: build_segment(documents, folder))
    frequencies = segment.frequencies()
    norms, norms_s = clocked(lambda: compute_norms(segment, frequencies))
    frequencies.save(folder)
    norms.save(folder)
    retriever = SparseRetriever.open(folder)
    postings, compiled = retriever.postings, Postings(segment, norms, compiled=True)
    matrix = by_paragraph(segment, frequencies, norms.units)
    bm25, bm25_build_s = clocked(lambda: bm25_index(texts, "numpy"))
    bm25_fast = bm25_index(texts, "numba")
    systems: dict[str, Ask] = {
        "denspi, paragraphs": lambda text: postings.top_paragraphs(retriever.weigh(text), K),
        "denspi compiled, paragraphs": lambda text: compiled.top_paragraphs(retriever.weigh(text), K),
        "denspi, documents": lambda text: retriever.top_documents(text, K),
        "denspi, paragraphs by both": lambda text: retriever.top_paragraphs(text, K),
        "scipy CSR times vector, paragraphs": csr_times_vector(matrix, retriever),
        "scipy question times CSC, paragraphs": question_times_columns(matrix, retriever),
        "bm25s numpy, paragraphs": lambda text: bm25_ask(bm25, text, K),
        "bm25s numba, paragraphs": lambda text: bm25_ask(bm25_fast, text, K),
    }
    agree(systems, timed[:100])
    result = {
        "documents": len(documents),
        "paragraphs": len(texts),
        "words": words,
        "build_s": round(build_s, 2),
        "build_words_per_s": round(words / build_s),
        "norms_s": round(norms_s, 2),
        "bm25s_build_s": round(bm25_build_s, 2),
        "bm25s_build_words_per_s": round(words / bm25_build_s),
        "postings": len(segment.postings),
        "distinct_ngrams": len(segment.lengths),
        "bytes_per_word": {
            "postings": round(segment.nbytes / words, 3),
            "norms": round(norms.nbytes / words, 3),
            "frequencies": round(frequencies.table.nbytes / words, 3),
            "all files": round(sum(path.stat().st_size for path in folder.iterdir()) / words, 3),
        },
        "latency_ms": latencies(systems, timed),
    }
    if asked:
        places = {text: number for number, text in enumerate(texts)}
        gold = [places[context] for _, context in asked]
        questions = [text for text, _ in asked]
        rankers: dict[str, Callable[[str], Any]] = {
            "denspi, paragraph vector": lambda text: (
                postings.top_paragraphs(retriever.weigh(text), 20).numbers
            ),
            "denspi, paragraph + document": lambda text: retriever.top_paragraphs(text, 20).numbers,
            "bm25s": lambda text: bm25_ask(bm25_fast, text, 20)[0][0],
        }
        result["quality"] = {name: quality(rank, questions, gold) for name, rank in rankers.items()}
    return result


def documents_of(paths: list[Path]) -> list[Document]:
    return [item for item in read_corpus(paths) if isinstance(item, Document)]


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    done = work()
    return done, time.perf_counter() - start


def by_paragraph(segment: Segment, frequencies: UnitFrequencies, norms: np.ndarray) -> csr_matrix:
    """The same weights as one CSR matrix, [paragraph, n-gram]."""
    units = segment.postings >> COUNT_BITS
    ids, lengths = segment.lengths.ids(), segment.lengths.counts()
    idf = np.log1p((frequencies.unit_count - lengths + 0.5) / (lengths + 0.5))  # df is the length of the list
    weights = np.log1p(segment.counts_at(0, len(units))) * np.repeat(idf, lengths) * norms[units]
    whole = csr_matrix(
        (weights.astype(np.float32), (units, np.repeat(ids, lengths))), shape=(segment.unit_count, BUCKETS)
    )
    return whole[np.delete(np.arange(segment.unit_count), segment.document_units[:-1])]


def csr_times_vector(matrix: csr_matrix, retriever: SparseRetriever) -> Ask:
    vector = np.zeros(BUCKETS, np.float32)

    def ask(text: str) -> Hits:
        question = retriever.weigh(text)
        vector[question.ids] = question.weights
        scores = matrix @ vector
        vector[question.ids] = 0
        return best(scores)

    return ask


def question_times_columns(matrix: csr_matrix, retriever: SparseRetriever) -> Ask:
    """What DrQA does: a sparse question times the matrix stored by n-gram."""
    columns = matrix.T.tocsr()

    def ask(text: str) -> Hits:
        question = retriever.weigh(text)
        vector = csr_matrix(
            (question.weights.astype(np.float32), question.ids.astype(np.int32), [0, len(question.ids)]),
            shape=(1, BUCKETS),
        )
        found = vector @ columns
        hits = best(found.data)
        return Hits(found.indices[hits.numbers], hits.scores)

    return ask


def best(scores: np.ndarray) -> Hits:
    top = np.argpartition(scores, -K)[-K:] if len(scores) > K else np.arange(len(scores))
    order = top[np.argsort(-scores[top], kind="stable")]
    return Hits(order, scores[order])


def bm25_index(texts: list[str], backend: str) -> bm25s.BM25:
    index = bm25s.BM25(backend=backend)
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    return index


def bm25_ask(index: bm25s.BM25, text: str, k: int) -> Any:
    tokens = bm25s.tokenize([text], stopwords="en", return_ids=False, show_progress=False)
    return index.retrieve(tokens, k=k, show_progress=False)


def agree(systems: dict[str, Ask], questions: list[str]) -> None:
    """Stop if the rivals that should give the same scores do not."""
    for text in questions:
        ours = systems["denspi, paragraphs"](text).scores
        np.testing.assert_array_equal(systems["denspi compiled, paragraphs"](text).scores, ours)
        for name in ("scipy CSR times vector, paragraphs", "scipy question times CSC, paragraphs"):
            np.testing.assert_allclose(systems[name](text).scores[: len(ours)], ours, atol=1e-5)


def latencies(systems: dict[str, Ask], questions: list[str]) -> dict[str, dict[str, float]]:
    """Rounds of 100 questions, all systems in each: warm caches, and a busy minute slows everyone."""
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for start_question in range(0, len(questions), ROUND):
        for name, ask in systems.items():
            if name in SLOW and start_question >= 2 * ROUND:
                continue
            for text in questions[:10]:
                ask(text)
            for text in questions[start_question : start_question + ROUND]:
                start = time.perf_counter()
                ask(text)
                taken[name].append((time.perf_counter() - start) * 1000)
    return {
        name: {
            "p50": round(float(np.percentile(each, 50)), 3),
            "p95": round(float(np.percentile(each, 95)), 3),
            "questions": len(each),
        }
        for name, each in taken.items()
    }


def quality(rank: Callable[[str], Any], questions: list[str], gold: list[int]) -> dict[str, float]:
    ranks = []
    for text, right in zip(questions, gold, strict=True):
        place = np.flatnonzero(np.asarray(rank(text)) == right)
        ranks.append(int(place[0]) if len(place) else 1 << 30)
    return {f"top_{k}_percent": round(100 * float(np.mean(np.array(ranks) < k)), 2) for k in (1, 5, 20)}


def render(results: dict[str, Any]) -> str:
    about = results["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    lines = [
        "# Sparse layer: speed, size, quality",
        "",
        "Written by the command below; do not edit.",
        "",
        "```",
        "python benchmarks/sparse.py --data ../shared/data --output docs/results/sparse.json",
        "```",
        "",
        f"{about['date']}; {about['cpu']}, {about['cores']} cores, one used; load average"
        f" {about['load_average_at_start'][0]:.1f} at the start,"
        f" {about['load_average_at_end'][0]:.1f} at the end;"
        f" Python {about['python']}, {packages}; commit {about['commit']}.",
        "",
        f"Latency is from the question's text to the {results['k']} best, warm, over"
        f" {results['questions_timed']} questions of SQuAD dev (200 for the two slowest);"
        " the systems take turns, a hundred questions each.",
    ]
    for name, found in results["collections"].items():
        sizes = "; ".join(f"{part} {size}" for part, size in found["bytes_per_word"].items())
        slow = found["latency_ms"]["scipy CSR times vector, paragraphs"]["p50"]
        lines += ["", f"## {name}", ""]
        lines += [
            f"{found['documents']:,} documents, {found['paragraphs']:,} paragraphs, {found['words']:,} words,"
            f" {found['distinct_ngrams']:,} distinct n-grams, {found['postings']:,} postings.",
            "",
            f"- Build: {found['build_words_per_s']:,} words/s ({found['build_s']} s),"
            f" norms {found['norms_s']} s; bm25s {found['bm25s_build_words_per_s']:,} words/s.",
            f"- Bytes a word: {sizes}.",
            "",
            "| system | p50 ms | p95 ms | speed against CSR times vector (p50) |",
            "| --- | --- | --- | --- |",
        ]
        for system, ms in found["latency_ms"].items():
            lines.append(f"| {system} | {ms['p50']} | {ms['p95']} | {slow / ms['p50']:.1f}x |")
        if "quality" in found:
            lines += ["", "Gold paragraph of all SQuAD dev questions among all paragraphs, percent:", ""]
            lines += ["| system | top 1 | top 5 | top 20 |", "| --- | --- | --- | --- |"]
            for system, top in found["quality"].items():
                lines.append(f"| {system} | " + " | ".join(f"{value:.2f}" for value in top.values()) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
