"""The folder of one stage of a run: whether the stage is done, and what it leaves there.

scores.json comes last and whole: where it is, the stage is done and not run again. Trains nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from denspi.dense.model import PhraseModel, ReaderModel
from denspi.dense.model_folder import save_model
from denspi.errors import MissingExtraError, ModelError
from denspi.training.curves import draw_curves
from denspi.training.lineage import check_made_from, weights_of
from denspi.training.processes import is_first, say, wait
from denspi.training.settings import RunSettings, TrainedStage, changed_since, what_counts

SCORES = "scores.json"


class StageFolder:
    """`models` are the folders of those that the stage goes on from."""

    def __init__(self, settings: RunSettings, output: Path, name: str, models: Sequence[Path] = ()) -> None:
        self.settings, self.name, self.path, self.models = settings, name, output / name, models
        self.made_from = weights_of(models)

    def is_done(self) -> bool:
        """Says so, and with which other settings; `ModelError` if it was made from other models."""
        path = self.path / SCORES
        if not path.exists():
            return False
        try:
            record = json.loads(path.read_text())
            changed = changed_since(record["settings"], self.settings, self.name)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ModelError(
                f"{path}: not what a stage leaves; remove {self.path} to train it again"
            ) from None
        check_made_from(self.path, record.get("made_from", []), self.made_from, self.models)
        otherwise = f" with {'; '.join(changed)}" if changed else ""
        say(f"{self.name}: done before{otherwise}; remove {self.path} to train it again")
        return True

    def made_with(self, stage: TrainedStage) -> dict[str, Any]:
        """What a checkpoint must have been made with to be resumed."""
        found: dict[str, Any] = {**what_counts(self.settings, self.name, stage)}
        if self.made_from:
            found["the model before"] = self.made_from[0]
        return found

    def leave(
        self, model: PhraseModel | ReaderModel, tokenizer: Path, record: dict[str, Any], began: float
    ) -> None:
        """Write a trained model and what is to be said of it; of several processes the first does it."""
        if is_first():
            save_model(model, tokenizer, self.path)
            self.record(record, began)
        wait()

    def record(self, record: dict[str, Any], began: float) -> None:
        """Write scores.json, and take away what only an unfinished stage needs."""
        told = {**record, "seconds": round(time.monotonic() - began, 1)}
        settings = json.loads(json.dumps(asdict(self.settings), default=str))
        half_written = self.path / "scores.tmp"  # an empty one, on a full disk, is no sign of a done stage
        written = told | {"made_from": self.made_from, "settings": settings}
        half_written.write_text(json.dumps(written, indent=1) + "\n")
        os.replace(half_written, self.path / SCORES)
        for suffix in (".pt", ".tmp"):  # the second, where a process was killed in writing
            (self.path / f"checkpoint{suffix}").unlink(missing_ok=True)
        try:
            if (self.path / "log.jsonl").exists():  # not every stage has steps
                draw_curves(self.path)
        except MissingExtraError as error:
            say(f"{self.path / 'curves.png'}: not drawn, {error}")
        say(f"{self.name}: done, {json.dumps(told)}")
