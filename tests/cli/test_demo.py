import pytest

from denspi import cli


def test_demo_shows_the_corpus_and_what_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.run(["demo"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Sample corpus: ")
    assert printed.count("  matched: ") >= 5
    assert "[answers]" in printed
    assert "\x1b" not in printed  # colours are for terminals


def test_demo_leaves_no_files_behind(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert cli.run(["demo"]) == 0
    assert list(folder.iterdir()) == []
