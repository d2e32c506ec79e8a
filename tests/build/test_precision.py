"""Both precisions end to end: a phrase's score from the index is that of float vectors, within the error."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from tests.build.conftest import COMPACT_BYTES, make_documents
from tests.exported import QUESTIONS

from denspi import Index, cli
from denspi.build.encoding import encode_anywhere
from denspi.build.model import IndexModel, model_for_new_index
from denspi.build.rows import encode_rows
from denspi.build.workers import WorkerSettings
from denspi.dense.codec import RowCodec
from denspi.dense.compact import CompactQuantizer
from denspi.dense.compact_fit import compact_error
from denspi.dense.encoder import PhraseEncoder
from denspi.dense.filter import filtered
from denspi.dense.quantizer import Int8Code, Quantizer
from denspi.errors import ModelError
from denspi.index.rows import ParagraphRows
from denspi.search.scoring import phrase_scores
from denspi.vectors import MAX_PHRASE_WORDS, Floats, ParagraphVectors, QuestionVectors

HERE = WorkerSettings(processes=0)
DOCUMENTS = make_documents(12)


def build(folder: Path, model_folder: Path, precision: str) -> Path:
    with Index.create(folder, str(model_folder), precision=precision, workers=HERE) as index:
        index.add(DOCUMENTS)
        index.commit()
    return folder


@pytest.fixture(scope="module")
def indexes(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("indexes")
    return {name: build(folder / name, model_folder, name) for name in ("int8", "compact")}


@dataclass(frozen=True)
class Phrases:
    """All phrases of a stored paragraph: their rows, and their scores from codes and from floats."""

    rows: ParagraphRows
    vectors: ParagraphVectors
    starts: np.ndarray  # [phrase] row
    ends: np.ndarray  # [phrase] row
    stored: Floats  # [question, phrase]
    exact: Floats  # [question, phrase]


def all_phrases(folder: Path, codec: RowCodec, questions: QuestionVectors) -> Iterator[Phrases]:
    index = Index.open(folder)
    encoder, snapshot = index.encoder(), index.snapshot()
    assert encoder.filter_thresholds is not None
    for document in DOCUMENTS:
        place = snapshot.find(document.document_id)
        assert place is not None
        segment = snapshot.segments[place.segment]
        first = int(segment.document_paragraphs[place.document])
        encoded = encoder.encode_paragraphs(document.paragraph_texts())
        for paragraph, vectors in enumerate(encoded, start=first):
            rows = segment.rows_of(paragraph)
            start_words, end_words = rows.start_words.astype(int), rows.end_words.astype(int)
            more = end_words[None, :] - start_words[:, None]
            starts, ends = np.nonzero((more >= 0) & (more < MAX_PHRASE_WORDS))
            start = codec.start.inner_products(questions.starts, rows.starts)
            end = codec.end.inner_products(questions.ends, rows.ends)
            keys = codec.start_key.decode(rows.start_keys), codec.end_key.decode(rows.end_keys)
            coherency = (keys[0][starts] * keys[1][ends]).sum(1)
            stored = start[:, starts] + end[:, ends] + questions.coherency[:, None] * coherency
            band = phrase_scores(questions, filtered(vectors, encoder.filter_thresholds))
            exact = band[:, start_words[starts], more[starts, ends]]
            assert np.isfinite(band).sum() == exact.size  # no phrase was lost, and none was made up
            yield Phrases(rows, vectors, starts, ends, stored, exact)


def largest_errors(code: Int8Code, rows: Floats) -> Floats:
    """Of each value: half a step, and what lies beyond the range."""
    beyond = np.maximum(0, np.maximum(code.lowest - rows, rows - code.highest))
    return np.asarray(code.max_error + beyond)


def test_an_int8_score_is_within_the_quantizers_bound(indexes: dict[str, Path]) -> None:
    index = Index.open(indexes["int8"])
    codec, questions = index.model().codec(), index.encoder().encode_questions(QUESTIONS)
    assert isinstance(codec, Quantizer)
    shares = []
    for each in all_phrases(indexes["int8"], codec, questions):
        starts, ends = each.rows.start_words[each.starts], each.rows.end_words[each.ends]
        start_keys, end_keys = each.vectors.start_keys[starts], each.vectors.end_keys[ends]
        key_errors = (
            largest_errors(codec.start_key, start_keys),
            largest_errors(codec.end_key, end_keys),
        )
        bound = np.abs(questions.starts) @ largest_errors(codec.start, each.vectors.starts[starts]).T
        bound += np.abs(questions.ends) @ largest_errors(codec.end, each.vectors.ends[ends]).T
        coherency = (np.abs(start_keys) * key_errors[1] + np.abs(end_keys) * key_errors[0]).sum(1)
        coherency += (key_errors[0] * key_errors[1]).sum(1)
        bound += np.abs(questions.coherency)[:, None] * coherency
        error = np.abs(each.stored - each.exact)
        assert (error <= 1.001 * bound + 1e-4).all()
        shares.append((error / bound).ravel())
    assert np.concatenate(shares).max() > 0.1  # the bound says something


def test_a_compact_score_is_off_by_what_the_code_states(indexes: dict[str, Path]) -> None:
    """Start and end: by the measured share of their spread. Coherency: by half a step of either key."""
    index = Index.open(indexes["compact"])
    codec, questions = index.model().codec(), index.encoder().encode_questions(QUESTIONS)
    assert isinstance(codec, CompactQuantizer)
    found = list(all_phrases(indexes["compact"], codec, questions))
    for each in found:
        words = each.rows.start_words[each.starts].astype(int), each.rows.end_words[each.ends].astype(int)
        band = phrase_scores(questions, codec.stored(each.vectors))  # the same codes without an index
        np.testing.assert_allclose(each.stored, band[:, words[0], words[1] - words[0]], rtol=1e-4, atol=1e-4)
        for grid, rows, keys in (
            (codec.start_key, each.rows.start_keys, each.vectors.start_keys[each.rows.start_words]),
            (codec.end_key, each.rows.end_keys, each.vectors.end_keys[each.rows.end_words]),
        ):
            inside = keys.clip(grid.lowest, grid.lowest + 15 * grid.step)
            assert (np.abs(grid.decode(rows) - inside) <= 0.501 * grid.step + 1e-5).all()
    for side, asked in (("start", questions.starts), ("end", questions.ends)):
        code = getattr(codec, side)
        floats = np.concatenate(
            [getattr(p.vectors, f"{side}s")[getattr(p.rows, f"{side}_words")] for p in found]
        )
        codes = np.concatenate([getattr(p.rows, f"{side}s") for p in found])
        exact, error = asked @ floats.T, code.inner_products(asked, codes) - asked @ floats.T
        share = np.sqrt(error.var(axis=1).mean() / exact.var(axis=1).mean())
        assert share == pytest.approx(compact_error(code, floats, asked), rel=0.01)
        assert 0 < share < 0.1


def test_stored_bytes_mean_what_the_page_says(indexes: dict[str, Path], model_folder: Path) -> None:
    """docs/index-format.md, line by line, against what the codec decodes."""
    with np.load(model_folder / "compact.npz") as parameters:
        arrays = {name: parameters[name].tolist() for name in parameters.files}

    def components(kind: str, content: bytes) -> list[float]:
        lowest, step, wide = (arrays[f"{kind}_{part}"] for part in ("lowest", "step", "wide"))
        half = (len(step) - wide) // 2
        assert len(content) == wide + half
        codes = [0] * len(step)
        for i in range(wide):
            codes[i] = content[i]
        for i in range(half):
            codes[wide + i] = content[wide + i] & 0b1111
            codes[wide + half + i] = content[wide + i] >> 4
        return [lowest[k] + step[k] * c for k, c in enumerate(codes)]

    def vector(kind: str, content: bytes) -> list[float]:
        correction = 2 ** ((content[0] - 128) / 128)
        found = components(kind, content[1:])
        inverse = arrays[f"{kind}_inverse"]
        return [
            mean + correction * sum(found[k] * inverse[k][d] for k in range(len(found)))
            for d, mean in enumerate(arrays[f"{kind}_mean"])
        ]

    told = hashlib.sha256()
    with np.load(model_folder / "compact.npz") as parameters:
        for name in sorted(parameters.files):
            array = parameters[name]
            told.update(f"{name} {array.shape} {array.dtype.str} ".encode() + array.tobytes())
    index = Index.open(indexes["compact"])
    assert told.hexdigest() == index.snapshot().model.quantizer
    codec, segment = index.model().codec(), index.snapshot().segments[0]
    for side in ("start", "end"):
        rows = segment.starts if side == "start" else segment.ends
        codes, keys = rows.codes.rows(0, 20), rows.keys.rows(0, 20)
        right = [vector(side, row.tobytes()) for row in codes]
        np.testing.assert_allclose(getattr(codec, side).decode(codes), right, rtol=1e-4, atol=1e-4)
        right = [components(f"{side}_key", row.tobytes()) for row in keys]
        np.testing.assert_allclose(getattr(codec, f"{side}_key").decode(keys), right, rtol=1e-4, atol=1e-4)


def test_processes_give_the_same_compact_rows(compact_model: IndexModel, encoder: PhraseEncoder) -> None:
    texts = [text for document in DOCUMENTS for text in document.paragraph_texts()]
    settings = WorkerSettings(2, task_chars=1)
    found = list(encode_anywhere(compact_model, lambda: encoder, iter(texts), settings))
    for one, other in zip(found, encode_rows(encoder, texts, "compact"), strict=True):
        for name in ParagraphRows.__dataclass_fields__:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_the_command_and_the_life_of_a_compact_index(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, index = tmp_path / "docs", str(tmp_path / "index")
    docs.mkdir()
    for document in DOCUMENTS[:4]:
        (docs / f"{document.document_id}.txt").write_text(document.text)
    made = ["index", str(docs), "--output", index, "--model", str(model_folder), "--precision", "compact"]
    assert cli.run(made) == 0
    (docs / "more.txt").write_text("joon lives in graz .")
    assert cli.run(["add", index, str(docs / "more.txt")]) == 0
    (docs / "d0.txt").write_text("finn lives in nice .")
    assert cli.run(["update", index, str(docs)]) == 0
    assert cli.run(["merge", index]) == 0
    assert cli.run(["verify", index]) == 0
    capsys.readouterr()
    assert cli.run(["info", index]) == 0
    assert re.search(r"\([0-9a-f]{12}\),\s+compact", capsys.readouterr().out)
    assert cli.run(["info", index, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["precision"], found["documents"]) == ("compact", 5)
    assert found["bytes_by_component"]["start vectors"] == COMPACT_BYTES * found["starts"]
    assert found["bytes_by_component"]["coherency keys"] == 2 * (found["starts"] + found["ends"])


def test_a_model_without_a_compact_code_is_one_line(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = Path(shutil.copytree(model_folder, tmp_path / "older"))
    record = json.loads((older / "model.json").read_text())
    del record["files"]["compact.npz"]
    (older / "model.json").write_text(json.dumps(record))
    (older / "compact.npz").unlink()
    (tmp_path / "a.txt").write_text("joon lives in graz .")
    index = str(tmp_path / "index")
    given = ["index", str(tmp_path / "a.txt"), "--output", index, "--model", str(older)]
    assert cli.run([*given, "--precision", "compact"]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "older: has no compact.npz, which precision compact needs; choose int8, or a model" in line
    assert not (tmp_path / "index").exists()
    assert cli.run(given) == 0


def test_a_codec_that_is_not_the_indexs_own_is_refused(compact_model: IndexModel, tmp_path: Path) -> None:
    assert compact_model.codec().fingerprint == compact_model.record.quantizer
    finding = r"compact\.npz: not the one that the index was built with; copy the model again"
    others = (
        replace(compact_model.record, quantizer="0" * 64),
        replace(compact_model.record, vector_bytes=COMPACT_BYTES + 1),
    )
    for record in others:
        with pytest.raises(ModelError, match=finding):
            IndexModel(compact_model.folder, record).codec()
    folder = Path(shutil.copytree(compact_model.folder, tmp_path / "damaged"))
    with zipfile.ZipFile(folder / "compact.npz", "w"):
        pass
    with pytest.raises(ModelError, match=r"compact\.npz: not a compact code"):
        IndexModel(folder, compact_model.record).codec()
    with pytest.raises(ModelError, match=r"not the file that model\.json describes"):
        model_for_new_index(str(folder), "compact")
