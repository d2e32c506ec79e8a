"""A training run: stages in order, each resumable, each leaving a folder behind.

    OUTPUT/reader     a trained reader
    OUTPUT/pretrain   a phrase model trained on questions made from plain text
    OUTPUT/phrase     the phrase model trained within paragraphs (the paper's Table 1)
    OUTPUT/negatives  the same, trained on against other paragraphs (the paper's Table 2)
    OUTPUT/filter     the last of them, with its filter and its quantizer; filter.json: recall against size
    OUTPUT/calibrate  the same, with its sparse weight and its confidence; calibration.json: the open setting

Every stage folder gets model.json, model.safetensors, tokenizer.json, log.jsonl and scores.json; a stage
whose scores.json is there is done and not run again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from denspi.corpus.squad import read_squad
from denspi.dense.backbone import AnyBackbone, Backbone, load_backbone
from denspi.dense.encoder import WindowSettings
from denspi.dense.lstm import LstmBackbone
from denspi.dense.model import PhraseModel, ReaderModel
from denspi.dense.model_folder import load_phrase_model, load_reader_model, save_model
from denspi.dense.torch_encoder import torch_encoder
from denspi.errors import MissingExtraError, ModelError, SettingsError
from denspi.text.tokens import Tokenizer
from denspi.training.batches import Teacher
from denspi.training.calibrate import calibrate
from denspi.training.cloze import cloze_examples
from denspi.training.curves import draw_curves
from denspi.training.examples import Example, is_held_out, make_examples
from denspi.training.filter_stage import Reading, costs, finish_filter
from denspi.training.filter_task import FilterTask
from denspi.training.graphs import GraphReplay
from denspi.training.loop import Task, evaluated, fit
from denspi.training.phrase_task import PhraseTask
from denspi.training.reader_task import ReaderTask, read_pairs
from denspi.training.settings import (
    CalibrateStage,
    FilterStage,
    PhraseStage,
    PretrainStage,
    ReaderStage,
    RunSettings,
    what_counts,
)


class Run:
    """One run's data and folders."""

    def __init__(self, settings: RunSettings, output: Path) -> None:
        self.settings, self.output = settings, output
        self.device = _device()
        self.tokenizer_path = _tokenizer_path(settings.encoder)
        self.tokenizer = Tokenizer(self.tokenizer_path)
        articles = read_squad(settings.data)
        held_out = [a for a in articles if is_held_out(a.title, settings.held_out_share)]
        kept = [a for a in articles if not is_held_out(a.title, settings.held_out_share)]
        if not kept or not held_out:
            raise SettingsError(f"held_out_share {settings.held_out_share} leaves no article on one side")
        self.examples = make_examples(kept, self.tokenizer, settings.limits)
        self.held_out_articles = held_out
        self.held_out = make_examples(held_out, self.tokenizer, settings.limits)
        self.report: list[Example] = []
        if settings.report is not None:
            self.report = make_examples(read_squad(settings.report), self.tokenizer, settings.limits)
        self._say(
            f"{len(self.examples)} paragraphs of {len(kept)} articles to train on, "
            f"{len(self.held_out)} of {len(held_out)} articles held out, on {self.device}"
        )

    def run(self) -> None:
        """Run the stages that the settings name."""
        if self.settings.reader:
            self._reader(self.settings.reader)
        before = None
        for name in ("pretrain", "phrase", "negatives"):
            stage: PhraseStage | None = getattr(self.settings, name)
            if stage:
                self._phrase(name, stage, before)
                before = name
        if self.settings.filter:
            self._filter(self.settings.filter, before)
            before = "filter"
        if self.settings.calibrate:
            self._calibrate(self.settings.calibrate, before)

    def _reader(self, stage: ReaderStage) -> None:
        if self._is_done("reader"):
            return
        torch.manual_seed(self.settings.seed)
        model = ReaderModel(self._backbone())
        task = ReaderTask(
            model, self.tokenizer, self.examples, self.held_out, stage.batch, self.settings.seed
        )
        self._train("reader", task, stage)

    def _phrase(self, name: str, stage: PhraseStage, before: str | None) -> None:
        if self._is_done(name):
            return
        if stage.loss.distillation and self.settings.teacher is None:
            raise SettingsError(
                f"{name}.loss.distillation needs a teacher; set teacher to a trained reader's folder"
            )
        if before:
            model = load_phrase_model(self.output / before)
            self._use_graphs(model)
        else:
            torch.manual_seed(self.settings.seed)
            second = self._backbone() if self.settings.model.independent_encoders else None
            model = PhraseModel(self._backbone(), self.settings.model, second)
        teacher = self._teacher() if stage.loss.distillation else None
        examples = self._made_up(stage) if isinstance(stage, PretrainStage) else self.examples
        task = PhraseTask(
            model.to(self.device),
            self.tokenizer,
            examples,
            self.held_out,
            stage,
            self.settings.seed,
            teacher,
        )
        self._train(name, task, stage)

    def _filter(self, stage: FilterStage, before: str | None) -> None:
        if self._is_done("filter"):
            return
        began = time.monotonic()
        model = self._phrase_model(before, stage.model)
        self._say(f"filter: encoding up to {stage.paragraphs} paragraphs to train on, and the held-out ones")
        task = FilterTask(model, self.tokenizer, self.examples, self.held_out, stage, self.settings.seed)
        scores = self._fit("filter", task, stage)
        model.eval()
        held_out = Reading(task, self.held_out, task.held_out_vectors)
        curve = finish_filter(task, held_out)
        assert model.filter_thresholds is not None
        assert model.quantizer is not None
        chosen = model.filter_thresholds, model.quantizer
        record: dict[str, Any] = {"held_out": scores | costs(held_out, *chosen)}
        if self.report:
            record["report"] = costs(Reading(task, self.report, task.encode(self.report)), *chosen)
        if _is_first():
            (self.output / "filter" / "filter.json").write_text(json.dumps(curve, indent=1) + "\n")
        self._leave("filter", model, record, began)

    def _calibrate(self, stage: CalibrateStage, before: str | None) -> None:
        if self._is_done("calibrate"):
            return
        began = time.monotonic()
        model = self._phrase_model(before, stage.model)
        self._say(f"calibrate: searching {len(self.held_out)} paragraphs for every question about them")
        encoder = torch_encoder(model, self.tokenizer, WindowSettings(batch=512))
        result = calibrate(encoder, self.held_out_articles, stage.weights)
        model.calibration = result.chosen
        chosen = next(each for each in result.weights if each.sparse_weight == result.chosen.sparse_weight)
        record = {"held_out": {**asdict(chosen), "calibration_error": result.calibration_error}}
        if _is_first():
            folder = self.output / "calibrate"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "calibration.json").write_text(json.dumps(asdict(result), indent=1) + "\n")
        self._leave("calibrate", model, record, began)

    def _phrase_model(self, before: str | None, given: Path | None) -> PhraseModel:
        """The model of the stage before, or the one that the settings name."""
        folder = self.output / before if before else given
        assert folder is not None
        if (folder / "tokenizer.json").read_bytes() != self.tokenizer_path.read_bytes():
            raise ModelError(
                f"{folder}: its tokenizer is not that of {self.settings.encoder}; set encoder to it"
            )
        return load_phrase_model(folder).to(self.device)

    def _made_up(self, stage: PretrainStage) -> list[Example]:
        settings = self.settings
        examples = cloze_examples(
            stage.text, self.tokenizer, settings.limits, stage.paragraphs, stage.questions, settings.seed
        )
        count = sum(len(example.questions) for example in examples)
        self._say(f"pretrain: {count} questions made from {len(examples)} paragraphs")
        return examples

    def _is_done(self, name: str) -> bool:
        done = (self.output / name / "scores.json").exists()
        if done:
            self._say(f"{name}: done before; remove {self.output / name} to train it again")
        return done

    def _train(self, name: str, task: PhraseTask | ReaderTask, stage: PhraseStage | ReaderStage) -> None:
        began = time.monotonic()
        record: dict[str, Any] = {"held_out": self._fit(name, task, stage)}
        if self.report:
            task.held_out = self.report
            record["report"] = evaluated(task.model, task.validate)
        self._leave(name, task.model, record, began)

    def _fit(self, name: str, task: Task, stage: PhraseStage | ReaderStage | FilterStage) -> dict[str, float]:
        folder = self.output / name
        folder.mkdir(parents=True, exist_ok=True)
        self._say(f"{name}: {len(task.order(0))} batches an epoch, {stage.loop.epochs} epochs")
        made_with = what_counts(self.settings, name, stage)
        return fit(task, stage.loop, self.settings.seed, folder, self.device, made_with)

    def _leave(
        self, name: str, model: PhraseModel | ReaderModel, record: dict[str, Any], began: float
    ) -> None:
        """Write what a finished stage leaves; scores.json last, which says that it is finished."""
        folder = self.output / name
        record["seconds"] = round(time.monotonic() - began, 1)
        record["settings"] = json.loads(json.dumps(asdict(self.settings), default=str))
        if _is_first():
            save_model(model, self.tokenizer_path, folder)
            half_written = folder / "scores.tmp"  # an empty one, on a full disk, is no sign of a done stage
            half_written.write_text(json.dumps(record, indent=1) + "\n")
            os.replace(half_written, folder / "scores.json")
            (folder / "checkpoint.pt").unlink(missing_ok=True)
            try:
                if (folder / "log.jsonl").exists():  # not every stage has steps
                    draw_curves(folder)
            except MissingExtraError as error:
                self._say(f"{folder / 'curves.png'}: not drawn, {error}")
        _wait()
        self._say(f"{name}: done, {json.dumps({k: v for k, v in record.items() if k != 'settings'})}")

    def _teacher(self) -> dict[str, Teacher]:
        """The teacher's word logits for every training question, computed once and kept in its folder."""
        folder = self.settings.teacher
        assert folder is not None
        path = folder / f"teacher-{self.settings.held_out_share}.npz"
        asked = [(e, q) for e in self.examples for q in e.questions if q.gold]
        if _is_first() and not path.exists():
            self._ask_teacher(folder, path)
        _wait()
        with np.load(path, allow_pickle=False) as arrays:
            start, end = arrays["start"], arrays["end"]
        borders = np.cumsum([0, *(len(e.tokens.word_starts) for e, _ in asked)])
        if borders[-1] != len(start):
            raise ModelError(f"{path}: was made for other data; remove it to make it again")
        return {
            q.question_id: (start[a:b], end[a:b])
            for (_, q), a, b in zip(asked, borders, borders[1:], strict=False)
        }

    def _ask_teacher(self, folder: Path, path: Path) -> None:
        model = load_reader_model(folder).to(self.device)
        pairs = [(e, q) for e in self._teacher_examples(folder) for q in e.questions if q.gold]
        self._say(f"teacher: reading {len(pairs)} pairs")
        sides = list(read_pairs(model, Tokenizer(folder / "tokenizer.json"), pairs))
        half_written = path.with_name("half-written.npz")
        flat = [np.concatenate([s[side] for s in sides]).astype(np.float16) for side in (0, 1)]
        np.savez(half_written, start=flat[0], end=flat[1])
        os.replace(half_written, path)

    def _teacher_examples(self, folder: Path) -> Sequence[Example]:
        """The same paragraphs in the teacher's pieces; words are the same whatever the pieces."""
        tokenizer = Tokenizer(folder / "tokenizer.json")
        articles = [
            a
            for a in read_squad(self.settings.data)
            if not is_held_out(a.title, self.settings.held_out_share)
        ]
        theirs = make_examples(articles, tokenizer, self.settings.limits)
        for ours, other in zip(self.examples, theirs, strict=True):
            if len(ours.tokens.word_starts) != len(other.tokens.word_starts):
                raise ModelError(
                    f"{folder}: its tokenizer cuts paragraphs elsewhere; it cannot teach this encoder"
                )
        return theirs

    def _backbone(self) -> AnyBackbone:
        backbone = self._first_backbone()
        needed = self.settings.limits.paragraph_pieces + self.settings.limits.question_pieces + 4
        if needed > backbone.max_pieces:
            raise SettingsError(f"limits: {needed} pieces do not fit the encoder's {backbone.max_pieces}")
        self._use_graphs(backbone)
        return backbone

    def _first_backbone(self) -> AnyBackbone:
        if self.settings.start:
            return load_reader_model(self.settings.start).backbone
        if self.settings.lstm:
            return LstmBackbone(self.settings.lstm, self.tokenizer.vocab_size)
        return load_backbone(self.settings.encoder)

    def _use_graphs(self, model: nn.Module) -> None:
        if self.settings.graphs and self.device.type == "cuda":
            for module in model.modules():
                if isinstance(module, Backbone):
                    module.replay = GraphReplay(module)

    def _say(self, line: str) -> None:
        if _is_first():
            print(line, file=sys.stderr, flush=True)


def _is_first() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def _wait() -> None:
    """Until every process is here: what one of them wrote, the others may read after this."""
    if dist.is_initialized():
        dist.barrier()


def _device() -> torch.device:
    """One process per GPU under torchrun, else the one GPU, else the CPU."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        torch.backends.cuda.matmul.allow_tf32 = True
        # It plans anew for every shape, and ours vary with each batch.
        torch.backends.cuda.enable_cudnn_sdp(False)
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _tokenizer_path(encoder: str) -> Path:
    folder = Path(encoder)
    if folder.is_dir():
        return folder / "tokenizer.json"
    from huggingface_hub import hf_hub_download  # comes with transformers; only a hub id needs it

    try:
        return Path(hf_hub_download(encoder, "tokenizer.json"))
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ModelError(f"{encoder}: neither a folder nor reachable on the hub ({first})") from None
