"""What is wrong with a run is one line that says so, and exit code 2."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.utils.logging import get_logger
from safetensors.torch import load_file, save_file
from tests.tiny import settings
from tests.training.commands import LOOP, run_command, save_toml

from denspi.training.examples import is_held_out


@dataclass(frozen=True)
class Mistake:
    change: Callable[[dict[str, Any], Path], object]
    message: str


def without_weights(table: dict[str, Any], folder: Path) -> None:
    (folder / "empty").mkdir()
    for name in ("config.json", "tokenizer.json"):
        (folder / "empty" / name).write_bytes((Path(table["encoder"]) / name).read_bytes())
    table["encoder"] = str(folder / "empty")


def change_config(table: dict[str, Any], folder: Path, **changes: Any) -> None:
    """The encoder with another config, as after a slip of an editor."""
    shutil.copytree(table["encoder"], folder / "changed")
    table["encoder"] = str(folder / "changed")
    path = folder / "changed" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without_dropout(table: dict[str, Any], folder: Path) -> None:
    change_config(table, folder)
    (folder / "changed" / "config.json").write_text('{"model_type": "mamba"}')


def with_fewer_pieces(table: dict[str, Any], folder: Path) -> None:
    """An encoder that is whole, beside the tokenizer of a larger one."""
    change_config(table, folder, vocab_size=20)
    path, name = folder / "changed" / "model.safetensors", "embeddings.word_embeddings.weight"
    weights = load_file(path)
    save_file(weights | {name: weights[name][:20].contiguous()}, path, {"format": "pt"})


def other_layout(table: dict[str, Any], folder: Path) -> None:
    table["data"] = str(folder / "facts.json")
    Path(table["data"]).write_text('{"articles": []}')


def without_answers(table: dict[str, Any], folder: Path, key: str, is_held: Callable[[str], bool]) -> None:
    """Data whose articles in question only have questions that are not answered, as SQuAD v2 has them."""
    content = json.loads(Path(table["data"]).read_text())
    for article in content["data"]:
        for paragraph in article["paragraphs"] if is_held(article["title"]) else ():
            for question in paragraph["qas"]:
                question["answers"] = []
    table[key] = str(folder / "facts.json")
    Path(table[key]).write_text(json.dumps(content))


MISTAKES = {
    "unknown key": Mistake(lambda t, _: t.update(epochs=3), "unknown key 'epochs'"),
    "unknown nested key": Mistake(
        lambda t, _: t["phrase"]["loop"].update(epoch=3), "unknown key 'phrase.loop.epoch'; did you mean"
    ),
    "encoder without weights": Mistake(
        without_weights, "not an encoder folder, model.safetensors is missing"
    ),
    "weights of another size": Mistake(
        lambda t, f: change_config(t, f, hidden_size=64), "changed: weights do not fit the config"
    ),
    "a config of other types": Mistake(
        lambda t, f: change_config(t, f, hidden_size="wide"), "changed: cannot be loaded as an encoder"
    ),
    "a tokenizer of another encoder": Mistake(
        with_fewer_pieces, "changed: weights do not fit the tokenizer of"
    ),
    "no room for vectors": Mistake(
        lambda t, _: t["model"].update(coherency_dim=16),
        "16 leaves nothing of the encoder's 32 dimensions for vectors; set it to at most 15",
    ),
    "an LSTM to export": Mistake(
        lambda t, _: t.update(lstm={}, export={}), "an LSTM runs in torch only and is not exported"
    ),
    "data of another layout": Mistake(other_layout, "not SQuAD's layout"),
    "nothing to learn": Mistake(
        lambda t, f: without_answers(t, f, "data", lambda title: not is_held_out(title, 0.2)),
        "facts.json, articles to train on: no question has an answer that its paragraph reads",
    ),
    "nothing to validate on": Mistake(
        lambda t, f: without_answers(t, f, "data", lambda title: is_held_out(title, 0.2)),
        "facts.json, held-out articles: no question has an answer",
    ),
    "nothing to report on": Mistake(
        lambda t, f: without_answers(t, f, "report", lambda _: True), "facts.json: no question has an answer"
    ),
    "no data": Mistake(lambda t, f: t.update(data=str(f / "none.json")), "none.json"),
    "no teacher": Mistake(lambda t, _: t["phrase"].update(loss={"distillation": 1}), "needs a teacher"),
    "a teacher that is none": Mistake(
        lambda t, f: (t["phrase"].update(loss={"distillation": 1}), t.update(teacher=str(f))),
        "not a trained model folder, model.json is missing",
    ),
    "nothing held out": Mistake(lambda t, _: t.update(held_out_share=1e-9), "leaves no article on one side"),
    "too long": Mistake(lambda t, _: t.update(limits={}), "436 pieces do not fit the encoder's 128"),
    "a batch of none": Mistake(
        lambda t, _: t["phrase"].update(batch=0), "phrase: batch and article_group are"
    ),
    "no stage": Mistake(lambda t, _: t.pop("phrase"), "no stage to run: add a table such as [reader]"),
    "a dropout that nothing has": Mistake(
        lambda t, f: (without_dropout(t, f), t.update(dropout=0)),
        "changed: cannot be loaded as an encoder (its config names no dropout to set)",
    ),
    "a seed beyond what a generator takes": Mistake(
        lambda t, _: t.update(seed=2**63), "seed lies in [0, 2**63)"
    ),
    "weights that grow": Mistake(
        lambda t, _: t["phrase"]["loop"].update(weight_decay=-1), "weight_decay and workers are not negative"
    ),
    "fewer workers than none": Mistake(
        lambda t, _: t["phrase"]["loop"].update(workers=-1), "weight_decay and workers are not negative"
    ),
    "no loss": Mistake(
        lambda t, _: t["phrase"].update(loss={"reading": 0}), "phrase.loss: every weight is zero"
    ),
    "negatives without bias": Mistake(
        lambda t, _: t.update(negatives={"negatives": "paper"}), "needs loss.no_answer = true"
    ),
    "negatives without a model": Mistake(
        lambda t, _: t["phrase"].update(negatives="paper", loss={"no_answer": True}), "use [negatives]"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line_and_exit_with_2(
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    table = settings(tiny, phrase={"batch": 4, "loop": dict(LOOP)})
    MISTAKES[name].change(table, tmp_path)
    config = save_toml(tmp_path / "run.toml", table)
    assert run_command(monkeypatch, config, "--output", tmp_path / "out") == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("denspi: ")]
    assert len(said) == 1
    assert MISTAKES[name].message in said[0]


def test_a_name_that_is_neither_a_folder_nor_on_the_hub_is_one_line(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The hub's own library tells of every attempt."""

    def unreachable(*_: object) -> str:
        get_logger("huggingface_hub.utils._http").warning("Retrying in 8s [Retry 5/5].")
        raise OSError("no connection\nand much advice")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", unreachable)
    table = settings(tiny, phrase={"batch": 4}) | {"encoder": "encoders/minilm"}
    config = save_toml(tmp_path / "run.toml", table)
    assert run_command(monkeypatch, config, "--output", tmp_path / "out") == 2
    finding = "neither a folder nor reachable on the hub (no connection)"
    assert capfd.readouterr().err == f"denspi: encoders/minilm: {finding}\n"
