"""`denspi evaluate reading` with a tiny exported model on tiny facts."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from tests.exported import save_exported
from tests.tiny import save_encoder, save_facts

from denspi import cli
from denspi.dense.backbone import load_backbone
from denspi.dense.export import ExportSettings, export_reader_model
from denspi.dense.model import ReaderModel
from denspi.dense.model_folder import save_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_exported(tmp_path_factory.mktemp("model")))


@pytest.fixture
def facts(tmp_path: Path) -> str:
    save_facts(tmp_path / "facts.json", articles=2)
    return str(tmp_path / "facts.json")


def test_json_is_all_that_is_printed(
    model: str, facts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predictions = tmp_path / "predictions.json"
    arguments = ["evaluate", "reading", "--data", facts, "--model", model, "--json"]
    assert cli.run([*arguments, "--predictions", str(predictions)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out)
    assert {"em", "f1", "questions", "words_per_second", "questions_per_second", "seconds"} <= found.keys()
    asked = question_ids(facts)
    assert (found["questions"], found["paragraphs"], found["model"]) == (len(asked), 6, model)
    assert 0 <= found["em"] <= found["f1"] <= 100
    answers = json.loads(predictions.read_text())
    assert list(answers) == asked
    assert all(answers.values())
    assert {path.name for path in tmp_path.iterdir()} == {"facts.json", "predictions.json"}


def test_the_report_for_people(model: str, facts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["evaluate", "reading", "--data", facts, "--model", model, "--limit", "7"]) == 0
    printed = capsys.readouterr().out
    assert " on 7 questions\n" in printed
    assert " words and " in printed


def test_a_trained_folder_works_too(model: str, facts: str, capsys: pytest.CaptureFixture[str]) -> None:
    trained = str(Path(model).parent / "trained")
    assert cli.run(["evaluate", "reading", "--data", facts, "--model", trained, "--limit", "3"]) == 0
    assert "exact match" in capsys.readouterr().out


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a torch reader with random weights."""
    folder = tmp_path_factory.mktemp("reader")
    save_encoder(folder / "encoder")
    model = ReaderModel(load_backbone(str(folder / "encoder")))
    save_model(model.eval(), folder / "encoder" / "tokenizer.json", folder / "trained")
    return folder / "trained"


def test_an_exported_reader_rereads(reader: Path, facts: str, capsys: pytest.CaptureFixture[str]) -> None:
    export_reader_model(reader, reader.parent / "exported", ExportSettings("float"))
    folder = str(reader.parent / "exported")
    assert cli.run(["evaluate", "reading", "--data", facts, "--model", folder, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    asked = len(question_ids(facts))
    assert (found["questions"], found["paragraphs"], found["words"]) == (asked, 6, asked * 10)


def test_a_torch_reader_is_to_be_exported(
    reader: Path, facts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["evaluate", "reading", "--data", facts, "--model", str(reader)]) == 2
    line = f"denspi: {reader}: holds a reader that is not exported; export it first "
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"--model": "nowhere"}, "nowhere: there is no such model; packaged models: "),
        ({"--data": "nowhere.json"}, "nowhere.json: no such file or folder"),
        ({"--predictions": "nowhere/p.json"}, "nowhere/p.json: there is no folder nowhere"),
        ({"--predictions": "."}, ".: is a folder; name a file"),
        ({"--predictions": "/dev/null"}, "/dev/null: is no regular file; name one"),
        ({"--limit": "0"}, "Invalid value for '--limit': "),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    changes: dict[str, str], line: str, model: str, facts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"--data": facts, "--model": model} | changes
    assert cli.run(["evaluate", "reading", *(part for pair in options.items() for part in pair)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"denspi: {line}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_data_without_an_answered_question(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"data": [{"title": "t", "paragraphs": [{"context": "text", "qas": []}]}]}')
    assert cli.run(["evaluate", "reading", "--data", str(empty), "--model", model]) == 2
    assert capsys.readouterr().err == f"denspi: {empty}: holds no question with an answer\n"


def test_a_full_disk_does_not_take_the_scores_with_it(
    model: str,
    facts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    path = tmp_path / "p.json"
    arguments = ["--data", facts, "--model", model, "--json", "--predictions", str(path)]
    assert cli.run(["evaluate", "reading", *arguments]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["questions"] == 18
    assert captured.err == f"denspi: {path}: cannot be written: No space left on device\n"
    assert [each.name for each in tmp_path.iterdir()] == ["facts.json"]


def test_half_of_a_surrogate_pair_is_written_as_json_writes_it(
    model: str, facts: str, tmp_path: Path
) -> None:
    content = json.loads(Path(facts).read_text())
    paragraph = content["data"][0]["paragraphs"][0]
    paragraph["context"] = "\ud800"
    Path(facts).write_text(json.dumps(content))
    path = tmp_path / "p.json"
    arguments = ["--data", facts, "--model", model, "--limit", "1", "--predictions", str(path)]
    assert cli.run(["evaluate", "reading", *arguments]) == 0
    assert json.loads(path.read_text()) == {paragraph["qas"][0]["id"]: "\ud800"}


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["evaluate"]) == 0
    assert "reading" in capsys.readouterr().out


def question_ids(facts: str) -> list[str]:
    articles = json.loads(Path(facts).read_text())["data"]
    return [question["id"] for a in articles for p in a["paragraphs"] for question in p["qas"]]
