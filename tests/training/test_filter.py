"""The filter stage on tiny facts: it learns, honours its target on held-out articles, leaves a model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.tiny import settings
from tests.training.commands import interrupt

from denspi.dense.filter import kept_ends, kept_starts
from denspi.dense.model_folder import load_phrase_model, save_model
from denspi.dense.quantizer import fit_code
from denspi.dense.torch_encoder import torch_encoder
from denspi.errors import DenspiError, SettingsError
from denspi.settings import from_table
from denspi.text.tokens import Tokenizer
from denspi.training.examples import Example
from denspi.training.filter_task import FilterTask
from denspi.training.run import Run
from denspi.training.settings import FilterStage, RunSettings
from denspi.training.thresholds import border_logits, survival


def train(table: dict[str, Any], output: Path) -> Run:
    run = Run(from_table(RunSettings, table), output)
    run.run()
    return run


PHRASE = {"batch": 4, "loop": {"epochs": 2, "learning_rate": 3e-3}}
FILTER: dict[str, Any] = {"batch": 8, "recall": 0.99, "loop": {"epochs": 10}}


@pytest.fixture(scope="module")
def run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    output = tmp_path_factory.mktemp("filter")
    return train(settings(tiny, phrase=PHRASE, filter=FILTER, report=str(tiny / "facts.json")), output)


def test_it_learns_and_says_what_it_costs(run: Run) -> None:
    """Three words of ten are answers; a filter that has learned nothing keeps all of them."""
    folder = run.output / "filter"
    scores = json.loads((folder / "scores.json").read_text())
    for part, recall in (("held_out", 0.99), ("report", 0.9)):  # nothing was chosen on the second
        found = scores[part]
        assert found["recall"] >= recall
        assert 0.29 < found["kept_starts"] < 0.6
        assert 0.29 < found["kept_ends"] < 0.6
        assert found["em_filtered"] >= found["em"] - 100 * (1 - recall)
        assert found["em_int8"] == pytest.approx(found["em"], abs=5)
        assert found["em_stored"] == pytest.approx(found["em_filtered"], abs=5)
        assert found["em_compact"] == pytest.approx(found["em"], abs=5)
        assert found["em_compact_stored"] == pytest.approx(found["em_filtered"], abs=5)
    assert min(scores["held_out"]["start_auc"], scores["held_out"]["end_auc"]) > 0.95
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in log if "kept_starts" in record] == [5, 10]
    record = json.loads((folder / "filter.json").read_text())
    assert record["answers"] == sum(len(e.questions) for e in run.held_out)
    assert [point["target"] for point in record["curve"]] == [0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0]
    # The tiny model has 12 dimensions, so 56 bytes are more than there is use for: eight bits for each.
    compact = record["compact"]
    assert (compact["vector_bytes"], compact["key_bytes"]) == (13, 2)
    assert 0 < compact["start_error"] < 0.02
    assert 0 < compact["end_error"] < 0.02
    for point in record["curve"]:
        assert point["recall"] >= point["target"]
        assert 0 < point["kept_starts"] <= 1
        assert 0 <= point["em"] <= 100


def test_the_saved_model_honours_the_target(run: Run) -> None:
    """Encoded anew from the folder, by the masks that an index would use."""
    model = load_phrase_model(run.output / "filter")
    thresholds = model.filter_thresholds
    assert thresholds is not None
    encoder = torch_encoder(model, run.tokenizer)
    assert encoder.filter_thresholds == thresholds
    assert encoder.quantizer is model.quantizer
    assert encoder.compact is model.compact is not None
    vectors = list(encoder.encode_paragraphs(e.text for e in run.held_out))
    found = survival(border_logits(run.held_out, vectors), thresholds)
    assert found.recall >= 0.99
    kept = [
        any(starts[first] and ends[first + more] for first, more in question.gold)
        for example, paragraph in zip(run.held_out, vectors, strict=True)
        for starts, ends in [(kept_starts(paragraph, thresholds), kept_ends(paragraph, thresholds))]
        for question in example.questions
    ]
    assert np.mean(kept) == pytest.approx(found.recall)


def test_only_the_heads_are_trained(run: Run) -> None:
    before, after = (load_file(run.output / name / "model.safetensors") for name in ("phrase", "filter"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {f"{side}_filter.{part}" for side in ("start", "end") for part in ("weight", "bias")}


def test_the_quantizer_is_fitted_to_the_rows_that_are_kept_of_training_paragraphs(run: Run) -> None:
    model = load_phrase_model(run.output / "filter")
    assert model.quantizer is not None
    assert model.filter_thresholds is not None
    rows: list[tuple[np.ndarray, ...]] = []
    for paragraph in torch_encoder(model, run.tokenizer).encode_paragraphs(e.text for e in run.examples):
        starts = kept_starts(paragraph, model.filter_thresholds)
        ends = kept_ends(paragraph, model.filter_thresholds)
        assert not starts.all()
        rows.append(
            (
                *(paragraph.starts[starts], paragraph.ends[ends]),
                *(paragraph.start_keys[starts], paragraph.end_keys[ends]),
            )
        )
        stored = model.quantizer.stored(paragraph)
        off = np.abs(stored.starts - paragraph.starts)[starts]
        assert (off <= model.quantizer.start.max_error + 1e-5).all()
    codes = model.quantizer.start, model.quantizer.end, model.quantizer.start_key, model.quantizer.end_key
    for code, kept in zip(codes, zip(*rows, strict=True), strict=True):
        expected = fit_code(np.concatenate(kept))
        np.testing.assert_allclose(code.scale, expected.scale, rtol=1e-4)
        np.testing.assert_allclose(code.offset, expected.offset, rtol=1e-4, atol=1e-5)


def test_a_given_model_and_fewer_paragraphs(tiny: Path, run: Run, tmp_path: Path) -> None:
    stage = {**FILTER, "model": str(run.output / "phrase"), "paragraphs": 16, "compact_bytes": 6}
    train(settings(tiny, filter=stage), tmp_path)
    assert (tmp_path / "filter" / "quantizer.npz").exists()
    compact = load_phrase_model(tmp_path / "filter").compact
    assert compact is not None
    assert (compact.vector_bytes, compact.key_bytes) == (6, 2)
    model = load_phrase_model(run.output / "phrase")
    task = FilterTask(model, run.tokenizer, run.examples, run.held_out, from_table(FilterStage, stage), 1)
    assert len(task.examples) == 16
    assert sorted(n for batch in task.order(0) for n in batch) == list(range(16))
    texts = [q.text for e in task.examples for q in e.questions]
    assert len(task.encode_questions(10)) == 10
    everything = task.encode_questions(1000)
    assert np.allclose(everything.starts, task.encoder.encode_questions(texts).starts, atol=1e-5)


def test_a_model_can_do_without_a_compact_code(tiny: Path, run: Run, tmp_path: Path) -> None:
    """One that the model came with is not kept: it belongs to other thresholds."""
    stage = {**FILTER, "loop": {"epochs": 1}, "model": str(run.output / "filter"), "compact_bytes": 0}
    train(settings(tiny, filter=stage), tmp_path)
    folder = tmp_path / "filter"
    assert not (folder / "compact.npz").exists()
    assert load_phrase_model(folder).compact is None
    assert "compact" not in json.loads((folder / "filter.json").read_text())
    assert "em_compact" not in json.loads((folder / "scores.json").read_text())["held_out"]


def test_the_same_run_twice_is_the_same_model(tiny: Path, run: Run, tmp_path: Path) -> None:
    train(settings(tiny, filter={**FILTER, "model": str(run.output / "phrase")}), tmp_path)
    for name in ("model.json", "model.safetensors", "quantizer.npz", "compact.npz"):
        assert (tmp_path / "filter" / name).read_bytes() == (run.output / "filter" / name).read_bytes()


def test_interrupted_and_resumed_it_is_the_same_model(tiny: Path, run: Run, tmp_path: Path) -> None:
    loop = {**FILTER["loop"], "checkpoint_every_seconds": 0}
    table = settings(tiny, filter={**FILTER, "loop": loop, "model": str(run.output / "phrase")})
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, FilterTask, 40)
        with pytest.raises(KeyboardInterrupt):
            train(table, tmp_path)
    train(table, tmp_path)
    for name in ("model.json", "model.safetensors", "quantizer.npz", "compact.npz"):
        assert (tmp_path / "filter" / name).read_bytes() == (run.output / "filter" / name).read_bytes()


def test_words_beyond_what_training_reads_are_neither_right_nor_wrong(run: Run) -> None:
    example = run.examples[0]
    cut: Example = replace(
        example, tokens=replace(example.tokens, word_starts=example.tokens.word_starts[:5])
    )
    cut = replace(cut, questions=tuple(replace(q, gold=((0, 0),)) for q in cut.questions))
    model = load_phrase_model(run.output / "phrase")
    task = FilterTask(model, run.tokenizer, [cut], [cut], FilterStage(), 1)
    batch = task.collate([0], 0)
    assert batch.is_start.tolist() == batch.is_end.tolist() == [1, 0, 0, 0, 0]
    assert len(batch.starts) == 5
    assert len(task.held_out_logits().starts) == 5


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ({"filter": {}}, "filter needs a phrase model: set filter.model"),
        ({"filter": {"model": "x"}, "phrase": PHRASE}, "choose one of them"),
        ({"filter": {"model": "x", "recall": 0.0}}, "recall lies in"),
        ({"filter": {"model": "x", "paragraphs": 0}}, "batch and paragraphs are positive"),
        ({"filter": {"model": "x", "compact_bytes": 1}}, "compact_bytes is at least 2, or 0"),
        ({"filter": {"model": "x", "compact_bytes": -8}}, "compact_bytes is at least 2, or 0"),
    ],
)
def test_settings_that_do_not_fit(tiny: Path, stages: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        from_table(RunSettings, settings(tiny, **stages))


def test_a_model_with_another_tokenizer_is_refused(tiny: Path, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps(json.loads((tiny / "encoder" / "tokenizer.json").read_text())))
    save_model(load_phrase_model(run.output / "phrase"), tokenizer, folder)
    Tokenizer(folder / "tokenizer.json")
    with pytest.raises(DenspiError, match="its tokenizer is not that of"):
        train(settings(tiny, filter={"model": str(folder)}), tmp_path / "out")
