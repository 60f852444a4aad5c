# SPDX-License-Identifier: MIT
"""dlprim.onnx_backend: ONNX's interface for backends, and ONNX's own runner over it."""

from __future__ import annotations

import sys
import types
import unittest
from typing import Any

import dlprim
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnx_backend = pytest.importorskip("dlprim.onnx_backend")
helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT


@pytest.fixture
def model() -> Any:
    """y = relu(x), n = -x, of two numbers each."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["n"])],
        "two",
        [helper.make_tensor_value_info("x", FLOAT, [2])],
        [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("y", "n")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(autouse=True)
def on_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU stands for the device under test."""
    monkeypatch.setenv("DLPRIM_DEVICE", device)


def test_run_model(model: Any) -> None:
    x = np.array([-1, 2], np.float32)
    outputs = onnx_backend.run_model(model, [x])
    assert [output.tolist() for output in outputs] == [[0, 2], [1, -2]]
    assert outputs["n"].tolist() == [1, -2]
    ready = onnx_backend.prepare(model, "CPU")
    assert ready.run({"x": x})["y"].tolist() == [0, 2]
    assert ready.run(x)[1].tolist() == [1, -2]
    with pytest.raises(ValueError, match="the model has 1 inputs, 2 were given"):
        ready.run([x, x])
    with pytest.raises(dlprim.InvalidArgumentError):
        ready.run([x[:1]])
    with pytest.raises(onnx.checker.ValidationError):
        onnx_backend.prepare(onnx.ModelProto())


def test_run_node() -> None:
    node = helper.make_node("Gemm", ["a", "b", ""], ["y"], transB=1)
    a, b = np.array([[1, 2]], np.float32), np.array([[3, 4], [5, 6]], np.float32)
    assert onnx_backend.run_node(node, [a, b])[0].tolist() == [[11, 17]]
    node = helper.make_node("Softmax", ["x"], ["y"])
    x = np.zeros((1, 2, 2), np.float32)
    assert onnx_backend.run_node(node, [x], opset_version=11)[0].tolist() == [[[0.25, 0.25], [0.25, 0.25]]]
    assert onnx_backend.run_node(node, [x], opset_version=13)[0].tolist() == [[[0.5, 0.5], [0.5, 0.5]]]


def test_supports_device(device: str) -> None:
    assert onnx_backend.supports_device("CPU")
    assert onnx_backend.supports_device(device)
    assert not onnx_backend.supports_device("no such device")


def test_sizes_are_inputs() -> None:
    """The sizes of a Reshape arrive with the run, as in ONNX's own tests."""
    node = helper.make_node("Reshape", ["x", "sizes"], ["y"])
    x = np.arange(6, dtype=np.float32)
    for sizes in ([2, 3], [3, 2], [6]):
        y = onnx_backend.run_node(node, [x, np.array(sizes, np.int64)])[0]
        assert y.shape == tuple(sizes) and y.ravel().tolist() == x.tolist()


def test_onnx_runner() -> None:
    """ONNX's own runner, unchanged, on a few of its cases."""
    # Importing ONNX's cases runs numpy on numbers that overflow on purpose.
    with np.errstate(all="ignore"):
        runner = pytest.importorskip("onnx.backend.test").BackendTest(onnx_backend, __name__)
    runner.include(r"test_(relu|add|add_bcast|reshape_negative_dim|softmax_axis_1|concat_2d_axis_0)_cpu")
    module = types.ModuleType("cases")
    for name, case in runner.test_cases.items():
        setattr(module, name, case)
    sys.modules.pop("cases", None)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    assert result.wasSuccessful(), [text for _, text in (*result.errors, *result.failures)]
    skipped = {str(case) for case, _ in result.skipped}
    assert result.testsRun - len(skipped) >= 6
