# SPDX-License-Identifier: MIT
"""dlprim.ops: calls by type, what functions do with their arguments, and what bad ones get."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import ops
from dlprim._core import dtype_name, operator_declarations
from dlprim._operators import signatures, table

NORMAL = np.random.default_rng(7).standard_normal


def random(*shape: int) -> np.ndarray:
    return NORMAL(shape).astype(np.float32)


class Made:
    """Tensors on one context, made of arrays."""

    def __init__(self, context: dlprim.Context) -> None:
        self.context = context

    def __call__(self, array: Any, dtype: Any = np.float32) -> dlprim.Tensor:
        return dlprim.Tensor(self.context, np.asarray(array, dtype))


@pytest.fixture
def make(context: dlprim.Context) -> Made:
    return Made(context)


@pytest.fixture
def on_host(host: dlprim.Context) -> Made:
    return Made(host)


IMAGES, PLANES, ROWS = random(2, 4, 6, 6), random(3, 4, 5), random(3, 4)
# The places of the pixels of IMAGES, for GridSample.
PIXELS = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 6, dtype=np.float32)]), -1)[np.newaxis].repeat(2, 0)
LABELS = np.array([1, 0, 3], np.int32)
POSITIONS = np.random.default_rng(8).integers(0, 4, (2, 4, 6, 6)).astype(np.int32)
LSTM_PARAMS = [random(8, 4), random(8, 2), random(8), random(8)]
GRU_PARAMS = [random(6, 4), random(6, 2), random(6), random(6)]
STATISTICS = [random(4), np.abs(random(4)) + 0.5]

DECLARATIONS = json.loads(operator_declarations())
# Arguments by name, for calls of the functions in dlprim/_operators/table.py: tensors, parameters, and options.
ARGUMENTS: dict[str, Any] = {
    **{"input": IMAGES, "other": random(2, 4, 6, 6), "addend": random(6), "src": random(2, 4, 6, 6)},
    **{"target": POSITIONS[:, 0], "grid": PIXELS, "index": POSITIONS},
    **{"weight": random(4), "bias": random(4), "running_mean": STATISTICS[0], "running_var": STATISTICS[1]},
    **{"activation": "gelu", "dim": 1, "dims": (1, 0, 2, 3), "dtype": "int32", "k": 2, "kernel_size": 2},
    **{"num_groups": 2, "output_size": 3, "parts": 2, "shape": (2, -1), "stride": 1, "threshold": 0.5, "value": 2.0},
}  # fmt: skip
# Those of one function.
ARGUMENTS_OF: dict[str, dict[str, Any]] = {
    "attention": {name: PLANES for name in ("query", "key", "value")},
    "cumprod": {"dtype": None},
    "cumsum": {"dtype": None},
    "fold": {"input": random(2, 8, 4)},
    "gather_nd": {"index": POSITIONS[0, :, :3, 0] % 2},
    "gated_activation": {"activation": "gelu", "dim": 1},
    "huber_loss": {"target": random(2, 4, 6, 6)},
    "layer_norm": {"normalized_shape": 6, "weight": random(6), "bias": random(6)},
    "matmul": {"bias": random(6)},
    "mse_loss": {"target": random(2, 4, 6, 6)},
    "prelu": {"weight": random(1)},
    "resize": {"size": (9, 4)},
    "rms_norm": {"normalized_shape": 6, "weight": random(6)},
    "rotary_embedding": {"cos": random(6, 3), "sin": random(6, 3)},
    "scatter_nd": {"index": POSITIONS[0, :, :1, 0] % 2, "src": random(4, 4, 6, 6)},
}


def converted(argument: signatures.Argument, value: Any) -> Any:
    """The value of an option as network JSON has it."""
    return dtype_name(value) if argument.name == "dtype" else value


def needs_no_row(row: table.Row) -> bool:
    """Whether the function has all that its operator requires, so that its call by type follows from the row."""
    signature = signatures.signature_of(row, DECLARATIONS[row.operator])
    needed = {option["name"] for option in DECLARATIONS[row.operator]["options"] if option["required"]}
    return needed <= {each.option for each in signature.options} | set(row.fixed)


DERIVED = [row for row in table.OF_OPS if needs_no_row(row)]


@pytest.mark.parametrize("row", DERIVED, ids=signatures.name_of)
def test_functions_are_calls_by_type(row: table.Row, make: Made) -> None:
    signature = signatures.signature_of(row, DECLARATIONS[row.operator])
    values = {**ARGUMENTS, **ARGUMENTS_OF.get(signature.name, {})}
    given = {each.name: values[each.name] for each in signature.arguments if values.get(each.name) is not None}
    tensors = {name: make(value, value.dtype) for name, value in given.items() if isinstance(value, np.ndarray)}
    by_name = getattr(ops, signature.name)(**{**given, **tensors})
    options = {**row.fixed, **{each.option: True for each in signature.tensors if each.option and each.name in given}}
    for each in signature.options:
        if each.name in given:
            options[each.option] = converted(each, given[each.name])
        elif each.default is not None and each.default != each.usual:
            options[each.option] = each.default
    training = any(each.name == "training" and each.default for each in signature.arguments)
    params = [tensors[each.name] for each in signature.params]
    inputs = [tensors[each.name] for each in signature.tensors if each.name in tensors]
    by_type = ops.call(row.operator, inputs, params, training=training, **options)
    check_equal(by_type, by_name)


def check_equal(by_type: tuple[dlprim.Tensor, ...], by_name: Any) -> None:
    by_name = by_name if isinstance(by_name, tuple) else (by_name,)
    assert len(by_name) == len(by_type)
    for ours, theirs in zip(by_type, by_name):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()


# Of each other operator of network JSON a call by its type, and the function that is the same, or its name.
BY_TYPE: list[tuple[str, list[Any], list[Any], dict[str, Any], str | Callable[..., Any]]] = [
    (
        "LinearCrossEntropy",
        [random(3, 4), LABELS],
        [random(5, 4), random(5)],
        {"outputs": 5, "bias": True, "chunk_bytes": 40},
        lambda x, y, w, b: ops.linear_cross_entropy(x, y, w, b, chunk_bytes=40),
    ),
    (
        "Convolution",
        [IMAGES],
        [random(3, 4, 3, 3), random(3)],
        {"channels_out": 3, "kernel": 3, "pad": 1, "stride": [2, 1]},
        lambda x, w, b: ops.conv2d(x, w, b, padding=1, stride=[2, 1]),
    ),
    (
        "TransposedConvolution",
        [IMAGES],
        [random(4, 3, 3, 3)],
        {"channels_out": 3, "kernel": 3, "bias": False},
        "conv_transpose2d",
    ),
    ("InnerProduct", [ROWS], [random(2, 4), random(2)], {"outputs": 2, "inputs": 4}, "inner_product"),
    (
        "Convolution",
        [IMAGES],
        [random(3, 4, 3, 3), random(3)],
        {"channels_out": 3, "kernel": 3, "pad": 1, "stride": [2, 1]},
        lambda x, w, b: ops.conv_nd(x, w, b, padding=1, stride=[2, 1]),
    ),
    (
        "TransposedConvolution",
        [IMAGES],
        [random(4, 3, 3, 3)],
        {"channels_out": 3, "kernel": 3, "bias": False},
        "conv_transpose_nd",
    ),
    ("Concat", [ROWS, ROWS], [], {"dim": 1}, lambda a, b: ops.concat([a, b], 1)),
    ("Slice", [ROWS], [], {"begin": 1, "end": 3}, lambda x: ops.slice(x, 1, 1, 3)),
    ("Pad", [PLANES], [], {"pads": [1, 2], "value": 3.0}, lambda x: ops.pad(x, [1, 2], value=3)),
    ("Interpolation", [IMAGES], [], {"out_h": 9, "out_w": 5}, lambda x: ops.interpolate(x, (9, 5))),
    ("Embedding", [LABELS], [random(5, 2)], {"num_embeddings": 5, "embedding_dim": 2}, "embedding"),
    ("LSTM", [PLANES.transpose(0, 2, 1).copy()], LSTM_PARAMS, {"hidden_size": 2}, lambda x, *p: ops.lstm(x, None, p)),
    ("GRU", [PLANES.transpose(0, 2, 1).copy()], GRU_PARAMS, {"hidden_size": 2}, lambda x, *p: ops.gru(x, None, p)),
    (
        "Pointwise",
        [ROWS],
        [],
        {"code": "y0 = x0 * p0", "scalars": [2]},
        lambda x: ops.pointwise("y0 = x0 * p0", x, [2]),
    ),
    # A network's own: its result is its parameter, and there is no function.
    ("Parameter", [], [ROWS], {"shape": [3, 4]}, "identity"),
]


@pytest.mark.parametrize("one", BY_TYPE, ids=[one[0] for one in BY_TYPE])
def test_call_by_type(one: Any, make: Made) -> None:
    operator, inputs, params, options, function = one
    inputs = [make(array, array.dtype) for array in inputs]
    params = [make(array, array.dtype) for array in params]
    function = getattr(ops, function) if isinstance(function, str) else function
    check_equal(ops.call(operator, inputs, params, **options), function(*inputs, *params))


def test_every_type_of_network_json_is_called() -> None:
    called = {row.operator for row in DERIVED} | {one[0] for one in BY_TYPE}
    called |= {DECLARATIONS[name].get("alias_of", name) for name in called}
    kinds = {name for name, one in DECLARATIONS.items() if one["group"] != "eager" and "alias_of" not in one}
    assert len(kinds) > 40 and kinds - called == set()


def test_backward_by_type(make: Made) -> None:
    x, weight, dy = make(ROWS), make(random(2, 4)), make(random(3, 2))
    dx = make(np.zeros((3, 4)))
    results = ops.backward("InnerProduct", x, [weight], dy, outputs=2, bias=False, out=[dx, None])
    assert results[0] is dx
    np.testing.assert_allclose(dx.numpy(), dy.numpy() @ weight.numpy(), rtol=1e-5, atol=1e-5)
    assert results[1] is not None
    np.testing.assert_allclose(results[1].numpy(), dy.numpy().T @ ROWS, rtol=1e-5, atol=1e-5)


def test_integers_have_no_gradient(on_host: Made) -> None:
    weight, indices = on_host(random(5, 2)), on_host(LABELS, np.int32)
    di, dweight = ops.grad(ops.embedding, on_host(random(3, 2)), indices, weight)
    assert di is None and dweight is not None


def test_out_is_written_and_returned(make: Made) -> None:
    a, b, out = make(ROWS), make(random(3, 4)), make(np.zeros((3, 4)))
    assert ops.add(a, b, out=out) is out
    np.testing.assert_array_equal(out.numpy(), a.numpy() + b.numpy())
    parts = [make(np.zeros((3, 2))), None]
    first, second = ops.split(a, 2, 1, out=parts)
    assert first is parts[0]
    np.testing.assert_array_equal(np.hstack([first.numpy(), second.numpy()]), ROWS)


def test_lists_tuples_and_arrays_are_one(on_host: Made) -> None:
    x, w = on_host(IMAGES), on_host(random(3, 4, 3, 3))
    wanted = ops.conv2d(x, w, stride=(2, 1)).numpy()
    for stride in ([2, 1], np.array([2, 1]), (np.int64(2), np.int32(1))):
        np.testing.assert_array_equal(ops.conv2d(x, w, stride=stride).numpy(), wanted)
    np.testing.assert_array_equal(ops.permute(x, [1, 0, 2, 3]).numpy(), IMAGES.transpose(1, 0, 2, 3))
    np.testing.assert_array_equal(ops.softmax(x, np.array(2)).numpy(), ops.softmax(x, 2).numpy())


def test_operands_and_results_are_strided_views(make: Made) -> None:
    x, other = make(ROWS), make(random(3, 4))
    view = x.T
    np.testing.assert_allclose(ops.matmul(view, other).numpy(), ROWS.T @ other.numpy(), rtol=1e-5, atol=1e-5)
    da, db = ops.grad(ops.matmul, make(np.ones((4, 4))), view, other)
    assert da is not None and da.shape == (4, 3)
    out = make(np.zeros((4, 3)))
    assert ops.relu(x, out=out.T).strides == (1, 3)
    np.testing.assert_array_equal(out.numpy(), np.maximum(ROWS, 0).T)


def test_running_statistics_are_written(make: Made) -> None:
    x, mean, var = make(IMAGES), make(np.zeros(4)), make(np.ones(4))
    ops.batch_norm(x, mean, var, training=True, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), IMAGES.mean((0, 2, 3)) / 2, rtol=1e-4, atol=1e-5)
    columns = make(np.ones((4, 2)))
    ops.batch_norm(x, make(np.zeros(4)), columns[:, 0], training=True, momentum=0.5)
    np.testing.assert_array_equal(columns.numpy()[:, 0], var.numpy())
    np.testing.assert_array_equal(columns.numpy()[:, 1], 1)


def test_dropout(make: Made) -> None:
    ones = make(np.ones((50, 40)))
    y = ops.dropout(ones, 0.25, seed=5).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.05
    np.testing.assert_array_equal(ops.dropout(ones, 0.25, seed=5).numpy(), y)
    for other in ({"seed": 6}, {"seed": 5, "step": 1}, {"seed": 5, "stream": 3}):
        assert (ops.dropout(ones, 0.25, **other).numpy() != y).any()
    (dx,) = ops.grad(ops.dropout, ones, ones, 0.25, seed=5)
    assert dx is not None
    np.testing.assert_array_equal(dx.numpy(), y)
    np.testing.assert_array_equal(ops.dropout(ones, 0.25, training=False).numpy(), ones.numpy())


def test_dropout_of_attention_and_layers(make: Made) -> None:
    x, params = make(random(3, 4, 5)), [make(array) for array in LSTM_PARAMS + [random(8, 2), *LSTM_PARAMS[1:]]]
    q = make(PLANES)
    plain, dropped = ops.attention(q, q, q), ops.attention(q, q, q, dropout_p=0.5, training=True, seed=3)
    assert (plain.numpy() != dropped.numpy()).any()
    np.testing.assert_array_equal(plain.numpy(), ops.attention(q, q, q, dropout_p=0.5).numpy())
    x = make(random(3, 2, 4))
    y = ops.lstm(x, None, params, num_layers=2)[0].numpy()
    assert (y != ops.lstm(x, None, params, num_layers=2, dropout=0.5, training=True)[0].numpy()).any()
    np.testing.assert_array_equal(y, ops.lstm(x, None, params, num_layers=2, dropout=0.5)[0].numpy())


def test_pointwise(make: Made) -> None:
    x = make(ROWS)
    total, doubled = ops.pointwise("y0 = sum[](x0); y1 = x0 * p0", [x], [2.0])
    np.testing.assert_allclose(total.numpy().ravel(), [ROWS.sum()], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(doubled.numpy(), ROWS * 2)
    (whole,) = ops.pointwise("y0 = x0 > 0", x, dtypes=[np.int32])
    np.testing.assert_array_equal(whole.numpy(), (ROWS > 0).astype(np.int32))
    assert ops.pointwise("y0 = x0 > 0", x, dtypes="bool")[0].dtype == "bool"


def test_extremes_of_all_elements(make: Made) -> None:
    x = make(ROWS)
    assert ops.argmax(x).item() == ROWS.argmax()
    assert ops.argmin(x, keepdim=True).numpy().tolist() == [[ROWS.argmin()]]


def test_positions_of_what_is_not_zero(make: Made) -> None:
    array = np.maximum(ROWS, 0)
    positions, count = ops.nonzero(make(array))
    assert count.item() == np.count_nonzero(array)
    np.testing.assert_array_equal(positions[: count.item()].numpy(), np.argwhere(array))
    assert (positions.numpy()[count.item() :] == -1).all()


def test_zeros_of_both_signs(on_host: Made) -> None:
    x = on_host(np.zeros(2))
    for value in (0.0, -0.0, 0.0):
        assert np.signbit(ops.pad(x, (1, 0), value=value).numpy()[0]) == np.signbit(value)
        assert np.signbit(ops.pointwise("y0 = max(x0 * 0 + p0, p0) * p1", x, [1.0, value])[0].numpy()[0]) == np.signbit(
            value
        )


def test_engine_and_precision(make: Made, device: str) -> None:
    engine = "conv2d.host" if device == "cpu" else "conv2d.reference"
    x, w = make(IMAGES), make(random(3, 4, 3, 3))
    wanted = ops.conv2d(x, w).numpy()
    np.testing.assert_allclose(ops.conv2d(x, w, engine=engine).numpy(), wanted, rtol=1e-4, atol=1e-4)
    for precision in ("fp32", "tf32", "fp16", "bf16"):
        np.testing.assert_allclose(ops.conv2d(x, w, precision=precision).numpy(), wanted, rtol=0.1, atol=0.1)
    (y,) = ops.call("Convolution2D", [x], [w], channels_out=3, kernel=3, bias=False, engines={"Convolution2D": engine})
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_threads_share_a_context(make: Made) -> None:
    x, w = make(IMAGES), make(random(3, 4, 3, 3))
    wanted = [ops.conv2d(x, w, stride=stride).numpy() for stride in (1, 2)]
    wrong: list[object] = []

    def work(stride: int) -> None:
        try:
            for _ in range(50):
                if (ops.conv2d(x, w, stride=stride).numpy() != wanted[stride - 1]).any():
                    wrong.append(stride)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(1 + i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_meanwhile(on_host: Made) -> None:
    """The host computes in the call. Were Python's lock not free then, this thread would stand still all the while."""
    a = on_host(random(2000, 2000))
    ops.matmul(a, a)
    times: list[float] = []

    def work() -> None:
        times.append(time.perf_counter())
        ops.matmul(a, a)
        times.append(time.perf_counter())

    thread = threading.Thread(target=work)
    seen = []
    thread.start()
    while thread.is_alive():
        seen.append(time.perf_counter())
        time.sleep(0)
    begin, end = times
    assert any(begin + 0.1 * (end - begin) < moment < end - 0.1 * (end - begin) for moment in seen)


# What bad input gets: one sentence.


def sentence(error: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(error.value)
    assert text and "\n" not in text
    return text


def test_options_that_a_function_does_not_have(on_host: Made) -> None:
    x, w = on_host(IMAGES), on_host(random(3, 4, 3, 3))
    for call, wanted in (
        (lambda: ops.conv2d(x, w, strides=2), "conv2d() has no option 'strides'; did you mean 'stride'?"),
        (lambda: ops.conv2d(x, w, pad=2), "conv2d() has no option 'pad'; did you mean 'padding'?"),
        (lambda: ops.conv2d(x, w, dilate=2), "conv2d() has no option 'dilate'; did you mean 'dilation'?"),
        (lambda: ops.max_pool2d(x, kernel=2), "max_pool2d() has no option 'kernel'; did you mean 'kernel_size'?"),
        (
            lambda: ops.adaptive_avg_pool(x, output=2),
            "adaptive_avg_pool() has no option 'output'; did you mean 'output_size'?",
        ),
        (lambda: ops.conv_nd(x, w, pad=2), "conv_nd() has no option 'pad'; did you mean 'padding'?"),
        (lambda: ops.softmax(x, axis=1), "softmax() has no option 'axis'; did you mean 'dim'?"),
        (lambda: ops.relu(x, qqq=1), "relu() has no option 'qqq'; it has input, out"),
        (lambda: ops.grad(ops.conv2d, x, x, w, strides=2), "conv2d() has no option 'strides'; did you mean 'stride'?"),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert sentence(error) == wanted
    with pytest.raises(ValueError, match="did you mean 'stride'") as by_type:
        ops.call("Convolution2D", [x], [w], channels_out=3, kernel=3, strides=2)
    sentence(by_type)
    with pytest.raises(ValueError, match="did you mean 'Pooling' with") as unknown:
        ops.call("MaxPool2d", [x])
    sentence(unknown)


def test_arguments_of_wrong_types(on_host: Made) -> None:
    x, w = on_host(IMAGES), on_host(random(3, 4, 3, 3))
    array = np.zeros((3, 4, 3, 3), np.float32)
    for call, wanted in (
        (lambda: ops.conv2d(x, array), "conv2d() takes a dlprim.Tensor as weight, got a ndarray"),
        (lambda: ops.conv2d(array, w), "conv2d() takes a dlprim.Tensor as input, got a ndarray"),
        (lambda: ops.conv2d(x, None), "conv2d() takes a dlprim.Tensor as weight, got a NoneType"),
        (lambda: ops.conv2d(x, w, 3.0), "conv2d() takes a dlprim.Tensor as bias, got a float"),
        (lambda: ops.relu([1.0]), "relu() takes a dlprim.Tensor as input, got a list"),
        (lambda: ops.add(x, 1), "add() takes a dlprim.Tensor as other, got a int"),
        (lambda: ops.conv2d(x), "conv2d(): missing a required argument: 'weight'"),
        (lambda: ops.relu(x, out=array), "relu() takes a dlprim.Tensor as out, got a ndarray"),
        (lambda: ops.concat([x, array]), "Concat: input 1 is a numpy.ndarray; a dlprim.Tensor is needed"),
        (lambda: ops.call("Abs", [None]), "Abs: input 0 is None; a dlprim.Tensor is needed"),
        (lambda: ops.call("Abs", 3), "tensors are given as a dlprim.Tensor or a sequence of them, not a int"),
        (
            lambda: ops.call("Abs", [x], out=3),
            "Abs takes a dlprim.Tensor, or a tuple or list of them, as out, got an int",
        ),
        (lambda: ops.conv2d(x, w, stride=object()), "an option holds a object"),
        (lambda: ops.conv2d(x, w, stride=x), "an option holds a Tensor"),
        (lambda: ops.conv2d(x, w, precision=16), "precision is a int; a string is needed"),
        (lambda: ops.conv2d(x, w, engine=3), "engine is a int; a string is needed"),
        (lambda: ops.pointwise("y0 = x0", x, ["a"]), "must be real number"),
        (lambda: ops.grad(np.add, x, x), "grad() takes a function of dlprim.ops that computes an operator, got add"),
        (lambda: ops.grad(ops.grad, x, x), "grad() takes a function of dlprim.ops that computes an operator, got grad"),
        (lambda: ops.grad(ops.relu, x, x, out=x), "grad() takes no out"),
        (lambda: ops.grad(ops.relu, array, x), "Activation: output gradient 0 is a "),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert wanted in sentence(error)


def test_shapes_dtypes_and_values_that_do_not_fit(on_host: Made) -> None:
    x, w = on_host(IMAGES), on_host(random(3, 4, 3, 3))
    whole = on_host(np.ones((2, 4, 6, 6)), np.int32)
    for call, wanted in (
        (lambda: ops.conv2d(x, on_host(random(3, 5, 3, 3))), "float [3, 5, 3, 3], wants float [3, 4, 3, 3]"),
        (lambda: ops.conv2d(x, on_host(random(3, 4))), "conv2d: the weight has shape [3, 4]"),
        (lambda: ops.conv2d(whole, w), "int32"),
        (lambda: ops.conv2d(x, w, stride=0), "stride"),
        (lambda: ops.conv2d(x, w, stride=[1, 2, 3]), "stride"),
        (lambda: ops.conv2d(x, w, padding="full"), "'full' is not one of 'same', 'valid'"),
        (lambda: ops.conv2d(x, w, padding="same", stride=2), "padding 'same' goes with stride 1"),
        (lambda: ops.conv2d(x, w, activation="rellu"), "did you mean 'relu'"),
        (lambda: ops.conv2d(x, w, precision="fp8"), "fp8"),
        (lambda: ops.conv2d(x, w, engine="conv2d.best"), "conv2d.best"),
        (lambda: ops.conv2d(x, w, stride=float("nan")), "option stride is nan; a finite number is needed"),
        (lambda: ops.conv_transpose2d(x, on_host(random(3, 4))), "conv_transpose2d: the weight has shape [3, 4]"),
        (lambda: ops.conv_nd(x, on_host(random(3, 4))), "conv_nd: the weight has shape [3, 4]"),
        (lambda: ops.conv_nd(x, on_host(random(3, 4, 3))), "float [3, 4, 3], wants float [3, 4, 3, 3]"),
        (lambda: ops.conv_nd(x, w, padding="full"), "'full' is not one of 'same', 'valid'"),
        (lambda: ops.conv_nd(x, w, padding="same", stride=[1, 2]), "padding 'same' goes with stride 1"),
        (lambda: ops.conv_transpose_nd(x, on_host(random(4))), "conv_transpose_nd: the weight has shape [4]"),
        (lambda: ops.max_pool_nd(x, 9), "a window of 9 does not fit"),
        (lambda: ops.avg_pool_nd(x, 2, divisor_override=-1), "divisor_override must be at least 0, not -1"),
        (lambda: ops.adaptive_avg_pool(x, (1, 2, 3)), "output"),
        (lambda: ops.resize(x), "output"),
        (lambda: ops.resize(x, 3, mode="bicubic"), "'bicubic' is not one of nearest, nearest-exact, linear, cubic"),
        (lambda: ops.grid_sample(x, x), "are not [N, h, w, 2]"),
        (lambda: ops.grid_sample(x, on_host(PIXELS), "cubic"), "'cubic' is not one of bilinear, nearest, bicubic"),
        (lambda: ops.matmul_add(x, on_host(random(6, 5)), x), "broadcast"),
        (lambda: ops.argmax(x, 4), "4"),
        (lambda: ops.cumsum(x, 4), "4"),
        (lambda: ops.cumsum(x, 1, dtype="int32"), "dtype is int32"),
        (lambda: ops.logcumsumexp(whole, 1), "logsumexp is made of floats"),
        (lambda: ops.nonzero(x, size=-2), "size is -2"),
        (lambda: ops.flip(x, [1, -3]), "dims names dimension 1 twice"),
        (lambda: ops.linear(x, on_host(random(3))), "linear: the weight has shape [3]"),
        (lambda: ops.linear(x, on_host(random(3, 6)), activation="relu"), "goes with an input of two dimensions"),
        (lambda: ops.linear(x, on_host(random(3, 5))), "["),
        (lambda: ops.embedding(whole, on_host(random(3))), "embedding: the weight has shape [3]"),
        (lambda: ops.matmul(x, on_host(random(5, 5))), "[5, 5]"),
        (lambda: ops.add(x, on_host(random(5))), "[5]"),
        (lambda: ops.batch_norm(x, w, w), "BatchNorm"),
        (lambda: ops.batch_norm(x, w, w, w), "batch_norm: weight and bias go together"),
        (lambda: ops.group_norm(x, 2, w), "group_norm: weight and bias go together"),
        (lambda: ops.layer_norm(x, 6, None, w), "layer_norm: a bias goes with a weight"),
        (lambda: ops.gelu(x, approximate="fast"), "approximate 'fast' is not one of 'none', 'tanh'"),
        (lambda: ops.softmax(x, 4), "4"),
        (lambda: ops.slice(x, 7, 0, -1), "slice: dim 7 is not a dimension of input [2, 4, 6, 6]"),
        (lambda: ops.slice(x, 1, 0, -9), "slice: end is 5 before the first element of dimension 1"),
        (lambda: ops.slice(x, 1, 3, 2), "Slice"),
        (lambda: ops.split(x, 3, 1), "cannot be cut in 3 equal parts"),
        (lambda: ops.reshape(x, [7, -1]), "Reshape"),
        (lambda: ops.permute(x, [0, 0, 1, 2]), "twice"),
        (lambda: ops.pad(x, [1]), "Pad"),
        (lambda: ops.pad(x, [1, 1], value=float("inf")), "option value is inf; a finite number is needed"),
        (lambda: ops.interpolate(x), "give either"),
        (lambda: ops.interpolate(x, 3, 2.0), "give either"),
        (lambda: ops.mse_loss(x, x, reduction="avg"), "avg"),
        (lambda: ops.nll_loss(x, x), "labels have shape"),
        (lambda: ops.dropout(x, 1.5), "1.5"),
        (lambda: ops.dropout(x, seed=-1), "Dropout: seed is -1; an integer from 0 to 2^64 - 1 is needed"),
        (lambda: ops.dropout(x, step="a"), "Dropout: step is 'a'; an integer from 0 to 2^64 - 1 is needed"),
        (lambda: ops.lstm(x, None, [w]), "lstm: got 1 parameters; 1 runs (layers times directions) take 4"),
        (lambda: ops.gru(x, None, [on_host(random(2))] * 2), "gru: parameter 1 has shape [2]"),
        (lambda: ops.pointwise("y0 = ", x), "Pointwise"),
        (lambda: ops.pointwise("y0 = x0 * p0", x), "p0"),
        (lambda: ops.pointwise("y0 = 1", []), "needs at least one tensor, on whose device it runs"),
        (lambda: ops.relu(x, out=on_host(random(2, 4))), "out tensor 0"),
        (lambda: ops.relu(x, out=whole), "out tensor 0"),
        (lambda: ops.grad(ops.relu, on_host(random(2, 4)), x), "output gradient 0"),
        (lambda: ops.grad(ops.relu, [x, x], x), "takes the gradients of 1 outputs, got 2"),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert wanted in sentence(error)
    for name in ("float33", None):
        with pytest.raises(TypeError, match=f"tensors have no element type '{name}'"):
            ops.cast(x, name)


def test_attention_that_does_not_fit(on_host: Made) -> None:
    q, k = on_host(random(2, 4, 5, 8)), on_host(random(2, 4, 6, 8))
    for call, wanted in (
        (lambda: ops.attention(q, on_host(random(2, 4, 6, 7)), k), "differ in their last dimension"),
        (lambda: ops.attention(q, k, on_host(random(2, 4, 7, 8))), "differ in their number of positions"),
        (
            lambda: ops.attention(q, on_host(random(2, 3, 6, 8)), on_host(random(2, 3, 6, 8)), enable_gqa=True),
            "has 4 heads, which is not a multiple of the heads of k [2, 3, 6, 8]",
        ),
        (
            lambda: ops.attention(q, on_host(random(2, 2, 6, 8)), k, enable_gqa=True),
            "k [2, 2, 6, 8] and v [2, 4, 6, 8] differ in their number of heads",
        ),
        (
            lambda: ops.attention(q, *[on_host(random(2, 2, 6, 8))] * 2),
            "do not broadcast in the dimensions before their last two; with enable_gqa several heads",
        ),
        (
            lambda: ops.attention(q, k, on_host(random(3, 4, 6, 8))),
            "q [2, 4, 5, 8], k [2, 4, 6, 8] and v [3, 4, 6, 8] do not broadcast in the dimensions before",
        ),
        (lambda: ops.attention(q, k, k, on_host(random(4, 6))), "the mask [4, 6] does not broadcast to the scores"),
        (
            lambda: ops.attention(q, k, k, sliding_window=0),
            "sliding_window is 0, and must be 1 or more, or -1 for none",
        ),
        (lambda: ops.attention(q, k, k, softcap=-1.0), "softcap must be at least 0, not -1"),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert wanted in sentence(error)


def test_what_has_no_gradient(on_host: Made) -> None:
    x = on_host(ROWS)
    with pytest.raises(NotImplementedError, match="combination of its own, which has no gradient") as error:
        ops.grad(ops.pointwise, x, "y0 = reduce[; 0; a + b + a * b](x0)", [x])
    sentence(error)
    with pytest.raises(ValueError, match="takes the gradients of 0 outputs, got 1"):
        ops.grad(ops.cast, on_host(ROWS, np.int32), x, "int32")
    assert ops.grad(ops.cast, (), x, "int32")[0] is not None


def test_labels_out_of_range_are_no_crash(make: Made) -> None:
    """Eager calls look at no label: they would wait for the device. One out of range, or NaN, adds no loss.

    What is no row of a table is an error, at the latest where the rows are read.
    """
    x = make(np.log(np.full((2, 3), 1 / 3, np.float32)))
    for far in (-1, 3, 2**31 - 1):
        loss = ops.nll_loss(x, make([0, far], np.int32), reduction="none").numpy()
        np.testing.assert_allclose(loss, [np.log(3), 0], rtol=1e-5)
        product = ops.linear_cross_entropy(x, make([0, far], np.int32), make(np.eye(3)), reduction="none")
        np.testing.assert_allclose(product.numpy(), [np.log(3), 0], rtol=1e-5)
    np.testing.assert_allclose(ops.nll_loss(x, make([np.nan, 1.0])).numpy(), [np.log(3) / 2], rtol=1e-5)
    np.testing.assert_allclose(ops.cross_entropy(x, make([1.0, np.nan])).numpy(), [np.log(3) / 2], rtol=1e-5)
    table = make(random(4, 2))
    for far in (-1, 4, 2**31 - 1):
        with pytest.raises(ValueError, match=f"index {far} at position 1 is outside") as error:
            ops.embedding(make([1, far], np.int32), table).numpy()
        sentence(error)


def test_tensors_of_two_contexts(host: dlprim.Context, on_host: Made) -> None:
    other = Made(dlprim.Context("cpu"))
    x = on_host(ROWS)
    for call in (
        lambda: ops.add(x, other(ROWS)),
        lambda: ops.linear(x, other(random(2, 4))),
        lambda: ops.relu(x, out=other(ROWS)),
        lambda: ops.grad(ops.relu, other(ROWS), x),
    ):
        with pytest.raises(ValueError, match="different contexts") as error:
            call()
        sentence(error)


def test_a_tensor_outlives_the_context_object() -> None:
    context = dlprim.Context("cpu")
    x = dlprim.Tensor(context, ROWS)
    del context
    np.testing.assert_array_equal(ops.neg(x).numpy(), -ROWS)


def test_errors_leave_the_context_sound(make: Made) -> None:
    x, w = make(IMAGES), make(random(3, 4, 3, 3))
    wanted = ops.conv2d(x, w).numpy()
    for _ in range(3):
        with pytest.raises(dlprim.InvalidArgumentError):
            ops.conv2d(x, w, stride=0)
        np.testing.assert_array_equal(ops.conv2d(x, w).numpy(), wanted)
