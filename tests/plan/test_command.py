"""`denspi plan`: what it prints, and what it refuses."""

from __future__ import annotations

import json

import pytest

from denspi.cli import run
from denspi.cli.plan import duration_shown


def test_json_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--words", "1000000", "--rate", "5000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["words"] == 1_000_000
    assert found["disk_bytes"] == sum(found["bytes_by_component"].values())
    assert found["bytes_per_word"] == pytest.approx(found["disk_bytes"] / 1e6, abs=0.01)
    assert found["build_seconds"] >= 200
    assert found["building_disk_bytes"] > found["disk_bytes"]


def test_compact_takes_less(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = []
    for precision in ("int8", "compact"):
        assert run(["plan", "--words", "100000", "--rate", "9", "--precision", precision, "--json"]) == 0
        sizes.append(json.loads(capsys.readouterr().out)["disk_bytes"])
    assert sizes[1] < 0.6 * sizes[0]


def test_people_read_sizes_and_grounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--words", "3000000000", "--rate", "10000"]) == 0
    shown = capsys.readouterr().out
    assert "3,000,000,000 words" in shown
    assert "GB" in shown
    assert "days" in shown
    assert "beyond" in shown


@pytest.mark.parametrize(
    ("arguments", "finding"),
    [
        (["--words", "0"], "greater than or equal to 1"),
        (["--words", "99999999999999999", "--rate", "1"], "plan for 1 to"),
        (["--words", "5", "--rate", "0"], "a finite rate above 0"),
        (["--words", "5", "--rate", "inf"], "a finite rate above 0"),
        (["--words", "5", "--rate", "nan"], "a finite rate above 0"),
        (["--words", "5", "--rate", "1", "--model", "nowhere"], "there is no such model"),
        (["--words", "5", "--rate", "1", "--precision", "int4"], "int4"),
    ],
)
def test_bad_use_is_one_line(arguments: list[str], finding: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", *arguments]) == 2
    error = capsys.readouterr().err
    assert finding in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_the_rate_is_measured_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--words", "20000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["words_per_second"] > 0


def test_durations() -> None:
    shown = [duration_shown(each) for each in (3, 119, 121, 7_300, 90_000, 10_000_000)]
    assert shown == ["3 s", "119 s", "2.0 min", "2.0 hours", "25 hours", "116 days"]
