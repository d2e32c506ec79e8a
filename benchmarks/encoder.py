"""What the encoder costs beside the bare runtime, on one core, for each way of storing the weights.

The encoder adds word pieces, windows and rows of words to what onnxruntime computes; both get the same texts,
and take turns, so that a busy machine slows them alike. `--model` is a trained phrase model's folder, or an
encoder's, which is then wrapped as it is: speed does not depend on the weights. `--reading N` adds exact
match and F1 of a trained model on the first N questions, by which the way of storing is chosen.

    python benchmarks/encoder.py --model DIR --data ../shared/data/squad/dev-v1.1.json.gz --output FILE.json
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

import numpy as np

from denspi.corpus.squad import SquadParagraph, read_squad
from denspi.dense.backbone import load_backbone
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.export import Calibration, ExportSettings, trace_phrase_model, write_runtime
from denspi.dense.model import PhraseModel, PhraseSettings
from denspi.dense.model_folder import save_model
from denspi.dense.models import open_encoder
from denspi.dense.onnx_encoder import load_encoder, open_session
from denspi.evaluation.answering import PhraseAnswerer
from denspi.evaluation.reading import evaluate_reading, first_questions
from denspi.vectors import Floats
from machine import machine

ROUTES = {
    "float": (ExportSettings("float"), False),
    "int8": (ExportSettings("int8"), False),
    "int8, smoothed": (ExportSettings("int8"), True),
    "int8, smoothed, seven bits": (ExportSettings("int8", reduced_range=True), True),
    "blocks of 8 bits": (ExportSettings("blocks8"), False),
}
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", type=Path, required=True, help="a trained phrase model or an encoder folder"
    )
    parser.add_argument("--data", type=Path, required=True, help="a file in SQuAD's layout")
    parser.add_argument("--output", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--paragraphs", type=int, default=60, help="paragraphs encoded, spread over the file")
    parser.add_argument(
        "--reading", type=int, default=0, metavar="N", help="questions answered for EM and F1"
    )
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    articles = read_squad(arguments.data)
    everything = [p for a in articles for p in a.paragraphs]
    chosen = everything[:: max(1, len(everything) // arguments.paragraphs)][: arguments.paragraphs]
    others = [p for p in everything[7::97] if p not in chosen][:32]
    command = f"python benchmarks/encoder.py --model {arguments.model.name} --data {arguments.data.name}"
    results: dict[str, Any] = {
        "command": f"{command} --output {arguments.output.name} --paragraphs {arguments.paragraphs}",
        "machine": machine(("numpy", "onnxruntime", "tokenizers", "onnx", "torch"))
        | {"has_vnni": "vnni" in Path("/proc/cpuinfo").read_text()},
        "paragraphs": len(chosen),
        "routes": {},
    }
    with tempfile.TemporaryDirectory() as scratch:
        trained = arguments.model
        if not (trained / "model.json").is_file():
            trained = wrap(arguments.model, Path(scratch) / "trained")
        traced = trace_phrase_model(trained)
        texts = [p.context for p in chosen]
        right = [v.starts for v in open_encoder(trained).encode_paragraphs(texts)]
        for name, (settings, is_smoothed) in ROUTES.items():
            folder = Path(scratch) / name
            write_runtime(traced, folder, settings, calibration(others) if is_smoothed else Calibration())
            found = measure(folder, chosen, right)
            if arguments.reading:
                read = evaluate_reading(
                    PhraseAnswerer(load_encoder(folder)), first_questions(articles, arguments.reading)
                )
                found |= {"em": round(read.em, 2), "f1": round(read.f1, 2), "questions": read.questions}
            results["routes"][name] = found
            print(name, json.dumps(results["routes"][name]), flush=True)
    results["machine"]["load_average_at_end"] = os.getloadavg()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def wrap(encoder: Path, folder: Path) -> Path:
    save_model(PhraseModel(load_backbone(str(encoder)), PhraseSettings()), encoder / "tokenizer.json", folder)
    return folder


def calibration(paragraphs: list[SquadParagraph]) -> Calibration:
    return Calibration([p.context for p in paragraphs], [q.text for p in paragraphs for q in p.questions[:1]])


def measure(folder: Path, paragraphs: list[SquadParagraph], right: list[Floats]) -> dict[str, Any]:
    encoder = load_encoder(folder)
    texts = [p.context for p in paragraphs]
    questions = [q.text for p in paragraphs for q in p.questions[:3]]
    bare = open_session(folder / "model.onnx")
    question_feeds = [feed(encoder, text, 1) for text in questions]
    paragraph_feeds = [feed(encoder, text, 0) for text in texts]
    pieces = sum(each["ids"].size for each in paragraph_feeds)
    ask_ms: list[float] = []
    bare_ask_ms: list[float] = []
    bulk_s, bare_bulk_s = [], []
    vectors = list(encoder.encode_paragraphs(texts[:4]))  # warm
    for _ in range(ROUNDS):
        for question, given in zip(questions, question_feeds, strict=True):
            ask_ms.append(1000 * seconds(lambda q=question: encoder.encode_questions([q])))
            bare_ask_ms.append(1000 * seconds(lambda g=given: bare.run(None, g)))
        bulk_s.append(
            seconds(lambda: vectors.__setitem__(slice(None), list(encoder.encode_paragraphs(texts))))
        )
        bare_bulk_s.append(seconds(lambda: [bare.run(None, given) for given in paragraph_feeds]))
    bulk, bare_bulk = pieces / float(np.median(bulk_s)), pieces / float(np.median(bare_bulk_s))
    ask, bare_ask = float(np.median(ask_ms)), float(np.median(bare_ask_ms))
    words = sum(len(text.split()) for text in texts)
    return {
        "megabytes": round(sum(path.stat().st_size for path in folder.iterdir()) / 1e6, 1),
        "question_p50_ms": round(ask, 2),
        "question_p50_ms_bare": round(bare_ask, 2),
        "question_ratio": round(ask / bare_ask, 3),
        "tokens_per_s": round(bulk),
        "tokens_per_s_bare": round(bare_bulk),
        "bulk_share": round(float(np.median(np.array(bare_bulk_s) / np.array(bulk_s))), 3),
        "words_per_s": round(words / float(np.median(bulk_s))),
        "cosine_to_float": cosines([v.starts for v in vectors], right),
    }


def feed(encoder: PhraseEncoder, text: str, type_id: int) -> dict[str, Any]:
    """The bare runtime's input: what the encoder would make of a text of one window."""
    tokenizer = encoder.tokenizer
    limit = encoder.settings.question_pieces if type_id else encoder.settings.size
    ids = np.array([[tokenizer.cls_id, *tokenizer.ids_batch([text])[0][:limit], tokenizer.sep_id]], np.int64)
    return {"ids": ids, "mask": np.ones_like(ids), "types": np.full_like(ids, type_id)}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cosines(ours: list[Floats], right: list[Floats]) -> dict[str, float]:
    """Of the start vectors; a word that cannot start a phrase has none."""
    a, b = np.concatenate(ours), np.concatenate(right)
    there = np.abs(b).max(axis=1) > 0
    a, b = a[there], b[there]
    found = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return {
        "mean": round(float(found.mean()), 5),
        "first_percentile": round(float(np.quantile(found, 0.01)), 5),
    }


if __name__ == "__main__":
    main()
