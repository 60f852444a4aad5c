# SPDX-License-Identifier: MIT
"""ONNX models in Python: made by the onnx package, run, reshaped and refused."""

from __future__ import annotations

import pathlib
from typing import Any

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


def session(
    host: dlprim.Context, nodes: list[Any], inputs: list[Any], outputs: list[Any], **limits: int
) -> dlprim.ONNXSession:
    """A session of a model of these nodes and values; skips where the library reads none."""
    helper = onnx.helper
    model = helper.make_model(
        helper.make_graph(nodes, "graph", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    try:
        return dlprim.ONNXSession(host, model.SerializeToString(), **limits)
    except dlprim.UnsupportedError as error:
        if "reads no ONNX models" in str(error):
            pytest.skip(str(error))
        raise


def test_session_takes_sizes(host: dlprim.Context) -> None:
    """The same session makes other shapes for other values."""
    helper, proto = onnx.helper, onnx.TensorProto
    runs = session(
        host,
        [helper.make_node("Reshape", ["x", "sizes"], ["y"])],
        [
            helper.make_tensor_value_info("x", proto.FLOAT, [6]),
            helper.make_tensor_value_info("sizes", proto.INT64, ["n"]),
        ],
        [helper.make_tensor_value_info("y", proto.FLOAT, None)],
    )
    assert runs.input_names == ["x", "sizes"] and runs.output_names == ["y"]
    x = np.arange(6, dtype=np.float32)
    for sizes in ((2, 3), (3, 2), (6, 1)):
        y = runs.run({"x": x, "sizes": np.array(sizes, np.int64)})["y"]
        assert y.shape == sizes and y.dtype == np.float32 and y.ravel().tolist() == x.tolist()
    with pytest.raises(dlprim.InvalidArgumentError):
        runs.run({"x": x})
    with pytest.raises(TypeError):
        runs.run({"x": x, "sizes": np.array([object()])})


def test_session_takes_sequences_strings_and_none(host: dlprim.Context) -> None:
    helper, proto = onnx.helper, onnx.TensorProto
    floats = helper.make_tensor_type_proto(proto.FLOAT, None)
    runs = session(
        host,
        [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Identity", ["x"], ["y"])],
        [
            helper.make_value_info("s", helper.make_sequence_type_proto(floats)),
            helper.make_tensor_value_info("x", proto.STRING, [2]),
        ],
        [
            helper.make_value_info("t", helper.make_sequence_type_proto(floats)),
            helper.make_tensor_value_info("y", proto.STRING, [2]),
        ],
    )
    given = [np.array([1, 2], np.float32), np.array([[3]], np.float32)]
    outputs = runs.run({"s": given, "x": np.array(["a", "\u00e9"])})
    assert [part.tolist() for part in outputs["t"]] == [[1, 2], [[3]]]
    assert outputs["y"].tolist() == ["a", "\u00e9"] and outputs["y"].dtype == object


def test_session_asks_whether_there_is_an_element(host: dlprim.Context) -> None:
    helper, proto = onnx.helper, onnx.TensorProto
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(proto.FLOAT, [1]))
    runs = session(
        host,
        [helper.make_node("OptionalHasElement", ["x"], ["y"])],
        [helper.make_value_info("x", optional)],
        [helper.make_tensor_value_info("y", proto.BOOL, [])],
    )
    assert runs.run({"x": None})["y"].item() is False
    assert runs.run({"x": np.array([1], np.float32)})["y"].item() is True


def test_session_limits_loops_and_constants(host: dlprim.Context) -> None:
    """A loop without an end and constants without bounds are errors, at limits that can be set."""
    helper, proto = onnx.helper, onnx.TensorProto
    go, x = helper.make_tensor_value_info("go", proto.BOOL, []), helper.make_tensor_value_info("x", proto.FLOAT, [1])
    count = helper.make_tensor_value_info("i", proto.INT64, [])
    body = helper.make_graph([helper.make_node("Add", ["v", "v"], ["w"])], "body", [count, go, x], [go, x])
    body.input[2].name, body.output[1].name = "v", "w"
    loop = helper.make_node("Loop", ["", "go", "x"], ["y"], body=body)
    endless = session(host, [loop], [go, x], [helper.make_tensor_value_info("y", proto.FLOAT, [1])], max_iterations=7)
    with pytest.raises(dlprim.UnsupportedError, match="more than 7 iterations"):
        endless.run({"go": np.array(True), "x": np.ones(1, np.float32)})

    sizes = helper.make_tensor_value_info("sizes", proto.INT64, [1])
    node = helper.make_node("ConstantOfShape", ["sizes"], ["y"])
    output = helper.make_tensor_value_info("y", proto.FLOAT, [None])
    small = session(host, [node], [sizes], [output], max_known_bytes=100, max_programs=1, max_nodes=5)
    assert small.run({"sizes": np.array([3])})["y"].tolist() == [0, 0, 0]
    with pytest.raises(dlprim.UnsupportedError, match="more than 100 bytes"):
        small.run({"sizes": np.array([1000])})
    with pytest.raises(dlprim.InvalidArgumentError, match="max_programs"):
        session(host, [node], [sizes], [output], max_programs=0)


def test_session_gives_maps(host: dlprim.Context) -> None:
    """ZipMap, with which scikit-learn's exporter ends classifiers, gives a dict for each row, as ONNX Runtime does."""
    helper, proto = onnx.helper, onnx.TensorProto
    scores = [helper.make_tensor_value_info("x", proto.FLOAT, ["n", 2])]

    def run(**labels: list[Any]) -> Any:
        made = session(
            host,
            [
                helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels),
                helper.make_node("Neg", ["x"], ["z"]),
            ],
            scores,
            [onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto(name="z")],
        ).run({"x": np.array([[1, 2], [3, 4]], np.float32)})
        assert made["z"].tolist() == [[-1, -2], [-3, -4]]
        return made["y"]

    assert run(classlabels_int64s=[5, 7]) == [{5: 1.0, 7: 2.0}, {5: 3.0, 7: 4.0}]
    assert run(classlabels_strings=["a", "b"]) == [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}]


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
    with pytest.raises(dlprim.FormatError, match="an ONNX model is expected"):
        dlprim.Net.from_onnx(context, model)
