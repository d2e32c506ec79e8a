"""Bytes a word, exact match and latency of the whole product, over all articles of SQuAD at once.

    python experiments/compact/all_articles.py --data DATA --scratch SCRATCH

Encodes train and dev once (into SCRATCH, 4.5 GB of floats, 490 articles; run again to go on after an
interruption), makes three indexes of them without encoding again (int8 without a filter, int8 as by default,
compact) and puts the same dev questions, evenly spread, to each of them and to the unfiltered floats: open
setting, hybrid, the model's own sparse weight. Dev is only measured here, nothing is chosen by it. Writes
index-size-all.json and the page.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import render
from float_search import FloatSearch, Rows
from stored_vectors import StoredVectors, encode_once, read_documents

from denspi import Index, Searcher
from denspi.build.index import SEGMENT_WORDS
from denspi.build.lists import attach_missing_lists
from denspi.build.model import IndexModel, model_for_new_index
from denspi.build.rows import rows_of
from denspi.corpus.squad import SquadQuestion, read_squad
from denspi.dense.encoder import PhraseEncoder
from denspi.evaluation.open import asked_questions
from denspi.index.writer import IndexWriter, WriterSettings
from denspi.search.candidates import Limits
from denspi.text.answers import exact_match, f1

KINDS = {  # name -> precision, and whether the model's filter is used
    "int8, no filter": ("int8", False),
    "int8 (default)": ("int8", True),
    "compact": ("compact", True),
}
CHECKED_QUESTIONS = 100
LIMITS = Limits()
Found = list[tuple[int, int, int, str]]  # paragraph, first and last character, text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with squad/")
    parser.add_argument("--scratch", type=Path, required=True, help="a folder for vectors and indexes")
    parser.add_argument("--model", default="small")
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--articles", type=int, help="only the last so many: to try it out")
    parser.add_argument("--output", type=Path, default=Path("docs/results/index-size-all.json"))
    arguments = parser.parse_args()
    squad = arguments.data / "squad"
    models = {precision: model_for_new_index(arguments.model, precision) for precision in ("int8", "compact")}
    documents = read_documents([squad / "train-v1.1.json.gz", squad / "dev-v1.1.json.gz"], arguments.articles)
    stored = encode_once(models["int8"], documents, arguments.scratch / "vectors")
    encoder = models["int8"].encoder()
    folders = {}
    for name, (precision, is_filtered) in KINDS.items():
        folders[name] = arguments.scratch / f"{precision}-{'filtered' if is_filtered else 'all'}"
        build(folders[name], models[precision], stored, encoder, is_filtered)
    titles = {each.title for each in documents}
    asked = [q for title, _, q in asked_questions(read_squad(squad / "dev-v1.1.json.gz")) if title in titles]
    questions = [asked[n] for n in np.linspace(0, len(asked) - 1, arguments.questions).astype(int)]
    result = measure(stored, folders, questions, encoder) | {
        "command": "python experiments/compact/all_articles.py --data DATA --scratch SCRATCH",
        "model": arguments.model,
        "fingerprint": models["int8"].record.fingerprint,
        "machine": machine(),
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    print(render.all_articles(result))
    if (page := arguments.output.with_name("index-size.json")).exists():
        render.write(page)


def build(
    folder: Path, model: IndexModel, stored: StoredVectors, encoder: PhraseEncoder, is_filtered: bool
) -> None:
    """The index that `denspi index` would make, from vectors that are there."""
    if not (folder / "manifest.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        codec, thresholds = model.codec(), encoder.filter_thresholds if is_filtered else None
        settings = WriterSettings(flush_words=SEGMENT_WORDS)
        with IndexWriter.create(folder, model.record, settings=settings) as writer:
            for number, (document, vectors) in enumerate(stored.of_documents(), 1):
                writer.add(document, [rows_of(each, thresholds, codec) for each in vectors])
                print(f"\r{folder.name}: {number}/{len(stored.documents)} documents ", end="", flush=True)
            print("and the commit")
            writer.commit()
    attach_missing_lists(folder, model.codec)


def measure(
    stored: StoredVectors, folders: dict[str, Path], questions: list[SquadQuestion], encoder: PhraseEncoder
) -> dict:
    """All points, floats first."""
    searchers = {name: Searcher(Index.open(folder)) for name, folder in folders.items()}
    unfiltered = searchers["int8, no filter"]
    search, texts = FloatSearch(stored, unfiltered.view), [each.text for each in questions]
    vectors = encoder.encode_questions(texts)
    asked = [unfiltered.asked(text) for text in texts]
    floats = Rows(*(stored.words[name] for name in ("starts", "ends", "start_keys", "end_keys")))
    found: dict[str, Found] = {"float, no filter": search.answers(vectors, asked, floats, LIMITS)}
    by_index, milliseconds = ask_in_turns(searchers, texts)
    found |= by_index
    info = Index.open(folders["int8, no filter"]).info()
    words, width = info.words, floats.starts.shape[1] + floats.start_keys.shape[1]
    row_bytes = {"float, no filter": 4 * width * (info.starts + info.ends)}
    rest = info.bytes - width * (info.starts + info.ends)
    sizes = {name: Index.open(folder).info().bytes for name, folder in folders.items()}
    sizes["float, no filter"] = row_bytes["float, no filter"] + rest
    points = [
        point(name, answers, found["float, no filter"], questions)
        | {"bytes": sizes[name], "bytes_a_word": sizes[name] / words, "latency_ms": milliseconds.get(name)}
        for name, answers in found.items()
    ]
    return {
        "articles": len(stored.documents),
        "paragraphs": len(stored.lengths),
        "words": words,
        "words_and_signs": info.words_and_signs,
        "questions": len(questions),
        "sparse_weight": unfiltered.sparse_weight,
        "points": points,
        "check": check(search, unfiltered, stored, vectors, asked, by_index["int8, no filter"]),
    }


def ask_in_turns(
    searchers: dict[str, Searcher], texts: list[str]
) -> tuple[dict[str, Found], dict[str, dict[str, float]]]:
    """Every question of every index, one by one and by turns, from text to five answers."""
    found: dict[str, Found] = {name: [] for name in searchers}
    taken: dict[str, list[float]] = {name: [] for name in searchers}
    for searcher in searchers.values():
        for text in texts[:5]:  # loads and compiles
            searcher.ask(text)
    for number, text in enumerate(texts, 1):
        for name, searcher in searchers.items():
            began = time.perf_counter()
            answers = searcher.ask(text, limits=None).answers
            taken[name].append(1000 * (time.perf_counter() - began))
            found[name].append(placed(searcher, answers[0]) if answers else (-1, 0, 0, ""))
        print(f"\rasked {number}/{len(texts)} questions ", end="", flush=True)
    print()
    quantiles = {"median": 50, "p95": 95}
    return found, {
        name: {q: float(np.percentile(each, at)) for q, at in quantiles.items()}
        for name, each in taken.items()
    }


def placed(searcher: Searcher, answer) -> tuple[int, int, int, str]:
    """An answer by the number of its paragraph in the whole corpus."""
    reader = searcher.view.segments[0].reader
    first = int(reader.document_paragraphs[reader.find(answer.document_id)])
    begin = reader.paragraph_span(first + answer.paragraph).start_char
    return (
        first + answer.paragraph,
        answer.span.start_char - begin,
        answer.span.end_char - begin,
        answer.text,
    )


def point(name: str, answers: Found, floats: Found, questions: list[SquadQuestion]) -> dict:
    """How often it is right, and how it differs from floats."""
    references = [[answer.text for answer in each.answers] for each in questions]
    right, exact = (
        np.array([exact_match(each[3], refs) for each, refs in zip(given, references, strict=True)], bool)
        for given in (answers, floats)
    )
    return {
        "code": name,
        "open_em": 100 * float(right.mean()),
        "open_f1": 100 * float(np.mean([f1(a[3], r) for a, r in zip(answers, references, strict=True)])),
        "lost": int((exact & ~right).sum()),
        "gained": int((right & ~exact).sum()),
        "same_answer": 100 * float(np.mean([a == b for a, b in zip(answers, floats, strict=True)])),
    }


def check(search, searcher: Searcher, stored: StoredVectors, vectors, asked, by_index: Found) -> dict:
    """The float search on rows that an int8 index gives back, against the product on that index."""
    codec, words = searcher.view.codec, stored.words
    count, some = CHECKED_QUESTIONS, slice(0, CHECKED_QUESTIONS)
    names = {"starts": "start", "ends": "end", "start_keys": "start_key", "end_keys": "end_key"}
    rows = Rows(**{name: Decoded(words[name], getattr(codec, code)) for name, code in names.items()})
    few = type(vectors)(vectors.starts[some], vectors.ends[some], vectors.coherency[some])
    found = search.answers(few, asked[some], rows, LIMITS)
    same = [a == b for a, b in zip(found, by_index[some], strict=True)]
    return {"questions": min(count, len(asked)), "same_answer": 100 * float(np.mean(same))}


class Decoded:
    """Rows as a code gives them back, decoded where they are looked at."""

    def __init__(self, rows: np.ndarray, code) -> None:
        self._rows, self._code, self.shape = rows, code, rows.shape

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, chosen) -> np.ndarray:
        return self._code.decode(self._code.encode(np.asarray(self._rows[chosen])))


def machine() -> dict:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": names[0].split(":")[1].strip() if names else "unknown",
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[1],
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


if __name__ == "__main__":
    main()
