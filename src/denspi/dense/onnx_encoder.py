"""The exported phrase model in onnxruntime: what answers questions and builds indexes on a CPU. Never torch.

One text at a time. Dynamic int8 takes one activation scale per input tensor, so a text computed together with
others would get vectors that depend on them; and on a core, texts one by one are faster than padded batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from denspi.dense.codec import RowCodec
from denspi.dense.compact import COMPACT, load_compact
from denspi.dense.encoder import Ids, Layout, PhraseEncoder, WindowSettings
from denspi.dense.quantizer import QUANTIZER, load_quantizer
from denspi.dense.runtime_folder import (
    GRAPH,
    PARAGRAPH_GRAPH,
    PHRASE_KIND,
    QUESTION_GRAPH,
    RECORD,
    TOKENIZER,
    check_files,
    read_record,
)
from denspi.errors import ModelError
from denspi.text.tokens import Tokenizer
from denspi.vectors import Floats

_INPUTS = {"ids", "mask", "types"}


class OnnxRuntime:
    """Runs one graph for paragraphs and questions, or one for each."""

    def __init__(self, paragraphs: Any, questions: Any, layout: Layout, max_pieces: int) -> None:
        self.layout, self.max_pieces = layout, max_pieces
        self._sessions = {False: paragraphs, True: questions}
        self._inputs = {key: [i.name for i in s.get_inputs()] for key, s in self._sessions.items()}

    def rows(self, framed: Sequence[Ids], is_question: bool) -> list[Floats]:
        """One array ``[piece, columns]`` per text."""
        session, inputs = self._sessions[is_question], self._inputs[is_question]
        results: list[Floats] = []
        for ids in framed:
            given = {
                "ids": ids[None].astype(np.int64),
                "mask": np.ones((1, len(ids)), np.int64),
                "types": np.full((1, len(ids)), int(is_question), np.int64),
            }
            results.append(session.run(None, {name: given[name] for name in inputs})[0][0])
        return results


def load_encoder(folder: Path, settings: WindowSettings | None = None, threads: int = 1) -> PhraseEncoder:
    """The encoder of an exported model folder; all of it, or `ModelError`.

    One thread by default: a second, busy core makes two threads slower than one. Scale by processes.
    """
    record = read_record(folder, PHRASE_KIND)
    names = {name for name, _ in record.files}
    graphs = (GRAPH,) if GRAPH in names else (PARAGRAPH_GRAPH, QUESTION_GRAPH)
    if record.layout is None or not {TOKENIZER, *graphs} <= names:
        raise ModelError(
            f"{folder / RECORD}: not a model record (a graph, the tokenizer or the layout lacks)"
        )
    check_files(folder, record)
    tokenizer = Tokenizer(folder / TOKENIZER)
    sessions = [open_session(folder / name, threads) for name in graphs]
    runtime = OnnxRuntime(sessions[0], sessions[-1], record.layout, record.max_pieces)
    columns = sessions[0].get_outputs()[0].shape[-1]
    if columns != record.layout.columns:
        raise ModelError(f"{folder / graphs[0]}: rows of {columns}, model.json says {record.layout.columns}")
    quantizer = load_quantizer(folder / QUANTIZER) if QUANTIZER in names else None
    compact = load_compact(folder / COMPACT) if COMPACT in names else None
    codecs: tuple[tuple[str, RowCodec | None], ...] = ((QUANTIZER, quantizer), (COMPACT, compact))
    for name, codec in codecs:
        if codec and not codec.fits(record.layout.vector_dim, record.layout.coherency_dim):
            raise ModelError(f"{folder / name}: made for vectors of other sizes than model.json says")
    return PhraseEncoder(tokenizer, runtime, settings, record.filter, quantizer, record.calibration, compact)


def open_session(path: Path, threads: int = 1) -> Any:
    """An onnxruntime session on the CPU, or `ModelError`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised, not printed
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's errors share no narrower base
        first = str(error).strip().splitlines()[0]
        raise ModelError(f"{path}: onnxruntime cannot load it ({first})") from None
    if not {i.name for i in session.get_inputs()} <= _INPUTS:
        raise ModelError(
            f"{path}: its inputs are not those of an exported model ({', '.join(sorted(_INPUTS))})"
        )
    return session
