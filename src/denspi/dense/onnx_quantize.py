"""ONNX graphs to smaller ones: eight-bit weights by two routes, eight-bit embedding tables, smoothing.

Graph in, graph out; which route a model takes is `export`'s business. Small heads stay as they are: they
weigh nothing, and no sum averages their rounding errors out.
"""

from __future__ import annotations

import logging
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from denspi.vectors import Floats

_HEAD_OUTPUTS = 8  # a product with fewer outputs is a head
_TABLE_ROWS = 1024  # a shorter table (positions, types) is not worth rounding
_WIDEST = 2.0  # smoothed activation channels reach at most this many times the median channel
Feed = Mapping[str, NDArray[np.int64]]


def with_dynamic_int8(model: onnx.ModelProto, reduced_range: bool) -> onnx.ModelProto:
    """Int8 weights, one scale per output; activations are rounded as they come, one scale per tensor."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    heads = [node.name for node, weight in _products(model) if weight.shape[1] < _HEAD_OUTPUTS]
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder) / "model.onnx"
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=reduced_range,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=heads,
            extra_options={"MatMulConstBOnly": True},
        )
        return onnx.load(path)


def with_blocks(model: onnx.ModelProto, block_size: int = 64) -> onnx.ModelProto:
    """Eight-bit weights in blocks along the input (MatMulNBits), activations in int8 blocks as well."""
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    heads = [node.name for node, weight in _products(model) if weight.shape[1] < _HEAD_OUTPUTS]
    with quiet():
        quantizer = MatMulNBitsQuantizer(
            model,
            bits=8,
            block_size=block_size,
            is_symmetric=True,
            accuracy_level=4,
            nodes_to_exclude=heads,
        )
        quantizer.process()
    quantized: onnx.ModelProto = quantizer.model.model
    return quantized


def with_int8_tables(model: onnx.ModelProto) -> onnx.ModelProto:
    """Embedding tables in int8, one scale per row: the row is looked up, then multiplied by its scale."""
    tables = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        table = tables.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None or table.dtype != np.float32 or table.ndim != 2 or len(table) < _TABLE_ROWS:
            nodes.append(node)
            continue
        name, ids, out = node.input[0], node.input[1], node.output[0]
        scales = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-12) / 127
        _add(model, f"{name}.int8", np.rint(table / scales).astype(np.int8))
        _add(model, f"{name}.scales", scales.astype(np.float32))
        nodes += [
            helper.make_node("Gather", [f"{name}.int8", ids], [f"{out}.int8"], axis=0),
            helper.make_node("Cast", [f"{out}.int8"], [f"{out}.whole"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Gather", [f"{name}.scales", ids], [f"{out}.scales"], axis=0),
            helper.make_node("Mul", [f"{out}.whole", f"{out}.scales"], [out]),
        ]
    _replace_nodes(model, nodes)
    return model


def smoothed(model: onnx.ModelProto, feeds: Iterable[Feed]) -> onnx.ModelProto:
    """The same function, easier to round: wide channels of activations narrowed, their weights widened.

    A few channels reach ten times as far as the others, and with one scale for all leave them few levels. The
    feeds show which. (The idea of SmoothQuant, https://arxiv.org/abs/2211.10438, for wide channels only.)
    """
    products = [(node, w) for node, w in _products(model) if w.shape[1] >= _HEAD_OUTPUTS]
    widths = _channel_widths(model, sorted({node.input[0] for node, _ in products}), feeds)
    weights_of = defaultdict(list)
    for node, weight in products:
        weights_of[node.input[0]].append((node, weight))
    nodes: list[onnx.NodeProto] = list(model.graph.node)
    for activation, users in weights_of.items():
        width = widths[activation]
        narrowing = np.maximum(1, width / max(_WIDEST * float(np.median(width)), 1e-6)).astype(np.float32)
        _add(model, f"{activation}.narrowing", 1 / narrowing)
        first = min(number for number, node in enumerate(nodes) if activation in node.input)
        names = [activation, f"{activation}.narrowing"]
        nodes.insert(first, helper.make_node("Mul", names, [f"{activation}.narrow"]))
        for node, weight in users:
            name = f"{node.input[1]}.{activation}"
            _add(model, name, weight * narrowing[:, None])
            node.input[0], node.input[1] = f"{activation}.narrow", name
    _replace_nodes(model, nodes)
    return model


def cleaned(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without what only describes how the graph was made: it names folders of the machine that made it."""
    graph = model.graph
    model.doc_string = graph.doc_string = ""
    for message in (model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        del message.metadata_props[:]
    for node in graph.node:
        node.doc_string = ""
    del graph.value_info[:]
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """Without the log lines that exporters and quantizers write for each node."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _products(model: onnx.ModelProto) -> list[tuple[onnx.NodeProto, Floats]]:
    """Every matrix product with stored weights ``[input, output]``."""
    weights = {t.name: t for t in model.graph.initializer}
    found = [n for n in model.graph.node if n.op_type == "MatMul" and n.input[1] in weights]
    return [(node, numpy_helper.to_array(weights[node.input[1]])) for node in found]


def _channel_widths(model: onnx.ModelProto, names: list[str], feeds: Iterable[Feed]) -> dict[str, Floats]:
    """The largest magnitude of each channel of some activations over all feeds."""
    import onnxruntime

    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    session = onnxruntime.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = [each.name for each in session.get_inputs()]
    widths: dict[str, Floats] = {}
    for feed in feeds:
        found = session.run(names, {name: feed[name] for name in inputs})
        for name, values in zip(names, found, strict=True):
            width = np.abs(values).max(axis=tuple(range(values.ndim - 1)))
            widths[name] = np.maximum(widths.get(name, width), width)
    return widths


def _add(model: onnx.ModelProto, name: str, values: NDArray[np.generic]) -> None:
    model.graph.initializer.append(numpy_helper.from_array(values, name))


def _replace_nodes(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> None:
    """Set the nodes and drop the weights that none of them uses any more."""
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    used = {name for node in copies for name in node.input}
    kept = [
        onnx.TensorProto.FromString(t.SerializeToString()) for t in model.graph.initializer if t.name in used
    ]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(copies)
    model.graph.initializer.extend(kept)
