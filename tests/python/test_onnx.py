# SPDX-License-Identifier: MIT
"""ONNX models in Python: made by the onnx package, run, reshaped and refused."""

from __future__ import annotations

import pathlib

import dlprim
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    """y = relu(x @ w), where the batch is open."""
    helper, weight = onnx.helper, np.array([[1, -1], [2, 0.5]], np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Relu", ["product"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 2])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 2])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_from_onnx(context: dlprim.Context, model: pathlib.Path) -> None:
    try:
        net = dlprim.Net.from_onnx(context, str(model), batch=2)
    except dlprim.UnsupportedError as error:
        if "reads no ONNX models" in str(error):
            pytest.skip(str(error))
        raise
    x = np.array([[1, 2], [-3, 4]], np.float32)
    assert net.forward(x)["y"].numpy().tolist() == [[5, 0], [5, 5]]
    net.reshape(1)
    assert net.forward(x[:1])["y"].numpy().tolist() == [[5, 0]]
    with pytest.raises(ValueError, match="does not end in .onnx"):
        dlprim.Net.from_onnx(context, "net.json")
    model.write_bytes(b"{}")
    with pytest.raises(dlprim.FormatError, match="no ONNX model"):
        dlprim.Net.from_onnx(context, model)
