"""A tiny random encoder and a tiny set of facts, small enough to train on a CPU within a test."""

import json
import random
from pathlib import Path

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
WORDS = (
    "the of in is was lives works at as a who what where which does did for years and . , ? town job".split()
)
JOBS = ["baker", "judge", "pilot", "nurse", "miner"]


def save_tokenizer(path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PEOPLE, *TOWNS, *JOBS, *WORDS]
    pieces += [p for c in LETTERS for p in (c, f"##{c}") if p not in pieces]
    tokenizer = Tokenizer(WordPiece({p: n for n, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]"])
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(path))


def save_encoder(folder: Path, seed: int = 0) -> None:
    folder.mkdir(parents=True)
    save_tokenizer(folder / "tokenizer.json")
    torch.manual_seed(seed)
    vocabulary = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(folder)


def save_facts(path: Path, articles: int, seed: int = 0) -> None:
    """SQuAD-shaped facts: who lives where and works as what; the held-out articles mix the same names anew."""
    chance = random.Random(seed)
    data = []
    for number in range(articles):
        paragraphs = []
        for _ in range(3):
            lines, questions = [], []
            for person, town in zip(chance.sample(PEOPLE, 3), chance.sample(TOWNS, 3), strict=True):
                job = chance.choice(JOBS)
                lines.append(f"{person} lives in {town} and works as a {job} .")
                questions.append((f"where does {person} live ?", town))
                questions.append((f"what job does {person} have ?", job))
            context = " ".join(lines)
            paragraphs.append({"context": context, "qas": []})
            for text, answer in questions:
                paragraphs[-1]["qas"].append(
                    {
                        "id": f"{number}-{len(paragraphs)}-{text}",
                        "question": text,
                        "answers": [{"text": answer, "answer_start": context.index(answer)}],
                    }
                )
        data.append({"title": f"Article_{number}", "paragraphs": paragraphs})
    path.write_text(json.dumps({"version": "1.1", "data": data}))
