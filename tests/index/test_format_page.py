"""A second reader, written from docs/index-format.md alone with the standard library: it reads the same."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.index.made import COMPACT, MODEL, build, make

from denspi.index import IndexWriter, MergePolicy, ModelRecord, Snapshot, WriterSettings
from denspi.sparse.ngrams import count_ngrams

NUMPY_KINDS = {b"|u1": "B", b"<u2": "H", b"<u4": "I", b"<u8": "Q", b"<f4": "f"}
FORMATS = {"int8": "b", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "float32": "f"}


class PlainPart:
    """A part, every checksum of it checked."""

    def __init__(self, folder: Path, reference: dict[str, Any]) -> None:
        table = (folder / reference["folder"] / "table.json").read_bytes()
        assert len(table) == reference["table_bytes"]
        assert hashlib.sha256(table).hexdigest() == reference["table_sha256"]
        self.shapes: dict[str, list[int]] = {}
        self._content: dict[str, bytes] = {}
        self._types: dict[str, str] = {}
        for component in json.loads(table)["components"]:
            name = component["name"]
            content = (folder / reference["folder"] / name).read_bytes()
            assert len(content) == component["bytes"]
            blocks = [content[begin : begin + 32768] for begin in range(0, len(content), 32768)]
            assert "".join(f"{zlib.crc32(block):08x}" for block in blocks) == component["checksums"]
            self._content[name], self._types[name] = content, FORMATS[component["dtype"]]
            self.shapes[name] = component["shape"]

    def values(self, name: str) -> tuple[int, ...]:
        kind = self._types[name]
        content = self._content[name]
        return struct.unpack(f"<{len(content) // struct.calcsize(kind)}{kind}", content)

    def array(self, name: str) -> tuple[int, ...]:
        """One dimension in NumPy's format 1.0."""
        content = self._content[name]
        assert content[:8] == b"\x93NUMPY\x01\x00"
        begin = 10 + struct.unpack("<H", content[8:10])[0]
        kind = NUMPY_KINDS[re.search(rb"'descr': '(.*?)'", content[10:begin])[1]]  # type: ignore[index]
        return struct.unpack(f"<{(len(content) - begin) // struct.calcsize(kind)}{kind}", content[begin:])

    def kind(self, name: str) -> str:
        return next(dtype for dtype, kind in FORMATS.items() if kind == self._types[name])

    def stream(self, name: str) -> bytes:
        return self._content[name]


@pytest.mark.parametrize("model", [MODEL, COMPACT], ids=["int8", "compact"])
def test_a_plain_reader_finds_everything(tmp_path: Path, model: ModelRecord) -> None:
    folder = tmp_path / "index"
    build(folder, [make(n, words=40, model=model) for n in range(20)], model=model)
    with IndexWriter.open(folder, settings=WriterSettings(policy=MergePolicy(fanout=100))) as writer:
        writer.update(*make(3, version=1, model=model))
        writer.commit()
    spelled = (folder / "manifest.json").read_bytes()
    manifest = json.loads(spelled)
    body = json.dumps(manifest["content"], sort_keys=True, separators=(",", ":")).encode()
    assert spelled[len(b'{"content":') : -77] == body
    assert hashlib.sha256(body).hexdigest() == manifest["sha256"]
    assert manifest["content"]["format"] == 1
    told = manifest["content"]["model"]
    is_compact = told["precision"] == "compact"
    kind, width, key_width = (
        ("uint8", told["vector_bytes"], told["key_bytes"])
        if is_compact
        else ("int8", told["vector_dim"], told["coherency_dim"])
    )
    found = 0
    for entry in manifest["content"]["segments"]:
        part = PlainPart(folder, entry["rows"])
        PlainPart(folder, entry["norms"])
        for side in ("start", "end"):
            assert part.kind(f"{side}s") == part.kind(f"{side}_keys") == kind
            assert part.shapes[f"{side}s"] == [entry["counts"][f"{side}s"], width]
            assert part.shapes[f"{side}_keys"] == [entry["counts"][f"{side}s"], key_width]
        deleted = (
            set(PlainPart(folder, entry["tombstones"]).values("deleted")) if entry["tombstones"] else set()
        )
        texts, records = part.stream("texts"), part.stream("records")
        for document in range(entry["counts"]["documents"]):
            record = records[slice(*part.values("record_bytes")[document : document + 2])]
            document_id, title, source, metadata = json.loads(record)
            hashed = int.from_bytes(hashlib.blake2b(document_id.encode(), digest_size=8).digest(), "little")
            assert part.values("id_documents")[part.values("id_hashes").index(hashed)] == document
            if document in deleted:
                continue
            found += 1
            expected, rows = make(metadata["number"], words=40, model=model)
            if metadata["version"]:
                expected, rows = make(metadata["number"], version=metadata["version"], model=model)
            assert (document_id, title, source) == (expected.document_id, expected.title, expected.source)
            text = texts[slice(*part.values("document_bytes")[document : document + 2])]
            assert text.decode() == expected.text
            first, last = part.values("document_paragraphs")[document : document + 2]
            for paragraph, own, span in zip(range(first, last), rows, expected.paragraphs, strict=True):
                assert part.values("paragraph_words")[paragraph] == own.word_count
                chars = part.values("paragraph_chars")[2 * paragraph : 2 * paragraph + 2]
                assert chars == (span.start_char, span.end_char)
                in_bytes = slice(*part.values("paragraph_bytes")[2 * paragraph : 2 * paragraph + 2])
                assert text[in_bytes].decode() == span.of(expected.text)
                for side in ("start", "end"):
                    begin, end = part.values(f"paragraph_{side}s")[paragraph : paragraph + 2]
                    for what in ("words", "chars", "keys"):
                        array = getattr(own, f"{side}_{what}")
                        size = array.shape[1] if array.ndim > 1 else 1
                        stored = part.values(f"{side}_{what}")[begin * size : end * size]
                        assert list(stored) == array.ravel().tolist()
                    codes = part.values(f"{side}s")[begin * width : end * width]
                    assert list(codes) == getattr(own, f"{side}s").ravel().tolist()
    assert found == Snapshot.open(folder).live.documents == 20


class PlainTable:
    """docs/sparse.md, "The stored segment": n-gram ids to counts, and where the list of each begins."""

    def __init__(self, part: PlainPart, name: str) -> None:
        low, small = part.array(f"{name}-low.npy"), part.array(f"{name}-small.npy")
        rows, sums = part.array(f"{name}-group_rows.npy"), part.array(f"{name}-group_sums.npy")
        large = part.array(f"{name}-large_rows.npy"), part.array(f"{name}-large_counts.npy")
        counts = list(small)
        for row, count in zip(*large, strict=True):
            assert counts[row] == 255
            counts[row] = count
        low_bits = 16 if len(rows) == 257 else 8
        self.counts: dict[int, int] = {}
        self.places: dict[int, int] = {}
        for group, (first, last) in enumerate(pairwise(rows)):
            place = sums[group]
            for row in range(first, last):
                self.counts[group << low_bits | low[row]] = counts[row]
                self.places[group << low_bits | low[row]] = place
                place += counts[row]

    def fingerprint(self, units: int) -> str:
        ids, counts = list(self.counts), list(self.counts.values())
        said = f"denspi-ngrams-1\0{units}\0{len(ids)}\0".encode()
        said += struct.pack(f"<{len(ids)}I", *ids) + struct.pack(f"<{len(ids)}I", *counts)
        return hashlib.sha256(said).hexdigest()[:16]


def ngrams_of(text: str) -> dict[int, int]:
    counted = count_ngrams(text)
    return dict(zip(counted.ids.tolist(), counted.counts.tolist(), strict=True))


def test_a_plain_reader_finds_the_words_of_every_unit(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    documents = [make(n, words=40)[0] for n in range(12)]
    build(folder, [make(n, words=40) for n in range(12)])
    content = json.loads((folder / "manifest.json").read_bytes())["content"]
    fit = PlainPart(folder, content["fit"]["part"])
    (units,) = fit.array("frequencies-units.npy")
    frequencies = PlainTable(fit, "frequencies")
    assert frequencies.fingerprint(units) == content["fit"]["fingerprint"]
    (entry,) = content["segments"]
    rows = PlainPart(folder, entry["rows"])
    lists, postings = PlainTable(rows, "lengths"), rows.array("postings.npy")
    many = dict(zip(rows.array("overflow.npy"), rows.array("overflow_counts.npy"), strict=True))
    found: list[Counter[int]] = [Counter() for _ in range(units)]
    for ngram, length in lists.counts.items():
        for place in range(lists.places[ngram], lists.places[ngram] + length):
            found[postings[place] >> 6][ngram] = many.get(place, postings[place] & 63)
    texts = [text for each in documents for text in (each.title, *each.paragraph_texts())]
    assert found == [ngrams_of(text) for text in texts]
    assert frequencies.counts == lists.counts  # one segment, fitted whole
