"""A word is held where a text has it, whatever has its id."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
from tests.index.made import build, make_document, make_rows

from denspi.index import Snapshot
from denspi.search.held_words import holds_word
from denspi.sparse.ngrams import hash_word, unigram_id, words

TEXTS = ["John rode to Panama", "the Café of Saint John"]
ALIKE = {"john": "benedivt", "panama": "bmlieved"}
"""Words of one id, found by trying."""


def test_words_of_texts_and_titles_and_no_others(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    made = [
        (make_document(f"n{number}", [text]), [make_rows(text, generator)])
        for number, text in enumerate(TEXTS)
    ]
    build(tmp_path / "index", made)
    with closing(Snapshot.open(tmp_path / "index")) as snapshot:
        for word in {*words(" ".join(TEXTS)), "title", "n1"} - {"the", "to", "of"}:
            assert holds_word(snapshot, word), word
        for word, other in ALIKE.items():
            assert unigram_id(hash_word(word)) == unigram_id(hash_word(other))
            assert not holds_word(snapshot, other)
        assert not holds_word(snapshot, "nowhere")
