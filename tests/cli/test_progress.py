"""Where no bar can be there is a line a minute, with what is done, of how much, and the time left."""

from types import SimpleNamespace

import pytest

from denspi.cli import progress
from denspi.cli.progress import progress_bar

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_a_line_a_minute(clock: SimpleNamespace, capsys: Captured) -> None:
    text = "{task.fields[documents]:,} documents, {task.fields[rate]:,.0f} words/s"
    asked = 0

    def total() -> int:
        nonlocal asked
        asked += 1
        return 3_000_000

    with progress_bar(text, total, documents=0, rate=0.0) as show:
        for second in range(1, 150):
            clock.now = float(second)
            show(10_000 if second <= 60 else 5_000, documents=second, rate=10_000.0)
            assert asked == second // 60
    assert capsys.readouterr().err.splitlines() == [
        "60 documents, 10,000 words/s; 600,000 of 3,000,000, 4 min left",
        "120 documents, 10,000 words/s; 900,000 of 3,000,000, 7 min left",  # by the last minute
    ]


@pytest.mark.parametrize(
    ("total", "advance", "said"),
    [
        (0, 2_000_000, "checking; 2.0 MB"),
        (4_000_000, 2_000_000, "checking; 2.0 MB of 4.0 MB, 1 min left"),
        (4_000_000, 0, "checking; 0 bytes of 4.0 MB"),
        (4_000_000, 4_000_000, "checking; 4.0 MB of 4.0 MB, 0 min left"),
    ],
)
def test_what_is_not_known_is_left_out(
    clock: SimpleNamespace, capsys: Captured, total: int, advance: int, said: str
) -> None:
    with progress_bar("checking", lambda: total, in_bytes=True) as show:
        clock.now = 60.0
        show(advance)
    assert capsys.readouterr().err == f"{said}\n"
