"""What the sparse layer's definitions were chosen by: gold paragraphs of held-out *train* questions.

    python experiments/sparse_choices.py --data ../shared/data --output docs/results/sparse-choices.json

Compares ways to form word pairs, what idf counts, DrQA's idf with ours, and where the title goes, by the
rank of the gold paragraph among all paragraphs of SQuAD train. Slow and plain on purpose: scipy matrices
over word strings, without hashing, sharing only words and stop words with `denspi.sparse`. Dev is not read.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from denspi.corpus import read_squad
from denspi.sparse.ngrams import words
from denspi.sparse.stopwords import STOP_WORDS
from denspi.training.examples import is_held_out

Vocabulary = dict[tuple[str, ...], int]


def unigrams(found: list[str]) -> list[tuple[str, ...]]:
    return [(word,) for word in found if word not in STOP_WORDS]


def no_stop_word_in_a_pair(found: list[str]) -> list[tuple[str, ...]]:
    return unigrams(found) + [pair for pair in pairwise(found) if not STOP_WORDS & set(pair)]


def no_pair_of_two_stop_words(found: list[str]) -> list[tuple[str, ...]]:
    return unigrams(found) + [pair for pair in pairwise(found) if not set(pair) <= STOP_WORDS]


def neighbours_without_stop_words(found: list[str]) -> list[tuple[str, ...]]:
    kept = [word for word in found if word not in STOP_WORDS]
    return unigrams(found) + list(pairwise(kept))


PAIRS = (unigrams, no_stop_word_in_a_pair, no_pair_of_two_stop_words, neighbours_without_stop_words)


def drqa_idf(total: int, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(0, np.log((total - frequency + 0.5) / (frequency + 0.5)))


def our_idf(total: int, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log1p((total - frequency + 0.5) / (frequency + 0.5))


def counted(texts: Iterable[str], ngrams: Callable[[list[str]], list[tuple[str, ...]]], known: Vocabulary):
    """``[text, ngram]`` counts; n-grams not yet known get the next number."""
    rows, columns, counts = [], [], []
    texts = list(texts)
    for row, text in enumerate(texts):
        for ngram, count in Counter(ngrams(words(text))).items():
            rows.append(row)
            columns.append(known.setdefault(ngram, len(known)))
            counts.append(count)
    return sparse.csr_matrix((np.array(counts, float), (rows, columns)), shape=(len(texts), len(known)))


def widened(matrix, width: int):
    return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def weighed(counts, idf: NDArray[np.float64]):
    """log1p(count) * idf, every row of unit length."""
    weights = (counts.log1p() @ sparse.diags(idf)).tocsr()
    lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(1)).ravel())
    return sparse.diags(1 / np.where(lengths > 0, lengths, 1)) @ weights


def shares(scores: NDArray[np.float64], gold: NDArray[np.int64]) -> dict[str, float]:
    """Percent of questions whose gold paragraph is among the first 1, 5 and 20."""
    better = (scores > scores[np.arange(len(gold)), gold][:, None]).sum(1)
    return {f"top_{k}": round(100 * float(np.mean(better < k)), 2) for k in (1, 5, 20)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    articles = read_squad(arguments.data / "squad" / "train-v1.1.json.gz")
    titles = [article.title.replace("_", " ") for article in articles]
    paragraphs, document, questions, gold = [], [], [], []
    for number, article in enumerate(articles):
        for paragraph in article.paragraphs:
            if is_held_out(article.title, 0.05):
                questions += [question.text for question in paragraph.questions]
                gold += [len(paragraphs)] * len(paragraph.questions)
            paragraphs.append(paragraph.context)
            document.append(number)
    documents, gold_rows = np.array(document), np.array(gold)
    belongs = sparse.csr_matrix((np.ones(len(document)), (document, range(len(document)))))
    rows = []
    for ngrams in PAIRS:
        known: Vocabulary = {}
        text = counted(paragraphs, ngrams, known)
        distinct = len(known)
        title, asked = counted(titles, ngrams, known), counted(questions, ngrams, known)
        text, title = widened(text, len(known)), widened(title, len(known))
        whole = (belongs @ text + title).tocsr()
        for unit, counts in (("paragraphs", text), ("documents", belongs @ text)):
            frequency = np.asarray((counts > 0).sum(0), dtype=float).ravel()
            for idf in (our_idf, drqa_idf):
                weights = idf(counts.shape[0], frequency)
                question = weighed(asked, weights)
                by_paragraph = (question @ weighed(text, weights).T).toarray()
                by_document = (question @ weighed(whole, weights).T).toarray()[:, documents]
                titled = (question @ weighed(text + title[documents], weights).T).toarray()
                row = {
                    "pairs": ngrams.__name__,
                    "frequency_over": unit,
                    "idf": idf.__name__,
                    "postings": text.nnz,
                    "distinct": distinct,
                    "paragraph": shares(by_paragraph, gold_rows),
                    "paragraph_and_document": shares(by_paragraph + by_document, gold_rows),
                    "titled_paragraph_and_document": shares(titled + by_document, gold_rows),
                }
                rows.append(row)
                print(json.dumps(row), flush=True)
    options = f"--data {arguments.data} --output {arguments.output}"
    result = {
        "command": f"python experiments/sparse_choices.py {options}",
        "questions": len(questions),
        "articles_asked_about": len(set(documents[gold_rows].tolist())),
        "paragraphs": len(paragraphs),
        "rows": rows,
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
