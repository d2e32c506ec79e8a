"""A stage's log as a picture."""

import json
import sys
from pathlib import Path

import pytest

from denspi.errors import InputError, MissingExtraError
from denspi.training import curves

RECORDS = [
    {"seconds": 1.0, "step": 50, "loss": 40.0, "gradient": 9.0, "reading": 20.0},
    {"seconds": 2.0, "step": 100, "loss": 2.0, "gradient": 8.0, "reading": 1.0},
    {"seconds": 3.0, "step": 100, "epoch": 1, "em": 48.0, "f1": 60.0},
    {"seconds": 4.0, "step": 150, "loss": 1.0, "gradient": 7.0, "reading": 0.5},
    {"seconds": 5.0, "step": 150, "epoch": 2, "em": 50.0, "f1": 62.0},
]


def save_log(folder: Path, records: list[dict[str, float]]) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "log.jsonl").write_text(lines + '{"seconds": 6.0, "st')  # still being written


def test_losses_and_scores_are_told_apart(tmp_path: Path) -> None:
    save_log(tmp_path, RECORDS)
    found = curves.read_log(tmp_path / "log.jsonl")
    assert list(found.losses) == ["loss", "reading"]
    assert found.losses["reading"] == [(50, 20.0), (100, 1.0), (150, 0.5)]
    assert found.scores == {"em": [(100, 48.0), (150, 50.0)], "f1": [(100, 60.0), (150, 62.0)]}
    assert found.epochs == 2


@pytest.mark.parametrize("records", [RECORDS, RECORDS[:1], RECORDS[2:3]], ids=["all", "a loss", "a score"])
def test_the_picture_opens(
    tmp_path: Path, records: list[dict[str, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image")
    save_log(tmp_path, records)
    assert curves.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'curves.png'}\n"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    with image.open(tmp_path / "curves.png") as picture:
        picture.load()
        assert picture.width > 2 * picture.height > 0
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 50  # something is drawn
    assert {path.name for path in tmp_path.iterdir()} == {"log.jsonl", "curves.png"}


def test_what_cannot_be_drawn_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert curves.main([str(tmp_path)]) == 2
    assert "log.jsonl: there is no such log; name the folder of a stage" in capsys.readouterr().err
    save_log(tmp_path, [])
    with pytest.raises(InputError, match="holds no record yet"):
        curves.draw_curves(tmp_path)
    (tmp_path / "log.jsonl").write_text("[1, 2]\n")
    with pytest.raises(InputError, match="not a training log"):
        curves.draw_curves(tmp_path)
    capsys.readouterr()
    assert curves.main([str(tmp_path / "log.jsonl")]) == 2
    assert "log.jsonl/log.jsonl: there is no such log; name the folder" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_without_a_folder_the_usage_is_said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert curves.main(arguments) == 2
    assert "usage: python -m denspi.training.curves FOLDER..." in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system", "curves.png")

    save_log(tmp_path, RECORDS)
    monkeypatch.setattr("os.replace", read_only)
    assert curves.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == "denspi: curves.png: Read-only file system\n"


def test_without_matplotlib_there_is_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_log(tmp_path, RECORDS)
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'denspi\[train\]'"):
        curves.draw_curves(tmp_path)
    assert not (tmp_path / "curves.png").exists()
