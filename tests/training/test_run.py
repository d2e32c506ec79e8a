"""Whole runs on the CPU: they learn, stop and go on."""

import errno
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.tiny import settings
from tests.training.commands import LOOP, interrupt, run_command, save_toml

from denspi.dense.model_folder import load_phrase_model, load_reader_model
from denspi.errors import DenspiError, MissingExtraError, ModelError
from denspi.settings import from_table
from denspi.training.loop import fit
from denspi.training.phrase_task import PhraseTask
from denspi.training.processes import alone_in
from denspi.training.progress import Progress
from denspi.training.reader_task import ReaderTask
from denspi.training.run import Run
from denspi.training.settings import RunSettings


def train(table: dict[str, Any], output: Path) -> None:
    Run(from_table(RunSettings, table), output).run()


def log_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def trained(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader, a phrase model distilled from it, and that one trained on with negatives."""
    output = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "EVERY", 9)
        train(settings(tiny, reader={"batch": 12, "loop": {**LOOP, "epochs": 3}}), output)
        loss = {"distillation": 1.0, "in_batch": 0.5}
        table = settings(
            tiny,
            teacher=str(output / "reader"),
            report=str(tiny / "facts.json"),
            phrase={"batch": 4, "article_group": 2, "loop": LOOP, "loss": loss},
            negatives={
                "batch": 4,
                "loop": {**LOOP, "epochs": 1},
                "loss": {**loss, "no_answer": True},
                "negatives": "paper",
            },
        )
        train(table, output)
    return output


@pytest.mark.parametrize("stage", ["reader", "phrase"])
def test_a_stage_learns_and_leaves_its_folder(trained: Path, stage: str) -> None:
    folder = trained / stage
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["held_out"]["em"] > 60  # a guess is right in one of nine
    log = log_of(folder)
    losses = [record["loss"] for record in log if "loss" in record]
    assert losses[-1] < losses[0] / 2
    assert [record["epoch"] for record in log if "em" in record] == list(range(1, 3 + (stage == "reader")))
    assert {path.name for path in folder.iterdir() if not path.name.startswith("teacher-")} == {
        *("model.json", "model.safetensors", "tokenizer.json", "log.jsonl", "scores.json", "curves.png")
    }
    if stage == "phrase":
        assert scores["report"]["em"] > 60
        assert scores["settings"]["phrase"]["batch"] == 4
        assert {"reading", "in_batch", "distillation"} <= log[0].keys()
        load_phrase_model(folder)
    else:
        load_reader_model(folder)


def test_negatives_go_on_from_the_phrase_model(trained: Path) -> None:
    before, after = (load_phrase_model(trained / name) for name in ("phrase", "negatives"))
    assert before.no_answer_bias == 0
    assert after.no_answer_bias != 0
    assert json.loads((trained / "negatives" / "scores.json").read_text())["held_out"]["em"] > 60


def test_pretraining_on_plain_text_and_starting_from_a_reader(
    tiny: Path, trained: Path, tmp_path: Path
) -> None:
    text = (
        "Ada Lovelace lives in Oslo and works as a baker. Hugo Grotius was a judge in Lima for 14 years. " * 3
    )
    (tmp_path / "text.txt").write_text(f"{text}\n\n{text}")
    still = {"epochs": 1, "learning_rate": 1e-12}
    stages = {
        "pretrain": {"text": [str(tmp_path / "text.txt")], "questions": 2, "loop": still},
        "phrase": {"loop": {**LOOP, "epochs": 1}},
    }
    train(settings(tiny, start=str(trained / "reader"), **stages), tmp_path / "run")
    before, after = (
        load_file(tmp_path / "run" / name / "model.safetensors") for name in ("pretrain", "phrase")
    )
    reader = load_file(trained / "reader" / "model.safetensors")
    name = "backbone.encoder.embeddings.word_embeddings.weight"
    assert torch.allclose(before[name], reader[name], atol=1e-6)
    assert not torch.allclose(after[name], reader[name], atol=1e-6)


def test_a_finished_stage_is_not_run_again(
    tiny: Path, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("denspi.training.run.fit", None)
    before = (trained / "reader" / "model.safetensors").stat().st_mtime_ns
    train(settings(tiny, reader={"batch": 5, "loop": {"epochs": 2}}), trained)
    assert (trained / "reader" / "model.safetensors").stat().st_mtime_ns == before
    changes = "reader.batch = 12, now 5; reader.loop.average = 0.9, now 0.0; reader.loop.epochs = 3, now 2; "
    assert f"reader: done before with {changes}" in capsys.readouterr().err
    moved = settings(
        tiny, reader={"batch": 12, "loop": {**LOOP, "epochs": 3}}, report=str(tiny / "facts.json")
    )
    train(moved | {"encoder": str(tiny / "still")}, trained)
    assert f"reader: done before; remove {trained / 'reader'} to train it again" in capsys.readouterr().err


def train_interrupted(table: dict[str, Any], output: Path, after: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, PhraseTask, after)
        with pytest.raises(KeyboardInterrupt):
            train(table, output)


@pytest.mark.parametrize("stops", [(4,), (27,), (10, 5, 30)])
def test_a_resumed_run_ends_with_the_same_weights(tiny: Path, tmp_path: Path, stops: tuple[int, ...]) -> None:
    """Within an epoch and on its border (27 steps), once and more often; dropout and averages included."""
    phrase = {"batch": 4, "loss": {"in_batch": 0.5}, "loop": {**LOOP, "checkpoint_every_seconds": 0}}
    table = settings(tiny, phrase=phrase)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "EVERY", 6)
        train(table, tmp_path / "whole")
        for stop in stops:
            train_interrupted(table, tmp_path / "parts", stop)
            with (tmp_path / "parts" / "phrase" / "log.jsonl").open("a") as log:
                log.write(
                    '{"seconds": 9, "step": 54, "loss": 1}\n{"half'
                )  # steps the checkpoint has not seen
        train(table, tmp_path / "parts")
    whole, parts = (load_file(tmp_path / run / "phrase" / "model.safetensors") for run in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    logs = [log_of(tmp_path / run / "phrase") for run in ("whole", "parts")]
    for record in (*logs[0], *logs[1]):
        del record["seconds"]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("stage", ["reader", "phrase"])
def test_bfloat16_on_a_cpu_is_close_to_float32(tiny: Path, tmp_path: Path, stage: str) -> None:
    weights = []
    for is_mixed in (False, True):
        loop = {"epochs": 1, "learning_rate": 1e-4, "bfloat16_on_cpu": is_mixed}
        train(settings(tiny, **{stage: {"batch": 4, "loop": loop}}), tmp_path / str(is_mixed))
        weights.append(load_file(tmp_path / str(is_mixed) / stage / "model.safetensors"))
    plain, mixed = weights
    name = "backbone.encoder.encoder.layer.0.output.dense.weight"
    assert mixed[name].dtype == torch.float32
    assert not torch.equal(plain[name], mixed[name])
    assert torch.allclose(plain[name], mixed[name], atol=5e-3)


def test_the_average_is_what_is_validated_and_kept(tiny: Path, tmp_path: Path) -> None:
    validated: dict[str, torch.Tensor] = {}

    def validate(task: PhraseTask) -> dict[str, float]:
        validated.update({name: weight.clone() for name, weight in task.model.state_dict().items()})
        return {"em": 0.0}

    def weights(average: float) -> dict[str, torch.Tensor]:
        loop = {"epochs": 1, "learning_rate": 3e-3, "average": average}
        output = tmp_path / str(average)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PhraseTask, "validate", validate)
            train(settings(tiny, phrase={"batch": 36, "loop": loop}), output)
        kept = load_file(output / "phrase" / "model.safetensors")
        assert all(torch.equal(validated[name], kept[name]) for name in kept)
        return kept

    plain, averaged = weights(0.0), weights(0.5)
    encoder = load_file(tiny / "encoder" / "model.safetensors")
    name = "encoder.layer.0.output.dense.weight"
    moved, moved_less = (w[f"backbone.encoder.{name}"] - encoder[name] for w in (plain, averaged))
    assert 0 < moved_less.norm() < moved.norm()  # the average lags behind


def test_another_run_is_not_resumed(tiny: Path, tmp_path: Path) -> None:
    loop = {**LOOP, "checkpoint_every_seconds": 0}
    train_interrupted(settings(tiny, phrase={"batch": 4, "loop": loop}), tmp_path, 3)
    with pytest.raises(ModelError, match=r"made with phrase\.loss\.in_batch = '0\.0', now '0\.5'; remove it"):
        train(settings(tiny, phrase={"batch": 4, "loop": loop, "loss": {"in_batch": 0.5}}), tmp_path)
    with pytest.raises(ModelError, match=r"made with seed = '1', now '2'"):
        train(settings(tiny, seed=2, phrase={"batch": 4, "loop": loop}), tmp_path)
    (tmp_path / "phrase" / "checkpoint.pt").write_bytes(b"PK broken")
    with pytest.raises(ModelError, match="cannot be resumed"):
        train(settings(tiny, phrase={"batch": 4, "loop": loop}), tmp_path)


def test_ctrl_c_says_how_to_go_on(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = {**LOOP, "checkpoint_every_seconds": 0}
    config = save_toml(tmp_path / "run.toml", settings(tiny, reader={"batch": 12, "loop": loop}))
    arguments = (config, "--output", tmp_path / "out", "--set", "reader.loop.epochs=1")
    with monkeypatch.context() as once:
        interrupt(once, ReaderTask, 2)
        assert run_command(once, *arguments) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "denspi: interrupted; go on with the same command and --resume"
    assert run_command(monkeypatch, *arguments) == 2
    assert "already holds a run (reader); add --resume" in capsys.readouterr().err
    assert run_command(monkeypatch, *arguments, "--resume") == 0
    scores = json.loads((tmp_path / "out" / "reader" / "scores.json").read_text())
    assert scores["settings"]["reader"]["loop"]["epochs"] == 1


def test_a_stage_is_done_where_curves_cannot_be_drawn(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    train(settings(tiny, reader={"batch": 60, "loop": {"epochs": 1}}), tmp_path)
    said = [line for line in capsys.readouterr().err.splitlines() if "curves.png: not drawn, " in line]
    assert len(said) == 1
    assert (tmp_path / "reader" / "scores.json").exists()
    assert not (tmp_path / "reader" / "curves.png").exists()


class Pairs:
    """One process that does what two should: the mean of the losses of two batches in each step."""

    def __init__(self, task: PhraseTask) -> None:
        self.task, self.model = task, task.model

    def order(self, epoch: int) -> list[list[int]]:
        batches = self.task.order(epoch)
        self.size = len(batches[0])
        return [[*a, *b] for a, b in zip(batches[::2], batches[1::2], strict=False)]

    def collate(self, items: list[int], epoch: int) -> Any:
        return Both(
            self.task.collate(items[: self.size], epoch), self.task.collate(items[self.size :], epoch)
        )

    def loss(self, batch: Any) -> Any:
        (left, _), (right, _) = self.task.loss(batch.left), self.task.loss(batch.right)
        return (left + right) / 2, {}

    def validate(self) -> dict[str, float]:
        return self.task.validate()


@dataclass
class Both:
    left: Any
    right: Any

    def to(self, device: torch.device) -> "Both":
        return self


def run_two_ranks(config: Path, output: Path, *more: str) -> tuple[dict[str, torch.Tensor], ...]:
    """Runs tests/training/two_ranks.py; the weights that each rank ends with."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
            *(str(Path(__file__).with_name("two_ranks.py")), str(config), str(output), *more),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root / "src")},
    )
    assert done.returncode == 0, done.stderr
    return tuple(torch.load(output / f"rank-{rank}.pt") for rank in (0, 1))


@pytest.mark.slow
def test_two_processes_resumed_end_with_the_same_weights(tiny: Path, tmp_path: Path) -> None:
    """Each has dropout of its own, which goes on where it was."""
    loop = {"epochs": 1, "learning_rate": 3e-3, "average": 0.9, "checkpoint_every_seconds": 0}
    config = save_toml(tmp_path / "run.toml", settings(tiny, phrase={"batch": 6, "loop": loop}))
    whole, _ = run_two_ranks(config, tmp_path / "whole")
    parts, other = run_two_ranks(config, tmp_path / "parts", "4")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert all(torch.equal(other[name], parts[name]) for name in parts)
    logs = [[r["loss"] for r in log_of(tmp_path / n / "phrase") if "loss" in r] for n in ("whole", "parts")]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_two_processes_do_what_one_does_with_the_mean_of_two_batches(tiny: Path, tmp_path: Path) -> None:
    loop = {"epochs": 1, "learning_rate": 1e-3, "average": 0.9, "checkpoint_every_seconds": 0}
    table = settings(tiny, phrase={"batch": 9, "loop": loop})
    table["encoder"] = str(tiny / "still")  # without dropout, so that both ways can be compared
    config = save_toml(tmp_path / "run.toml", table)
    output = tmp_path / "two"
    first, second = run_two_ranks(config, output)
    assert all(torch.equal(first[name], second[name]) for name in first)
    saved = load_file(output / "phrase" / "model.safetensors")
    assert all(torch.equal(first[name], saved[name]) for name in first)

    start: dict[str, torch.Tensor] = {}

    def fit_pairs(task: PhraseTask, *arguments: Any) -> dict[str, float]:
        start.update({name: weight.clone() for name, weight in task.model.state_dict().items()})
        return fit(Pairs(task), *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("denspi.training.run.fit", fit_pairs)
        train(table, tmp_path / "one")
    one = load_file(tmp_path / "one" / "phrase" / "model.safetensors")
    assert not all(torch.equal(one[name], start[name]) for name in one)
    for name in one:
        moved = (one[name] - start[name]).norm()
        assert (first[name] - one[name]).norm() <= 0.01 * moved + 1e-6, name
    # Adam hides a constant factor; the norms that were logged do not.
    norms = [log_of(folder / "phrase")[0]["gradient"] for folder in (output, tmp_path / "one")]
    assert norms[0] == pytest.approx(norms[1], rel=0.01)


def test_too_few_batches_for_the_processes_is_said(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PhraseTask, "order", lambda self, epoch: [])
    with pytest.raises(DenspiError, match="an epoch has 0 batches, too few for 1 processes"):
        train(settings(tiny, phrase={"batch": 4}), tmp_path)


def not_numbers(patch: pytest.MonkeyPatch, after: int) -> None:
    """The loss of step `after` + 1 is not a number, and so are all weights from there on."""
    loss, calls = PhraseTask.loss, 0

    def diverged(self: Any, batch: Any) -> Any:
        nonlocal calls
        calls += 1
        found, shown = loss(self, batch)
        return found * (torch.nan if calls > after else 1), shown

    patch.setattr(PhraseTask, "loss", diverged)


@pytest.mark.parametrize("every_seconds", [0, 1000])
def test_weights_that_are_no_numbers_are_neither_kept_nor_a_model(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_seconds: int
) -> None:
    """Seen when a checkpoint is due, or at the end of the epoch at the latest."""
    loop = {**LOOP, "checkpoint_every_seconds": every_seconds}
    not_numbers(monkeypatch, 6)
    with pytest.raises(DenspiError, match="weights were not finite any more"):
        train(settings(tiny, phrase={"batch": 4, "loop": loop}), tmp_path)
    folder = tmp_path / "phrase"
    assert not (folder / "model.safetensors").exists()
    assert not (folder / "scores.json").exists()
    if every_seconds == 0:
        assert torch.load(folder / "checkpoint.pt")["step"] == 6


def test_two_runs_do_not_share_a_folder(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = save_toml(tmp_path / "run.toml", settings(tiny, reader={"batch": 60, "loop": {"epochs": 1}}))
    with alone_in(tmp_path / "out"):
        assert run_command(monkeypatch, config, "--output", tmp_path / "out", "--resume") == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith(f"denspi: {tmp_path / 'out'}: process {os.getpid()} on ")
        assert said.endswith(" is training into it; wait for it to finish, or stop it")
        assert not (tmp_path / "out" / "reader").exists()
    assert run_command(monkeypatch, config, "--output", tmp_path / "out") == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["reader"]


def test_where_files_cannot_be_locked_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with alone_in(tmp_path), alone_in(tmp_path):
        pass


@pytest.mark.parametrize("name", ["onnx", "onnxscript", "onnxruntime"])
def test_without_what_export_needs_everything_else_is_trained(
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    config = save_toml(tmp_path / "run.toml", settings(tiny, reader={"loop": {"epochs": 1}}, export={}))
    with monkeypatch.context() as without:
        without.setitem(sys.modules, name, None)
        assert run_command(without, config, "--output", tmp_path / "out") == 2
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("export: it needs the optional part 'train'; install it with: ")
    assert last == f"denspi: {MissingExtraError('all else is done; [export]', 'train')}"
    assert not (tmp_path / "out" / "reader-export").exists()
    assert run_command(monkeypatch, config, "--output", tmp_path / "out", "--resume") == 0
    assert (tmp_path / "out" / "reader-export" / "model.onnx").exists()


def test_a_checkpoint_that_was_being_written_goes_with_the_others(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reader").mkdir()
    (tmp_path / "reader" / "checkpoint.tmp").write_bytes(b"half of one, the process was killed")
    train(settings(tiny, reader={"batch": 60, "loop": {"epochs": 1}}), tmp_path)
    assert not list((tmp_path / "reader").glob("checkpoint.*"))
    assert "\nreader: done, " in capsys.readouterr().err


def test_a_lonely_variable_of_a_scheduler_is_one_line(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(DenspiError, match="WORLD_SIZE is 2, and what goes with it is not set; start with"):
        train(settings(tiny, reader={}), tmp_path)
