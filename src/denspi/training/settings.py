"""What a training run is: one TOML file -> `RunSettings`. A table that is present is a stage that runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from denspi.dense.model import PhraseSettings
from denspi.training.examples import Limits
from denspi.training.loop import LoopSettings
from denspi.training.tasks import PhraseLoss


@dataclass(frozen=True, slots=True)
class ReaderStage:
    """Train a cross-encoder reader."""

    loop: LoopSettings = LoopSettings()
    batch: int = 48


@dataclass(frozen=True, slots=True)
class PhraseStage:
    """Train a phrase model; `batch` counts paragraphs, `article_group` how many of them share an article."""

    loop: LoopSettings = LoopSettings()
    loss: PhraseLoss = PhraseLoss()
    batch: int = 12
    article_group: int = 1


@dataclass(frozen=True, slots=True)
class RunSettings:
    """A whole run. `encoder` is a folder or a hub id; `teacher` a trained reader's folder."""

    data: Path
    encoder: str
    seed: int = 1
    held_out_share: float = 0.05
    report: Path | None = None  # scored once at the end; nothing is ever chosen on it
    teacher: Path | None = None
    graphs: bool = True  # on a GPU: record the encoder's kernels once and replay them
    model: PhraseSettings = PhraseSettings()
    limits: Limits = Limits()
    reader: ReaderStage | None = None
    phrase: PhraseStage | None = None
    negatives: PhraseStage | None = field(default=None)
