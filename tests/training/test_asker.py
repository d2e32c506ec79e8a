"""The asker: what it sees, that it writes what it would write without a cache, and what is kept of it."""

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tiny import JOBS, PEOPLE, QUESTIONS, TOWNS, settings

from denspi.corpus.squad import read_squad
from denspi.dense.backbone import load_backbone
from denspi.errors import InputError, ModelError, SettingsError
from denspi.settings import from_table
from denspi.text.tokens import Tokenizer
from denspi.training.asked import ASKED, LOGITS, WRITTEN, best_phrase, load_asked, make_prompts
from denspi.training.asker import AskerModel, Prompt, asker_batch, write_questions
from denspi.training.examples import Limits
from denspi.training.run import Run
from denspi.training.settings import RunSettings
from denspi.training.status_line import StatusLine
from denspi.vectors import MAX_PHRASE_WORDS

LOOP = {"epochs": 12, "learning_rate": 5e-3}


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Tokenizer:
    return Tokenizer(tiny / "encoder" / "tokenizer.json")


@pytest.fixture(scope="module")
def model(tiny: Path) -> AskerModel:
    torch.manual_seed(0)
    return AskerModel(load_backbone(str(tiny / "encoder"))).eval()


def prompts_of(texts: list[str], tokenizer: Tokenizer) -> list[Prompt]:
    return [Prompt(tokenizer.tokenize(text), 1, 2) for text in texts]


def test_a_piece_sees_the_paragraph_and_what_is_written_before_it(
    model: AskerModel, tokenizer: Tokenizer
) -> None:
    prompts = prompts_of(["ada lives in oslo .", "bram works as a judge in riga ."], tokenizer)
    short, long = tokenizer.ids_batch(["who is it ?", "which town is it ?"])
    other = long.copy()
    other[2:] = tokenizer.ids_batch(["a baker in"])[0]
    one = asker_batch(prompts, [short, long], tokenizer)
    two = asker_batch(prompts, [short, other], tokenizer)
    with torch.no_grad():
        before, after = (model.hidden(b.ids, b.types, b.seen) for b in (one, two))
    head = len(prompts[1].tokens) + 2
    assert torch.allclose(before[1, : head + 2], after[1, : head + 2], atol=1e-6)
    assert not torch.allclose(before[1, head + 2], after[1, head + 2], atol=1e-3)
    # What a row holds does not depend on its mates: padding is never seen.
    alone = asker_batch(prompts[:1], [short], tokenizer)
    with torch.no_grad():
        hidden = model.hidden(alone.ids, alone.types, alone.seen)
    assert torch.allclose(hidden[0], before[0, : hidden.shape[1]], atol=1e-5)


def test_only_the_marked_words_have_type_1_and_every_piece_of_the_question_is_learned(
    tokenizer: Tokenizer,
) -> None:
    tokens = tokenizer.tokenize("ada lives in oslo .")
    question = tokenizer.ids_batch(["which town ?"])[0]
    batch = asker_batch([Prompt(tokens, 2, 3)], [question], tokenizer)
    assert batch.types[0].tolist() == [0, 0, 0, 1, 1, 0, 0] + [1] * 4
    assert batch.written.tolist() == [*question.tolist(), tokenizer.sep_id]
    assert batch.ids[0, batch.before[0, 1]] == tokenizer.sep_id


def test_writing_with_a_cache_is_writing_without(model: AskerModel, tokenizer: Tokenizer) -> None:
    texts = ["ada lives in oslo .", "bram works as a judge in riga and lives in pisa .", "dov ."]
    prompts = [Prompt(tokenizer.tokenize(text), 0, 1) for text in texts]
    cold = 1e-6  # so cold that the likeliest piece is always drawn
    found = write_questions(model, tokenizer, prompts, 1, temperature=cold, batch=2)
    for prompt, text in zip(prompts, found, strict=True):
        pieces: list[int] = []
        while len(pieces) < 32:
            batch = asker_batch([prompt], [np.array(pieces, np.int32)], tokenizer)
            with torch.no_grad():
                hidden = model.hidden(batch.ids, batch.types, batch.seen)
            piece = int(model.logits(hidden[0, batch.before[-1, 1]]).argmax())
            if piece == tokenizer.sep_id:
                break
            pieces.append(piece)
        assert text == tokenizer.decode(pieces)


def test_an_encoder_of_another_kind_is_refused(model: AskerModel) -> None:
    class Other:
        def record(self) -> dict[str, Any]:
            return {"model_type": "mpnet"}

    with pytest.raises(SettingsError, match="BERT"):
        AskerModel(Other())  # type: ignore[arg-type]


def test_prompts_stay_inside_the_paragraph(tokenizer: Tokenizer) -> None:
    texts = ["Ada", "In 1999 ada lives in Oslo Town and works as a judge of Riga on 3 May 2001 ." * 9, "  "]
    prompts = make_prompts(texts, tokenizer, Limits(64, 16), 8, 1)
    assert [bool(each) for each in prompts] == [False, True, False]
    for prompt in prompts[1]:
        assert 0 <= prompt.first_word <= prompt.last_word < len(prompt.tokens.word_starts)
    assert len({(p.first_word, p.last_word) for p in prompts[1]}) == len(prompts[1])


def test_the_best_phrase_and_its_probability_are_those_of_all_phrases() -> None:
    chance = np.random.default_rng(0)
    for words in (1, 2, 7, 45):
        start, end = chance.normal(size=(2, words)).astype(np.float32) * 3
        start[chance.random(words) < 0.2] = -np.inf
        start[0] = 0.0
        every = {
            (i, j): float(start[i]) + float(end[j])
            for i in range(words)
            for j in range(i, min(words, i + MAX_PHRASE_WORDS))
        }
        best = max(every, key=every.__getitem__)
        total = sum(np.exp(score - every[best]) for score in every.values())
        first, last, probability = best_phrase(start, end)
        assert (first, last) == best
        assert probability == pytest.approx(1 / total, rel=1e-5)
    assert best_phrase(np.zeros(0, np.float32), np.zeros(0, np.float32))[2] == 0
    nothing = np.full(3, -np.inf, np.float32)
    assert best_phrase(nothing, nothing)[2] == 0


LIMITS = {"paragraph_pieces": 100, "question_pieces": 16}


def ask_settings(tiny: Path, output: Path, **more: Any) -> dict[str, Any]:
    """Those of a run that asks about a text, with the reader beside it."""
    ask = {"loop": LOOP, "batch": 16, "text": [str(output / "text.txt")], "questions": 3, "confidence": 0.3}
    return {**settings(tiny, teacher=str(output / "reader")), "limits": LIMITS, "ask": {**ask, **more}}


@pytest.fixture(scope="module")
def asked(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a reader, an asker that it answers, and a phrase model that learns from both."""
    output = tmp_path_factory.mktemp("asked")
    chance = random.Random(7)
    facts = (
        f"{chance.choice(PEOPLE)} lives in {chance.choice(TOWNS)} and works as a {chance.choice(JOBS)} ."
        for _ in range(25)
    )
    (output / "text.txt").write_text("\n\n".join(f"{fact} {'. ' * 85}" for fact in facts))
    reader = {"batch": 12, "loop": {"epochs": 3, "learning_rate": 3e-3, "average": 0.9}}
    table = {**settings(tiny, reader=reader), "limits": LIMITS}
    Run(from_table(RunSettings, table), output).run()
    phrase = {"batch": 4, "asked": 8, "loop": {"epochs": 1, "learning_rate": 3e-3}}
    table = {**ask_settings(tiny, output), "phrase": {**phrase, "loss": {"distillation": 1.0}}}
    Run(from_table(RunSettings, table), output).run()
    return output


def test_an_asker_learns_to_write_questions(asked: Path) -> None:
    scores = json.loads((asked / "ask" / "scores.json").read_text())
    assert scores["held_out"]["cross_entropy"] < 0.5  # of 80 pieces, guessed: 4.4
    texts = [
        question.text
        for article in read_squad(asked / "ask" / ASKED)
        for paragraph in article.paragraphs
        for question in paragraph.questions
    ]
    assert len(texts) == scores["kept"] > 10
    assert scores["asked"] >= scores["kept"]
    assert sum(text in QUESTIONS for text in texts) > 0.8 * len(texts)


def test_what_is_kept_is_read_back_with_its_logits(asked: Path, tokenizer: Tokenizer) -> None:
    examples, teacher = load_asked([asked / "ask"], tokenizer, Limits(100, 16), 5)
    assert min(example.article for example in examples) >= 5
    for example in examples:
        for question in example.questions:
            start, end = teacher[question.question_id]
            first, last, probability = best_phrase(start.astype(np.float32), end.astype(np.float32))
            assert probability > 0.29
            assert (first, last - first) in question.gold


def test_the_phrase_model_was_trained_on_both(asked: Path) -> None:
    scores = json.loads((asked / "phrase" / "scores.json").read_text())
    assert scores["settings"]["phrase"]["asked"] == 8


def test_logits_of_other_questions_are_refused(asked: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / ASKED).write_bytes((asked / "ask" / ASKED).read_bytes())
    np.savez(tmp_path / LOGITS, start=np.zeros(3, np.float16), end=np.zeros(3, np.float16))
    with pytest.raises(ModelError, match="does not fit"):
        load_asked([tmp_path], tokenizer, Limits(100, 16), 0)
    (tmp_path / LOGITS).write_bytes((asked / "ask" / LOGITS).read_bytes()[:100])
    with pytest.raises(ModelError, match=r"teacher\.npz: does not fit asked\.json\.gz; make both again"):
        load_asked([tmp_path], tokenizer, Limits(100, 16), 0)


def test_a_question_ends_where_there_is_no_place_for_more(model: AskerModel, tokenizer: Tokenizer) -> None:
    """An encoder of 128 places, 105 + 2 of them taken by the paragraph."""
    (prompt,) = prompts_of(["ada lives in oslo . " * 21], tokenizer)
    written = write_questions(model, tokenizer, [prompt] * 20, seed=1, longest=16)
    assert 0 < max(len(text.split()) for text in written) <= 16


def test_a_corpus_without_paragraphs_is_refused_before_training(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "short.txt").write_text("Too short to be asked about.")
    table = settings(tiny, teacher="never looked for", ask={"text": [str(tmp_path / "text")]})
    with pytest.raises(InputError, match="text: no paragraph of at least 200 characters"):
        Run(from_table(RunSettings, table), tmp_path / "run").run()
    assert not (tmp_path / "run" / "ask").exists()


def test_questions_that_are_written_need_not_be_written_again(
    asked: Path,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(StatusLine, "FILE_SECONDS", 0.0)
    run = Run(from_table(RunSettings, ask_settings(tiny, asked)), tmp_path)
    interrupt_when_written(run, monkeypatch)
    shown = capsys.readouterr().err
    asked_in_all = json.loads((asked / "ask" / "scores.json").read_text())["asked"]
    assert re.search(r"ask: question (\d+)/\1  [\d.]+ questions/s  0:00:00 left", shown)
    assert f"teacher: reading {asked_in_all} pairs" in shown
    assert not (tmp_path / "ask" / ASKED).exists()
    with monkeypatch.context() as patch:
        patch.setattr("denspi.training.run.write_questions", interrupted)
        patch.setattr("denspi.training.run.fit", interrupted)
        run.run()
    assert f"teacher: pair {asked_in_all}/{asked_in_all}" in capsys.readouterr().err
    for name in (ASKED, LOGITS):
        assert (tmp_path / "ask" / name).read_bytes() == (asked / "ask" / name).read_bytes()
    again, before = (json.loads((each / "ask" / "scores.json").read_text()) for each in (tmp_path, asked))
    assert [again[key] for key in ("held_out", "kept", "asked")] == [
        before[key] for key in ("held_out", "kept", "asked")
    ]
    assert not (tmp_path / "ask" / WRITTEN).exists()


def interrupt_when_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("denspi.training.teacher.read_pairs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.run()


def interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def test_questions_that_others_wrote_are_refused(
    asked: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ask" / WRITTEN
    interrupt_when_written(Run(from_table(RunSettings, ask_settings(tiny, asked)), tmp_path), monkeypatch)
    other = ask_settings(tiny, asked, questions=2)
    with pytest.raises(ModelError) as caught:
        Run(from_table(RunSettings, other), tmp_path).run()
    expected = "was made with ask.questions = '3', now '2'; remove it to start again"
    assert str(caught.value) == f"{path}: {expected}"
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"[]"):
        path.write_bytes(damaged)
        with pytest.raises(
            ModelError, match=r"written\.json\.gz: cannot be resumed \(.*\); remove it to start"
        ):
            Run(from_table(RunSettings, ask_settings(tiny, asked)), tmp_path).run()


def test_a_teacher_that_is_not_there_is_missed_before_training(
    asked: Path, tiny: Path, tmp_path: Path
) -> None:
    table = {**ask_settings(tiny, asked), "teacher": str(tmp_path / "nobody")}
    with pytest.raises(ModelError, match="nobody"):
        Run(from_table(RunSettings, table), tmp_path / "run").run()
    assert not (tmp_path / "run" / "ask").exists()
