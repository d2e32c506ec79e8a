"""The tiny encoder and facts, made once for a test session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.tiny import save_encoder, save_facts, save_tokenizer

from denspi.corpus.squad import read_squad
from denspi.text.tokens import Tokenizer
from denspi.training.examples import Example, Limits, make_examples


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `encoder`, `still` (the same without dropout) and `facts.json`."""
    folder = tmp_path_factory.mktemp("tiny")
    save_encoder(folder / "encoder")
    save_encoder(folder / "still", dropout=0.0)
    save_facts(folder / "facts.json", articles=40)
    return folder


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    save_tokenizer(path)
    return Tokenizer(path)


@pytest.fixture(scope="session")
def examples(tiny: Path, tokenizer: Tokenizer) -> list[Example]:
    return make_examples(read_squad(tiny / "facts.json"), tokenizer, Limits())


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Tiny models are faster so, and their sums do not depend on the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
