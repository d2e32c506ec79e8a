"""What a training run is: one TOML file -> `RunSettings`. A table that is present is a stage that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from denspi.dense.lstm import LstmSettings
from denspi.dense.model import PhraseSettings
from denspi.training.examples import Limits
from denspi.training.loop import LoopSettings


@dataclass(frozen=True, slots=True)
class ReaderStage:
    """Train a cross-encoder reader; `batch` counts pairs of question and paragraph."""

    loop: LoopSettings = field(default_factory=LoopSettings)
    batch: int = 48

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError("batch is positive")


@dataclass(frozen=True, slots=True)
class AskStage:
    """Train an asker, let it ask about `text`, and keep what the teacher is sure to answer.

    `batch` counts pairs of paragraph and question; `text` names files or folders that `read_corpus` reads.
    """

    loop: LoopSettings = field(default_factory=LoopSettings)
    batch: int = 256
    text: tuple[Path, ...] = ()
    paragraphs: int = 60_000
    questions: int = 4  # at most, for each paragraph
    confidence: float = 0.5  # the least probability of the teacher's best phrase

    def __post_init__(self) -> None:
        if not self.text or min(self.batch, self.paragraphs, self.questions) < 1:
            raise ValueError("text names at least one path; batch, paragraphs and questions are positive")
        if not 0 <= self.confidence <= 1:
            raise ValueError("confidence lies in [0, 1]")


@dataclass(frozen=True, slots=True)
class MeanStage:
    """Make one phrase model of several: each weight is the mean of theirs.

    `models` are folders of phrase models of one architecture that were trained from the same start.
    """

    models: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if len(self.models) < 2:
            raise ValueError("models names at least two folders of phrase models")


@dataclass(frozen=True, slots=True)
class PhraseLoss:
    """What the phrase model is trained on. Weights of zero leave a part out.

    `no_answer` puts the trainable bias into every softmax (it is of use with negatives only).
    """

    reading: float = 1.0
    in_batch: float = 0.0
    distillation: float = 0.0
    temperature: float = 1.0
    no_answer: bool = False

    def __post_init__(self) -> None:
        if min(self.reading, self.in_batch, self.distillation) < 0 or self.temperature <= 0:
            raise ValueError("weights are not negative, temperature is positive")
        if not (self.reading or self.in_batch or self.distillation):
            raise ValueError("every weight is zero: nothing is left to train on")


@dataclass(frozen=True, slots=True)
class PhraseStage:
    """Train a phrase model; `batch` counts paragraphs, `article_group` how many of them share an article.

    `asked` is how many paragraphs with asked questions (see `training.asked`) come into each epoch, others
    each time. `negatives` says where questions that a paragraph does not answer come from: see
    `training.negatives`.
    """

    loop: LoopSettings = field(default_factory=LoopSettings)
    loss: PhraseLoss = field(default_factory=PhraseLoss)
    batch: int = 12
    article_group: int = 1
    asked: int = 0
    negatives: Literal["none", "paper", "similar_question"] = "none"

    def __post_init__(self) -> None:
        if self.batch < 1 or self.article_group < 1 or self.asked < 0:
            raise ValueError("batch and article_group are positive, asked is not negative")
        if self.negatives != "none" and not self.loss.no_answer:
            raise ValueError(f'negatives = "{self.negatives}" needs loss.no_answer = true')


@dataclass(frozen=True, slots=True)
class PretrainStage(PhraseStage):
    """Train a phrase model on questions made from `text`, files or folders that `read_corpus` reads."""

    text: tuple[Path, ...] = ()
    paragraphs: int = 60_000
    questions: int = 4  # at most, for each paragraph

    def __post_init__(self) -> None:
        PhraseStage.__post_init__(self)
        if not self.text or self.paragraphs < 1 or self.questions < 1:
            raise ValueError("text names at least one path; paragraphs and questions are positive")
        if self.loss.distillation:
            raise ValueError("no teacher has read the questions of this stage; loss.distillation must be 0")


@dataclass(frozen=True, slots=True)
class FilterLoop(LoopSettings):
    """Two linear layers on vectors that are there already: many fast passes."""

    epochs: int = 20
    learning_rate: float = 0.1
    validate_every_epochs: int = 5


@dataclass(frozen=True, slots=True)
class FilterStage:
    """Train the filter heads on the vectors of `paragraphs` paragraphs, choose thresholds, fit the codecs.

    `recall` is the share of the held-out answers that the filter must keep. `model` is the folder of the
    phrase model to start from where no stage of this run makes one.
    """

    loop: FilterLoop = field(default_factory=FilterLoop)
    model: Path | None = None
    recall: float = 0.995
    batch: int = 32
    paragraphs: int = 3000  # their vectors are held in memory
    compact_bytes: int = 56  # of a vector in a compact index; 0: the model gets no compact code

    def __post_init__(self) -> None:
        if not 0 < self.recall <= 1:
            raise ValueError("recall lies in (0, 1]")
        if self.compact_bytes < 0 or self.compact_bytes == 1:
            raise ValueError("compact_bytes is at least 2, or 0 for none")
        if self.batch < 1 or self.paragraphs < 1:
            raise ValueError("batch and paragraphs are positive")


@dataclass(frozen=True, slots=True)
class CalibrateStage:
    """Choose the sparse weight, one of `weights`, and fit the confidence, searching the held-out articles.

    `model` is the folder of the phrase model where no stage of this run makes one.
    """

    weights: tuple[float, ...] = (0.0, 5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0)
    model: Path | None = None

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 0:
            raise ValueError("weights names at least one sparse weight, none of them negative")


@dataclass(frozen=True, slots=True)
class ExportStage:
    """Write the last phrase model, and the reader if the run trains one, as onnxruntime runs them.

    `texts` training paragraphs with a question each show how wide activations are (see `dense.export`).
    """

    route: Literal["float", "int8", "blocks8"] = "int8"
    reduced_range: bool = False
    texts: int = 64

    def __post_init__(self) -> None:
        if self.texts < 0:
            raise ValueError("texts is not negative")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """A whole run. `encoder` is a folder or a hub id; `teacher` a trained reader's folder.

    `asked` are folders that [ask] of other runs left. `start`, a trained reader's folder too, hands its
    fine-tuned encoder to the first stage. With `lstm`, an LSTM is trained from scratch, and `encoder` gives
    nothing but its tokenizer and, where wanted, its embeddings. `dropout` replaces the encoder's own.
    """

    data: Path
    encoder: str
    seed: int = 1
    held_out_share: float = 0.05
    report: Path | None = None  # scored once at the end; nothing is ever chosen on it
    teacher: Path | None = None
    start: Path | None = None
    asked: tuple[Path, ...] = ()
    dropout: float | None = None
    graphs: bool = True  # on a GPU: record the encoder's kernels once and replay them
    compile: bool = False  # on a GPU: compile the phrase loss, which needs a C compiler there
    lstm: LstmSettings | None = None
    model: PhraseSettings = field(default_factory=PhraseSettings)
    limits: Limits = field(default_factory=Limits)
    reader: ReaderStage | None = None
    ask: AskStage | None = None
    mean: MeanStage | None = None
    pretrain: PretrainStage | None = None
    phrase: PhraseStage | None = None
    negatives: PhraseStage | None = None
    filter: FilterStage | None = None
    calibrate: CalibrateStage | None = None
    export: ExportStage | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63 or not 0 < self.held_out_share < 1:
            raise ValueError("seed lies in [0, 2**63), held_out_share between 0 and 1")
        if self.lstm and self.start:
            raise ValueError("lstm and start both say where the encoder comes from: choose one of them")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError("dropout lies in [0, 1)")
        if self.dropout is not None and (self.lstm or self.start):
            raise ValueError(
                "dropout is of the encoder's weights, which lstm (see lstm.dropout) and start replace"
            )
        if self.mean and (
            self.lstm or self.start or self.dropout is not None or self.model != PhraseSettings()
        ):
            raise ValueError("mean goes on with models as they are: leave out model, lstm, start and dropout")
        if self.lstm and self.export:
            raise ValueError("an LSTM runs in torch only and is not exported: leave out lstm or export")
        if self.ask and self.asked:
            raise ValueError("ask and asked both say where asked questions come from: choose one of them")
        if self.ask and not self.teacher:
            raise ValueError("ask needs a teacher to answer; set teacher to a trained reader's folder")
        for name, stage in (("phrase", self.phrase), ("negatives", self.negatives)):
            if stage and stage.asked and not (self.ask or self.asked):
                raise ValueError(
                    f"{name}.asked has no asked questions; add [ask], or set asked to folders of it"
                )
        for name, stage in (("pretrain", self.pretrain), ("phrase", self.phrase)):
            if stage and stage.negatives != "none":
                raise ValueError(f"{name}.negatives has no trained model to find them with; use [negatives]")
        if self.negatives and self.negatives.negatives != "none" and not (self.phrase or self.mean):
            raise ValueError("negatives.negatives are found with the model of [phrase], which is missing")
        has_model = bool(self.mean or self.pretrain or self.phrase or self.negatives)
        for name, last in (("filter", self.filter), ("calibrate", self.calibrate)):
            if last and has_model and last.model:
                raise ValueError(f"{name}.model and a stage that makes a phrase model: choose one of them")
            if last and not has_model and not last.model:
                raise ValueError(f"{name} needs a phrase model: set {name}.model, or train one in [phrase]")
            has_model = has_model or last is not None
        if self.export and not (has_model or self.reader):
            raise ValueError("export has nothing to export: train a model, or name one in [calibrate]")
        if not any(getattr(self, name) for name in _STAGES):
            raise ValueError("no stage to run: add a table such as [reader] or [phrase]")


TrainedStage = ReaderStage | AskStage | PhraseStage | FilterStage
_STAGES = ("reader", "ask", "mean", "pretrain", "phrase", "negatives", "filter", "calibrate", "export")
_PATHS = {"data", "encoder", "teacher", "start", "asked", "text", "model", "models"}


def what_counts(settings: RunSettings, name: str, stage: TrainedStage) -> dict[str, str]:
    """What the weights of a stage depend on, as dotted keys: a checkpoint made with others is not resumed."""
    return _counting(asdict(settings) | {name: asdict(stage)}, name)


def changed_since(record: dict[str, Any], settings: RunSettings, name: str) -> list[str]:
    """What a finished stage was made with otherwise, by the settings that it left; where files lie aside."""
    now = _counting(_as_json(asdict(settings)), name)
    before = _counting(record, name)
    return [
        f"{key} = {before[key]}, now {now[key]}"
        for key in sorted(before.keys() & now.keys())
        if before[key] != now[key] and key.rpartition(".")[2] not in _PATHS
    ]


def _as_json(table: dict[str, Any]) -> dict[str, Any]:
    """As it is written beside the scores."""
    found: dict[str, Any] = json.loads(json.dumps(table, default=str))
    return found


def _counting(table: dict[str, Any], name: str) -> dict[str, str]:
    others = {*_STAGES, "report", "graphs", "compile"} - {name}
    loop = ("validate_every_epochs", "checkpoint_every_seconds", "workers")
    aside = {f"{name}.loop.{key}" for key in loop}
    flat = _flat({key: value for key, value in table.items() if key not in others})
    return {key: value for key, value in flat if key not in aside}


def _flat(table: dict[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{where}{key}.")
        else:
            yield where + key, str(value)
