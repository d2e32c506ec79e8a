"""Rounding a small hand-made graph: what comes out is near what the float graph gives."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from denspi.dense.onnx_quantize import cleaned, smoothed, with_blocks, with_dynamic_int8, with_int8_tables

ROWS, DIM, OUT = 2000, 32, 48
IDS = np.random.default_rng(1).integers(0, ROWS, (1, 200))


def graph(widest: float = 1.0) -> onnx.ModelProto:
    """A table and a product with 48 outputs; the first channel of the rows reaches `widest` times as far."""
    chance = np.random.default_rng(0)
    table = chance.normal(size=(ROWS, DIM)).astype(np.float32)
    table[:, 0] *= widest
    table[5] *= 100  # one row far larger than the others must not coarsen them
    weights = chance.normal(size=(DIM, OUT)).astype(np.float32) / DIM**0.5
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["found"], name="look up"),
        helper.make_node("MatMul", ["found", "weights"], ["rows"], name="multiply"),
    ]
    made = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["text", "piece"])],
        [helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, ["text", "piece", OUT])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(weights, "weights")],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(model: onnx.ModelProto, ids: NDArray[np.int64] = IDS) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rows: NDArray[np.float32] = session.run(None, {"ids": ids})[0]
    return rows


def error(model: onnx.ModelProto, widest: float = 1.0) -> float:
    """Root mean square difference from the float graph, by its own deviation."""
    right = run(graph(widest))
    return float(np.sqrt(np.square(run(model) - right).mean()) / right.std())


def test_tables_are_a_quarter_and_close() -> None:
    rounded = with_int8_tables(graph())
    assert error(rounded) < 0.01
    assert rounded.ByteSize() < 0.35 * graph().ByteSize()


def test_a_large_row_does_not_coarsen_the_others() -> None:
    small = np.array([[1, 2, 3]])
    np.testing.assert_allclose(run(with_int8_tables(graph()), small), run(graph(), small), atol=0.05)


def test_both_routes_are_close() -> None:
    assert error(with_dynamic_int8(graph(), reduced_range=False)) < 0.02
    assert error(with_dynamic_int8(graph(), reduced_range=True)) < 0.04
    assert error(with_blocks(graph(), 32)) < 0.02


def test_smoothing_changes_nothing_but_the_rounding() -> None:
    smooth = smoothed(graph(widest=40.0), [{"ids": IDS}])
    assert error(smooth, 40.0) < 1e-5
    plain = error(with_dynamic_int8(graph(40.0), reduced_range=False), 40.0)
    assert error(with_dynamic_int8(smooth, reduced_range=False), 40.0) < plain


def test_cleaned_graphs_have_no_history() -> None:
    model = graph()
    model.graph.node[0].metadata_props.add(key="trace", value="a folder of this machine")
    model.graph.node[0].doc_string = "so were they made"
    assert b"they made" not in (text := cleaned(model).SerializeToString())
    assert b"this machine" not in text
