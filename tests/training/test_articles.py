"""Training articles give weights, held-out ones choices; `report` gives neither."""

from pathlib import Path
from typing import Any

import pytest
from tests.tiny import save_facts, settings

from denspi.dense.export import Calibration, ChooseThresholds, ExportSettings, export_phrase_model
from denspi.dense.onnx_encoder import load_encoder
from denspi.settings import from_table
from denspi.training import calibrate, thresholds
from denspi.training.run import Run
from denspi.training.settings import RunSettings


def test_every_stage_sees_its_own_articles(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def fit(task: Any, *_: object) -> dict[str, float]:
        seen[type(task).__name__] = task.examples, task.held_out
        return {}

    def search(encoder: Any, articles: Any, weights: Any) -> Any:
        seen["calibrate"] = articles
        return calibrate.calibrate(encoder, articles, weights)

    def export(
        model: Path, output: Path, settings: ExportSettings, shown: Calibration, choose: ChooseThresholds
    ) -> None:
        seen["export"] = settings, shown
        export_phrase_model(model, output, settings, shown, choose)

    def chosen(logits: Any, recall: float) -> Any:
        seen["thresholds"] = logits
        return thresholds.choose_thresholds(logits, recall)

    monkeypatch.setattr("denspi.training.run.fit", fit)
    monkeypatch.setattr("denspi.training.run.calibrate", search)
    monkeypatch.setattr("denspi.dense.export.export_phrase_model", export)
    monkeypatch.setattr("denspi.training.run.choose_thresholds", chosen)
    save_facts(tmp_path / "report.json", articles=3, seed=9)
    stages = {
        "phrase": {"batch": 36},
        "filter": {"paragraphs": 1000},
        "calibrate": {"weights": [0, 50]},
        "export": {"route": "int8", "reduced_range": True, "texts": 5},
    }
    table = settings(tiny, report=str(tmp_path / "report.json"), **stages)
    run = Run(from_table(RunSettings, table), tmp_path / "run")
    run.run()

    trained, held_out = ({a.title for a in side} for side in (run.articles, run.held_out_articles))
    assert trained
    assert held_out
    assert not trained & held_out
    assert trained | held_out == {f"Article_{n}" for n in range(40)}
    for examples, articles in ((run.examples, run.articles), (run.held_out, run.held_out_articles)):
        assert [e.text for e in examples] == [p.context for a in articles for p in a.paragraphs]
    for task in ("PhraseTask", "FilterTask"):
        assert all(a is b for a, b in zip(seen[task][0], run.examples, strict=True))
        assert seen[task][1] is run.held_out
    assert seen["calibrate"] is run.held_out_articles
    first = [article.paragraphs[0] for article in run.articles[:5]]
    shown = Calibration([p.context for p in first], [p.questions[0].text for p in first])
    assert seen["export"] == (ExportSettings("int8", reduced_range=True), shown)
    exported = load_encoder(tmp_path / "run" / "export").encode_paragraphs(e.text for e in run.held_out)
    expected = thresholds.border_logits(run.held_out, exported)
    assert (seen["thresholds"].starts == expected.starts).all()
