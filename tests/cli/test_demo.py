import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from denspi import cli
from denspi.cli import demo


def test_demo_shows_the_corpus_and_what_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.run(["demo"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Sample corpus: 100 articles, ")
    assert printed.count("\n1. ") == 5
    assert printed.count(" visited") == 5
    assert "questions answered exactly right" in printed
    assert "\x1b" not in printed  # colours are for terminals


def test_demo_leaves_no_files_behind(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert cli.run(["demo"]) == 0
    assert list(folder.iterdir()) == []


def test_a_port_that_is_taken_is_said_before_anything_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.run(["demo", "--serve", "--port", str(port)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"denspi: 127.0.0.1 port {port}: ")
    assert captured.out == ""


@pytest.mark.parametrize("option", [["--port", "8001"], ["--no-browser"]])
def test_options_of_the_page_want_a_page(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["demo", *option]) == 2
    assert capsys.readouterr() == ("", f"denspi: {option[0]}: is of the page; add --serve\n")


def test_the_page_is_opened_where_somebody_looks_at_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(demo.webbrowser, "open", opened.append)
    monkeypatch.setattr(demo.sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":0")
    demo._open_page("http://127.0.0.1:1")  # not a terminal
    monkeypatch.setattr(demo.sys.stdout, "isatty", lambda: True, raising=False)
    demo._open_page("http://127.0.0.1:2")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    demo._open_page("http://127.0.0.1:3")
    assert opened == ["http://127.0.0.1:2"]


@pytest.mark.slow
def test_demo_serves_its_page_and_cleans_up(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "denspi", "demo", "--serve", "--port", "0"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = next(line.split()[-1] for line in process.stdout if " at http://" in line)
        with urllib.request.urlopen(url, timeout=60) as page:
            assert page.headers.get_content_type() == "text/html"
        process.terminate()
        assert process.wait(60) == 0
    assert list(tmp_path.glob("denspi-*")) == []
