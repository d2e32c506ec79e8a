"""A training run: stages in order, each resumable, each leaving a folder behind.

    OUTPUT/reader     a trained reader
    OUTPUT/ask        questions that a model wrote about plain text, answered by the teacher
    OUTPUT/mean       a phrase model whose weights are the mean of several others
    OUTPUT/pretrain   a phrase model trained on questions made from plain text
    OUTPUT/phrase     the phrase model trained within paragraphs (the paper's Table 1)
    OUTPUT/negatives  the same, trained on against other paragraphs (the paper's Table 2)
    OUTPUT/filter     the last of them, with its filter and its codecs; filter.json: recall against size
    OUTPUT/calibrate  the same, with its sparse weight and its confidence; calibration.json: the open setting
    OUTPUT/export     the same for onnxruntime; OUTPUT/reader-export the reader

Every stage folder gets model.json, model.safetensors, tokenizer.json, log.jsonl and scores.json; a stage
whose scores.json is there is done and not run again.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from denspi.corpus.squad import SquadArticle, read_squad
from denspi.dense.backbone import AnyBackbone
from denspi.dense.encoder import Encoder, WindowSettings
from denspi.dense.filter import FilterThresholds
from denspi.dense.lstm import MODEL_TYPE as LSTM
from denspi.dense.model import PhraseModel, ReaderModel
from denspi.dense.model_folder import load_phrase_model, read_model_record
from denspi.dense.torch_encoder import torch_encoder
from denspi.errors import InputError, MissingExtraError, ModelError, SettingsError
from denspi.text.tokens import Tokenizer
from denspi.training.asked import (
    WRITTEN,
    articles_of,
    load_asked,
    load_written,
    make_prompts,
    save_asked,
    save_written,
)
from denspi.training.asker import LONGEST, AskerModel, AskerTask, write_questions
from denspi.training.batches import Teacher
from denspi.training.calibrate import calibrate
from denspi.training.cloze import check_text, cloze_examples, sample_paragraphs
from denspi.training.examples import Example, is_held_out, make_examples
from denspi.training.filter_stage import Reading, costs, finish_filter
from denspi.training.filter_task import FilterTask
from denspi.training.lineage import check_order
from denspi.training.loop import Task, evaluated, fit
from denspi.training.mean import mean_model
from denspi.training.phrase_task import PhraseTask, read_scores
from denspi.training.processes import alone_in, choose_device, give_back_gpu, is_first, say, wait
from denspi.training.progress import counting
from denspi.training.reader_task import ReaderTask
from denspi.training.settings import (
    AskStage,
    CalibrateStage,
    ExportStage,
    FilterStage,
    MeanStage,
    PhraseStage,
    PretrainStage,
    ReaderStage,
    RunSettings,
    TrainedStage,
    what_counts,
)
from denspi.training.stage_folder import SCORES, StageFolder
from denspi.training.starting_point import (
    check_limits,
    check_tokenizer,
    find_tokenizer,
    starting_backbone,
    use_graphs,
)
from denspi.training.teacher import ask_teacher, load_teacher, teacher_logits
from denspi.training.thresholds import border_logits, choose_thresholds

# Each goes on from the model of the one before it.
PHRASE_STAGES = ("mean", "pretrain", "phrase", "negatives", "filter", "calibrate")


class Run:
    """One run's data and folders."""

    def __init__(self, settings: RunSettings, output: Path) -> None:
        self.settings, self.output = settings, output
        self._check_models()
        chain = [name for name in PHRASE_STAGES if getattr(settings, name)]
        check_order([(output / name, (output / name / SCORES).exists()) for name in chain])
        if settings.export and not _can_export():
            # Said before hours of training, but no reason against it: GPU machines often have torch alone.
            say(f"export: {MissingExtraError('it', 'train')}; what comes before it is trained all the same")
        self.device = choose_device()
        self.tokenizer_path = find_tokenizer(settings.encoder)
        self.tokenizer = Tokenizer(self.tokenizer_path)
        articles = read_squad(settings.data)
        self.held_out_articles = [a for a in articles if is_held_out(a.title, settings.held_out_share)]
        self.articles = [a for a in articles if not is_held_out(a.title, settings.held_out_share)]
        if not self.articles or not self.held_out_articles:
            raise SettingsError(
                f"{settings.data}: held_out_share {settings.held_out_share} leaves no article on one side of "
                f"{len(articles)}; choose another share, or other data"
            )
        self.examples = self._examples(self.articles, f"{settings.data}, articles to train on")
        self.held_out = self._examples(self.held_out_articles, f"{settings.data}, held-out articles")
        self.report: list[Example] = []
        if settings.report is not None:
            self.report = self._examples(read_squad(settings.report), str(settings.report))
        say(
            f"{len(self.examples)} paragraphs of {len(self.articles)} articles to train on, "
            f"{len(self.held_out)} of {len(self.held_out_articles)} articles held out, on {self.device}"
        )

    def _check_models(self) -> None:
        """What is wrong with the models that the settings name is said before hours of training."""
        settings = self.settings
        named = {
            "mean": settings.mean.models if settings.mean else (),
            "filter": (settings.filter.model,) if settings.filter else (),
            "calibrate": (settings.calibrate.model,) if settings.calibrate else (),
        }
        for name, folders in named.items():
            if (self.output / name / SCORES).exists():
                continue  # it is not needed any more, and may lie on another machine
            for folder in filter(None, folders):
                record = read_model_record(folder, "phrase")
                if settings.export and record["encoder"]["model_type"] == LSTM:
                    raise SettingsError(
                        f"{folder}: an LSTM runs in torch only and is not exported: leave out export"
                    )

    def _examples(self, articles: list[SquadArticle], where: str) -> list[Example]:
        """Refuses what nothing can be learnt from and nothing be scored on."""
        examples = make_examples(articles, self.tokenizer, self.settings.limits)
        if not any(question.gold for example in examples for question in example.questions):
            raise InputError(f"{where}: no question has an answer that its paragraph reads; pass other data")
        return examples

    def run(self) -> None:
        """Run the stages that the settings name."""
        with alone_in(self.output):
            self._run()

    def _run(self) -> None:
        if self.settings.reader:
            self._reader(self.settings.reader)
        if self.settings.ask:
            self._ask(self.settings.ask)
        before = None
        if self.settings.mean:
            self._mean(self.settings.mean)
            before = "mean"
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
            before = "calibrate"
        if self.settings.export and is_first():
            give_back_gpu()  # exporting needs none, and others may wait for it
            self._export(self.settings.export, before)

    def _reader(self, stage: ReaderStage) -> None:
        folder = self._folder("reader", *self._models(None, self.settings.start))
        if folder.is_done():
            return
        torch.manual_seed(self.settings.seed)
        model = ReaderModel(self._backbone())
        task = ReaderTask(
            model, self.tokenizer, self.examples, self.held_out, stage.batch, self.settings.seed
        )
        self._train(folder, task, stage)

    def _ask(self, stage: AskStage) -> None:
        folder = self._folder("ask", *self._models(None, self.settings.start))
        if folder.is_done():
            return
        settings, path = self.settings, folder.path / WRITTEN
        assert settings.teacher is not None
        check_text(stage.text)
        load_teacher(settings.teacher, settings.limits)  # what is wrong with it is said before training
        began, made_with = time.monotonic(), what_counts(settings, "ask", stage)
        if not path.exists():
            torch.manual_seed(settings.seed)
            model = AskerModel(self._backbone()).to(self.device)
            task = AskerTask(model, self.tokenizer, self.examples, self.held_out, stage.batch, settings.seed)
            scores = self._fit(folder, task, stage)
            if is_first():
                save_written(path, self._written(model, stage), {"made_with": made_with, "held_out": scores})
        if is_first():
            articles, record = load_written(path, made_with)
            examples = make_examples(articles, self.tokenizer, settings.limits)
            logits = ask_teacher(settings.teacher, articles, examples, settings.limits, self.device)
            kept, asked = save_asked(path.parent, articles, examples, logits, stage.confidence)
            folder.record({"held_out": record["held_out"], "kept": kept, "asked": asked}, began)
            path.unlink()
        wait()

    def _written(self, model: AskerModel, stage: AskStage) -> list[SquadArticle]:
        """Paragraphs of the stage's text, with the questions that the model asks about them."""
        settings = self.settings
        paragraphs = sample_paragraphs(stage.text, stage.paragraphs, random.Random(settings.seed))
        texts = [text for _, text in paragraphs]
        prompts = make_prompts(texts, self.tokenizer, settings.limits, stage.questions, settings.seed)
        flat = [prompt for each in prompts for prompt in each]
        say(f"ask: writing {len(flat)} questions about {len(paragraphs)} paragraphs")
        longest = min(LONGEST, settings.limits.question_pieces)  # more would not fit behind a long paragraph
        with counting("ask: question", "questions", len(flat)) as told:
            questions = iter(
                write_questions(model, self.tokenizer, flat, settings.seed, longest=longest, told=told)
            )
        return articles_of(paragraphs, ([next(questions) for _ in each] for each in prompts), settings.seed)

    def _mean(self, stage: MeanStage) -> None:
        folder = self._folder("mean", *stage.models)
        if folder.is_done():
            return
        began = time.monotonic()
        if len(set(folder.made_from)) < len(stage.models):
            raise ModelError("mean.models: two of them have the same weights; name models that differ")
        for each in stage.models:
            check_tokenizer(each, self.settings.encoder)
        model = mean_model(stage.models).to(self.device)
        say(f"mean: reading the held-out articles with the mean of {len(stage.models)} models")
        record = {"held_out": evaluated(model, lambda: read_scores(model, self.tokenizer, self.held_out))}
        if self.report:
            record["report"] = evaluated(model, lambda: read_scores(model, self.tokenizer, self.report))
        folder.leave(model, self.tokenizer_path, record, began)

    def _phrase(self, name: str, stage: PhraseStage, before: str | None) -> None:
        folder = self._folder(name, *self._models(before, self.settings.start))
        if folder.is_done():
            return
        if stage.loss.distillation and self.settings.teacher is None:
            raise SettingsError(
                f"{name}.loss.distillation needs a teacher; set teacher to a trained reader's folder"
            )
        if before:
            model = self._phrase_model(before)
            check_limits(self.settings.limits, model.backbone, str(self.output / before))
            use_graphs(model, self.settings, self.device)
        else:
            torch.manual_seed(self.settings.seed)
            second = self._backbone() if self.settings.model.independent_encoders else None
            model = PhraseModel(self._backbone(), self.settings.model, second)
        teacher = self._teacher() if stage.loss.distillation else None
        asked: list[Example] = []
        if stage.asked:
            folders = self.settings.asked or (self.output / "ask",)
            asked, answered = load_asked(folders, self.tokenizer, self.settings.limits, len(self.articles))
            teacher = None if teacher is None else teacher | answered
        examples = self._made_up(stage) if isinstance(stage, PretrainStage) else self.examples
        task = PhraseTask(
            model.to(self.device),
            self.tokenizer,
            examples,
            self.held_out,
            stage,
            self.settings.seed,
            teacher,
            asked,
            is_compiled=self.settings.compile and self.device.type == "cuda",
        )
        self._train(folder, task, stage)

    def _filter(self, stage: FilterStage, before: str | None) -> None:
        folder = self._folder("filter", *self._models(before, stage.model))
        if folder.is_done():
            return
        began = time.monotonic()
        model = self._phrase_model(before, stage.model)
        say(f"filter: encoding up to {stage.paragraphs} paragraphs to train on, and the held-out ones")
        task = FilterTask(model, self.tokenizer, self.examples, self.held_out, stage, self.settings.seed)
        scores = self._fit(folder, task, stage)
        model.eval()
        held_out = Reading(task.encoder, self.held_out, list(task.scored(task.held_out_vectors)))
        curve = finish_filter(task, held_out)
        assert model.filter_thresholds is not None
        assert model.quantizer is not None
        chosen = model.filter_thresholds, model.quantizer, model.compact
        record: dict[str, Any] = {"held_out": scores | costs(held_out, *chosen)}
        if self.report:
            paragraphs = list(task.scored(task.encode(self.report)))
            record["report"] = costs(Reading(task.encoder, self.report, paragraphs), *chosen)
        if is_first():
            (folder.path / "filter.json").write_text(json.dumps(curve, indent=1) + "\n")
        folder.leave(model, self.tokenizer_path, record, began)

    def _calibrate(self, stage: CalibrateStage, before: str | None) -> None:
        folder = self._folder("calibrate", *self._models(before, stage.model))
        if folder.is_done():
            return
        began = time.monotonic()
        model = self._phrase_model(before, stage.model)
        say(f"calibrate: searching {len(self.held_out)} paragraphs for every question about them")
        encoder = torch_encoder(model, self.tokenizer, WindowSettings(batch=512))
        result = calibrate(encoder, self.held_out_articles, stage.weights)
        model.calibration = result.chosen
        chosen = next(each for each in result.weights if each.sparse_weight == result.chosen.sparse_weight)
        record = {"held_out": {**asdict(chosen), "calibration_error": result.calibration_error}}
        if is_first():
            folder.path.mkdir(parents=True, exist_ok=True)
            (folder.path / "calibration.json").write_text(json.dumps(asdict(result), indent=1) + "\n")
        folder.leave(model, self.tokenizer_path, record, began)

    def _export(self, stage: ExportStage, before: str | None) -> None:
        if not _can_export():
            raise MissingExtraError("all else is done; [export]", "train")
        from denspi.dense.export import Calibration, ExportSettings, export_phrase_model, export_reader_model

        shown = [p for article in self.articles for p in article.paragraphs[:1] if p.questions][: stage.texts]
        texts = Calibration([p.context for p in shown], [p.questions[0].text for p in shown])
        settings = ExportSettings(stage.route, stage.reduced_range)
        if self.settings.reader:
            export_reader_model(self.output / "reader", self.output / "reader-export", settings, texts)
            say(f"export: {self.output / 'reader-export'}")
        if before:
            choose = self._thresholds_of if self.settings.filter else None
            export_phrase_model(self.output / before, self.output / "export", settings, texts, choose)
            say(f"export: {self.output / 'export'}")

    def _thresholds_of(self, exported: Encoder) -> FilterThresholds:
        """Chosen anew: what an index keeps depends on what the exported model says, not on its floats."""
        made_with = json.loads((self.output / "filter" / SCORES).read_text())["settings"]
        recall = float(made_with["filter"]["recall"])
        say(f"export: choosing the filter's thresholds for a recall of {recall:g}")
        paragraphs = exported.encode_paragraphs(each.text for each in self.held_out)
        return choose_thresholds(border_logits(self.held_out, paragraphs), recall)

    def _folder(self, name: str, *models: Path) -> StageFolder:
        return StageFolder(self.settings, self.output, name, models)

    def _models(self, before: str | None, given: Path | None = None) -> list[Path]:
        """The folder of the stage before, or the one that the settings name, or none."""
        folder = self.output / before if before else given
        return [folder] if folder else []

    def _phrase_model(self, before: str | None, given: Path | None = None) -> PhraseModel:
        """The model of the stage before, or the one that the settings name."""
        [folder] = self._models(before, given)
        check_tokenizer(folder, self.settings.encoder)
        return load_phrase_model(folder).to(self.device)

    def _made_up(self, stage: PretrainStage) -> list[Example]:
        settings = self.settings
        examples = cloze_examples(
            stage.text, self.tokenizer, settings.limits, stage.paragraphs, stage.questions, settings.seed
        )
        count = sum(len(example.questions) for example in examples)
        say(f"pretrain: {count} questions made from {len(examples)} paragraphs")
        return examples

    def _backbone(self) -> AnyBackbone:
        return starting_backbone(self.settings, self.tokenizer, self.device)

    def _teacher(self) -> dict[str, Teacher]:
        settings = self.settings
        assert settings.teacher is not None
        share = str(settings.held_out_share)
        return teacher_logits(
            settings.teacher, share, self.articles, self.examples, settings.limits, self.device
        )

    def _train(
        self, folder: StageFolder, task: PhraseTask | ReaderTask, stage: PhraseStage | ReaderStage
    ) -> None:
        began = time.monotonic()
        record: dict[str, Any] = {"held_out": self._fit(folder, task, stage)}
        if self.report:
            task.held_out = self.report
            record["report"] = evaluated(task.model, task.validate)
        folder.leave(task.model, self.tokenizer_path, record, began)

    def _fit(self, folder: StageFolder, task: Task, stage: TrainedStage) -> dict[str, float]:
        folder.path.mkdir(parents=True, exist_ok=True)
        say(f"{folder.name}: {len(task.order(0))} batches an epoch, {stage.loop.epochs} epochs")
        made_with = folder.made_with(stage)
        return fit(task, stage.loop, self.settings.seed, folder.path, self.device, made_with)


def _can_export() -> bool:
    return all(find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime"))
