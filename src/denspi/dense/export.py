"""Trained torch models to folders that onnxruntime runs: a graph per encoder, quantized, and the tokenizer.

    inputs   ids, mask, types   [text, piece] int64; types are 1 for questions
    outputs  rows               [text, piece, columns] of a phrase model (see `encoder.Layout`)
             logits             [pair, piece, 2] of a reader: start and end

Needs torch and onnx. The same folder and settings give the same bytes, on the same versions of both.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from denspi.dense.backbone import AnyBackbone, Backbone
from denspi.dense.calibration import ModelCalibration
from denspi.dense.compact import COMPACT, CompactQuantizer, save_compact
from denspi.dense.encoder import Encoder, Layout
from denspi.dense.filter import FilterThresholds
from denspi.dense.model import PhraseModel, ReaderModel
from denspi.dense.model_folder import load_phrase_model, load_reader_model
from denspi.dense.onnx_encoder import load_encoder
from denspi.dense.onnx_quantize import (
    Feed,
    cleaned,
    quiet,
    smoothed,
    with_blocks,
    with_dynamic_int8,
    with_int8_tables,
)
from denspi.dense.pairs import Ids, frame_pair, separators_for
from denspi.dense.quantizer import QUANTIZER, Quantizer, save_quantizer
from denspi.dense.runtime_folder import (
    GRAPH,
    PARAGRAPH_GRAPH,
    PHRASE_KIND,
    QUESTION_GRAPH,
    READER_KIND,
    TOKENIZER,
    Quantization,
    RuntimeRecord,
    hash_files,
    write_folder,
    write_record,
)
from denspi.dense.torch_encoder import layout_of
from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer

_OPSET = 20  # the first with Gelu as one operator: a twentieth of the time of a paragraph
_INPUTS = ["ids", "mask", "types"]


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """Which route the weights take (see `runtime_folder.Quantization`)."""

    route: Literal["float", "int8", "blocks8"] = "int8"
    reduced_range: bool = False


@dataclass(frozen=True, slots=True)
class Calibration:
    """Texts that show how wide activations are; with none, int8 is not smoothed.

    A reader is shown pairs: as many questions as paragraphs, each with the paragraph at its place.
    """

    paragraphs: Sequence[str] = ()
    questions: Sequence[str] = ()


ChooseThresholds = Callable[[Encoder], FilterThresholds]
"""For an exported model, which is whole but for them."""
DEFAULT = ExportSettings()
NO_CALIBRATION = Calibration()


@dataclass(frozen=True, slots=True)
class Traced:
    """A model's graphs in float, and what its record will say."""

    kind: str
    graphs: dict[str, onnx.ModelProto]  # by file name
    tokenizer: Path
    max_pieces: int
    layout: Layout | None = None
    filter: FilterThresholds | None = None
    quantizer: Quantizer | None = None
    calibration: ModelCalibration | None = None
    separators: int | None = None
    compact: CompactQuantizer | None = None


def export_phrase_model(
    model_folder: Path,
    output: Path,
    settings: ExportSettings = DEFAULT,
    calibration: Calibration = NO_CALIBRATION,
    choose: ChooseThresholds | None = None,
) -> RuntimeRecord:
    """Write the runtime folder of a trained phrase model; `choose` gives its filter the thresholds."""
    return write_runtime(trace_phrase_model(model_folder), output, settings, calibration, choose)


def export_reader_model(
    model_folder: Path,
    output: Path,
    settings: ExportSettings = DEFAULT,
    calibration: Calibration = NO_CALIBRATION,
) -> RuntimeRecord:
    """Write the runtime folder of a trained reader."""
    return write_runtime(trace_reader_model(model_folder), output, settings, calibration)


def trace_phrase_model(model_folder: Path) -> Traced:
    """One graph, or two where questions have an encoder of their own."""
    model = load_phrase_model(model_folder)
    backbone = _exportable(model.backbone, model_folder)
    backbones = {GRAPH: backbone}
    if model.question_backbone is not None:
        second = _exportable(model.question_backbone, model_folder)
        backbones = {PARAGRAPH_GRAPH: backbone, QUESTION_GRAPH: second}
    graphs = {name: _graph(_Rows(model, backbone), backbone) for name, backbone in backbones.items()}
    max_pieces = min(backbone.max_pieces for backbone in backbones.values())
    return Traced(
        PHRASE_KIND,
        graphs,
        model_folder / TOKENIZER,
        max_pieces,
        layout_of(model),
        model.filter_thresholds,
        model.quantizer,
        model.calibration,
        compact=model.compact,
    )


def trace_reader_model(model_folder: Path) -> Traced:
    """The reader's graph."""
    model = load_reader_model(model_folder)
    graphs = {GRAPH: _graph(model, _exportable(model.backbone, model_folder))}
    separators = separators_for(model.backbone.has_types)
    tokenizer, max_pieces = model_folder / TOKENIZER, model.backbone.max_pieces
    return Traced(READER_KIND, graphs, tokenizer, max_pieces, separators=separators)


def write_runtime(
    traced: Traced,
    output: Path,
    settings: ExportSettings,
    calibration: Calibration = NO_CALIBRATION,
    choose: ChooseThresholds | None = None,
) -> RuntimeRecord:
    """Quantize traced graphs and write the runtime folder."""
    is_int8 = settings.route == "int8"
    feeds = _feeds(traced, calibration) if is_int8 else []
    with tempfile.TemporaryDirectory() as folder:
        finished = Path(folder)
        for name, graph in traced.graphs.items():
            onnx.save(_quantized(graph, settings, feeds), finished / name)
        shutil.copyfile(traced.tokenizer, finished / TOKENIZER)
        names = [*traced.graphs, TOKENIZER]
        if traced.quantizer is not None:
            save_quantizer(traced.quantizer, finished / QUANTIZER)
            names.append(QUANTIZER)
        if traced.compact is not None:
            save_compact(traced.compact, finished / COMPACT)
            names.append(COMPACT)
        record = RuntimeRecord(
            traced.kind,
            traced.max_pieces,
            Quantization(settings.route, is_int8 and settings.reduced_range, bool(feeds)),
            hash_files(finished, names),
            traced.layout,
            traced.filter,
            traced.calibration,
            traced.separators,
        )
        if choose is not None:
            write_record(finished, record)
            record = replace(record, filter=choose(load_encoder(finished)))
        write_folder(output, record, finished)
    return record


class _Rows(nn.Module):
    """A phrase model as a function of its three inputs."""

    def __init__(self, model: PhraseModel, backbone: Backbone) -> None:
        super().__init__()
        self.model, self.backbone = model, backbone

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return self.model.rows_of(self.backbone(ids, mask, types))


def _exportable(backbone: AnyBackbone, folder: Path) -> Backbone:
    if not isinstance(backbone, Backbone):
        raise ModelError(
            f"{folder}: has no transformers encoder and cannot be exported; it runs in torch only"
        )
    return backbone


def _graph(module: nn.Module, backbone: Backbone) -> onnx.ModelProto:
    """Trace with two texts of seven pieces; both sizes stay free."""
    # Attention in its plain form: the other adds branches for texts that are all padding, and is slower here.
    backbone.encoder.set_attn_implementation("eager")
    ids = torch.ones((2, 7), dtype=torch.int64)
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    output = "logits" if isinstance(module, ReaderModel) else "rows"
    with warnings.catch_warnings(), quiet(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(),
            (ids, torch.ones_like(ids), torch.zeros_like(ids)),
            input_names=_INPUTS,
            output_names=[output],
            dynamic_shapes=(free, free, free),
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = cleaned(program.model_proto)
    for value in (*model.graph.input, *model.graph.output):
        for dim, name in zip(value.type.tensor_type.shape.dim, ("text", "piece"), strict=False):
            dim.dim_param = name
    return model


def _quantized(traced: onnx.ModelProto, settings: ExportSettings, feeds: list[Feed]) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(traced)
    if settings.route == "float":
        return model
    if settings.route == "blocks8":
        return cleaned(with_int8_tables(with_blocks(model)))
    if feeds:
        model = smoothed(model, feeds)
    return cleaned(with_int8_tables(with_dynamic_int8(model, settings.reduced_range)))


def _feeds(traced: Traced, calibration: Calibration) -> list[Feed]:
    tokenizer, limit = Tokenizer(traced.tokenizer), traced.max_pieces
    paragraphs, questions = map(tokenizer.ids_batch, (calibration.paragraphs, calibration.questions))
    framed: list[tuple[Ids, Ids]] = []
    if traced.separators is not None:
        for question, paragraph in zip(questions, paragraphs, strict=True):
            ids, types, _ = frame_pair(tokenizer, question, paragraph, traced.separators)
            framed.append((ids[:limit], types[:limit]))
    else:
        for texts, type_id in ((paragraphs, 0), (questions, 1)):
            for pieces in texts:
                ids = np.array([tokenizer.cls_id, *pieces[: limit - 2], tokenizer.sep_id], np.int32)
                framed.append((ids, np.full_like(ids, type_id)))
    return [
        {
            "ids": ids[None].astype(np.int64),
            "mask": np.ones((1, len(ids)), np.int64),
            "types": types[None].astype(np.int64),
        }
        for ids, types in framed
    ]
