"""A tiny random encoder and a tiny set of facts, small enough to train on a CPU within a test."""

import json
import random
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing
from transformers import BertConfig, BertModel

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PEOPLE = ["ada", "bram", "cleo", "dov", "elif", "finn", "gita", "hugo", "iris", "joon"]
TOWNS = ["oslo", "lima", "riga", "bonn", "kyiv", "pisa", "york", "graz", "nice", "cork"]
JOBS = ["baker", "judge", "pilot", "nurse", "miner"]
QUESTIONS = ["who is it ?", "which town ?", "what job ?"]
WORDS = [
    "lives",
    "in",
    "and",
    "works",
    "as",
    "a",
    ".",
    "?",
    "who",
    "is",
    "it",
    "which",
    "town",
    "what",
    "job",
]


def save_tokenizer(path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PEOPLE, *TOWNS, *JOBS, *WORDS]
    pieces += [p for c in LETTERS for p in (c, f"##{c}") if p not in pieces]
    tokenizer = Tokenizer(WordPiece({p: n for n, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]"])
    # As the pretrained encoders are stored; whoever forgets to switch it off loses text.
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(path))


def save_encoder(folder: Path, seed: int = 0, hidden_size: int = 32, dropout: float = 0.1) -> None:
    folder.mkdir(parents=True)
    save_tokenizer(folder / "tokenizer.json")
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size(),
        hidden_size=hidden_size,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    BertModel(config).save_pretrained(folder)


def save_facts(path: Path, articles: int, seed: int = 0) -> None:
    """SQuAD-shaped facts: who lives where and works as what, one fact a paragraph.

    The question says what kind of word its answer is, and held-out articles mix the same words anew: a model
    that learns at all learns this within a hundred steps, while a guess is right once in nine words.
    """
    chance = random.Random(seed)
    data = []
    for number in range(articles):
        paragraphs = []
        for place in range(3):
            person, town, job = (chance.choice(kind) for kind in (PEOPLE, TOWNS, JOBS))
            context = f"{person} lives in {town} and works as a {job} ."
            questions = [
                {
                    "id": f"{number}-{place}-{kind}",
                    "question": question,
                    "answers": [{"text": answer, "answer_start": context.index(answer)}],
                }
                for kind, (question, answer) in enumerate(zip(QUESTIONS, (person, town, job), strict=True))
            ]
            paragraphs.append({"context": context, "qas": questions})
        data.append({"title": f"Article_{number}", "paragraphs": paragraphs})
    path.write_text(json.dumps({"version": "1.1", "data": data}))


def settings(tiny: Path, **stages: Any) -> dict[str, Any]:
    """A run on the tiny encoder and facts in a folder, with the given stages."""
    return {
        "data": str(tiny / "facts.json"),
        "encoder": str(tiny / "encoder"),
        "held_out_share": 0.2,
        "limits": {"paragraph_pieces": 64, "question_pieces": 16},
        "model": {"coherency_dim": 4},
        **stages,
    }
