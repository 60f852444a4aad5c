# SPDX-License-Identifier: MIT
"""dlprim.ops: each function against PyTorch, forward and backward, on every device.

A case is a call as it is written in Python, with numpy arrays in the place of tensors. It is made once with tensors of
dlprim and once with those of PyTorch, whose function is the one of the same name unless the case says another.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import ops

NORMAL = np.random.default_rng(1).standard_normal


def random(*shape: int) -> np.ndarray:
    return NORMAL(shape).astype(np.float32)


def apart(*shape: int) -> np.ndarray:
    """Values that differ by far more than rounding, and none near 0: where functions have kinks, tests need that."""
    count = int(np.prod(shape))
    values = (np.arange(count) - count / 2 + 0.25) * (6 / count)
    return np.random.default_rng(2).permutation(values).astype(np.float32).reshape(shape)


def positive(*shape: int) -> np.ndarray:
    return np.abs(random(*shape)) + 0.5


def labels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, count, shape, dtype=np.int64)


class Case:
    """A function's arguments; `torch_call` is called with PyTorch and the arguments."""

    def __init__(
        self,
        name: str,
        *args: Any,
        like: Callable[..., Any] | None = None,
        torch_kwargs: dict[str, Any] | None = None,
        differentiable: bool = True,
        **kwargs: Any,
    ) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs
        self.like = like
        self.torch_kwargs = kwargs if torch_kwargs is None else torch_kwargs
        self.differentiable = differentiable

    @property
    def function(self) -> Callable[..., Any]:
        return getattr(ops, self.name)

    def torch_call(self, torch: Any, args: Any) -> Any:
        if self.like is not None:
            return self.like(torch, *args)
        return getattr(torch.nn.functional, self.name)(*args, **self.torch_kwargs)


def functional(name: str, **kwargs: Any) -> Callable[..., Any]:
    return lambda torch, *args: getattr(torch.nn.functional, name)(*args, **kwargs)


def torch_function(name: str, **kwargs: Any) -> Callable[..., Any]:
    return lambda torch, *args: getattr(torch, name)(*args, **kwargs)


def recurrent(name: str, features: int, hidden: int, **options: Any) -> Callable[..., Any]:
    """torch.nn.LSTM or GRU as a function of its input, states and parameters."""

    def run(torch: Any, x: Any, hx: Any, params: Any) -> Any:
        module = getattr(torch.nn, name)(features, hidden, bias=len(params) % 4 == 0, **options)
        names = [name for name, _ in module.named_parameters()]
        y, states = torch.func.functional_call(module, dict(zip(names, params)), (x, hx))
        return (y, *states) if isinstance(states, tuple) else (y, states)

    return run


def recurrent_params(gates: int, features: int, hidden: int, runs: list[int], bias: bool = True) -> list[np.ndarray]:
    """Parameters of runs (layers and directions) whose numbers of input features are listed."""
    made = []
    for given in runs:
        made += [random(gates * hidden, given) * 0.5, random(gates * hidden, hidden) * 0.5]
        made += [random(gates * hidden) * 0.5, random(gates * hidden) * 0.5] if bias else []
    return made


IMAGES = random(2, 4, 9, 8)

PRODUCTS = [
    Case("conv2d", IMAGES, random(6, 4, 3, 3), random(6)),
    Case("conv2d", IMAGES, random(6, 4, 3, 3), stride=2, padding=1),
    Case("conv2d", IMAGES, random(6, 4, 3, 2), random(6), stride=(2, 1), padding=(2, 1), dilation=(1, 2)),
    Case("conv2d", IMAGES, random(8, 2, 3, 3), random(8), groups=2, padding="same", dilation=2),
    Case("conv2d", IMAGES, random(6, 4, 1, 1), padding="valid"),
    Case("conv2d", IMAGES, random(4, 1, 3, 3), groups=4, padding=1),
    Case(
        "conv2d",
        IMAGES,
        random(6, 4, 3, 3),
        random(6),
        padding=[1, 2, 0, 1],
        activation="relu",
        like=lambda torch, x, w, b: torch.relu(
            torch.nn.functional.conv2d(torch.nn.functional.pad(x, (2, 1, 1, 0)), w, b)
        ),
    ),
    Case("conv_transpose2d", IMAGES, random(4, 3, 3, 3), random(3), stride=2, padding=1, output_padding=1),
    Case("conv_transpose2d", IMAGES, random(4, 3, 2, 3), groups=2, dilation=(1, 2)),
    Case(
        "conv_transpose2d",
        IMAGES,
        random(4, 3, 3, 3),
        activation="sigmoid",
        like=lambda torch, x, w: torch.sigmoid(torch.nn.functional.conv_transpose2d(x, w)),
    ),
    Case("linear", random(5, 7), random(3, 7), random(3)),
    Case("linear", random(5, 7), random(3, 7)),
    Case("linear", random(2, 5, 7), random(3, 7), random(3)),
    Case("linear", random(7), random(3, 7)),
    Case(
        "linear",
        random(5, 7),
        random(3, 7),
        random(3),
        activation="tanh",
        like=lambda torch, x, w, b: torch.tanh(torch.nn.functional.linear(x, w, b)),
    ),
    Case(
        "inner_product",
        random(3, 2, 2, 3),
        random(4, 12),
        random(4),
        activation="relu",
        like=lambda torch, x, w, b: torch.relu(torch.nn.functional.linear(x.flatten(1), w, b)),
    ),
    Case(
        "inner_product",
        random(3, 2, 2, 3),
        random(4, 12),
        like=lambda torch, x, w: torch.nn.functional.linear(x.flatten(1), w),
    ),
    Case("matmul", random(5, 4), random(4, 3), like=torch_function("matmul")),
    Case("matmul", random(2, 1, 5, 4), random(3, 4, 3), like=torch_function("matmul")),
    Case(
        "matmul",
        random(2, 4, 5),
        random(3, 4),
        random(3),
        transpose_a=True,
        transpose_b=True,
        alpha=0.5,
        like=lambda torch, a, b, bias: 0.5 * a.transpose(-1, -2) @ b.transpose(-1, -2) + bias,
    ),
]

POOLING = [
    Case("max_pool2d", apart(2, 3, 8, 9), 3),
    Case("max_pool2d", apart(2, 3, 8, 9), (3, 2), stride=2, padding=(1, 0), ceil_mode=True),
    Case("avg_pool2d", IMAGES, 2),
    Case("avg_pool2d", IMAGES, [3, 2], stride=[2, 1], padding=1),
    Case("avg_pool2d", IMAGES, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    Case("global_max_pool2d", apart(2, 3, 4, 5), like=lambda torch, x: x.amax((2, 3), keepdim=True)),
    Case("global_avg_pool2d", IMAGES, like=lambda torch, x: x.mean((2, 3), keepdim=True)),
    Case("interpolate", IMAGES, 12),
    Case("interpolate", IMAGES, (5, 17), mode="nearest-exact"),
    Case("interpolate", IMAGES, scale_factor=1.7, mode="bilinear"),
    Case("interpolate", IMAGES, scale_factor=(2.0, 0.5), mode="bilinear"),
    Case("interpolate", IMAGES, [5, 17], mode="bilinear", align_corners=True),
]

VALUES = apart(3, 4, 5)

ACTIVATIONS = [
    *(
        Case(name, VALUES)
        for name in (
            "relu",
            "relu6",
            "sigmoid",
            "tanh",
            "silu",
            "hardswish",
            "hardsigmoid",
            "selu",
            "softsign",
            "mish",
            "logsigmoid",
            "tanhshrink",
            "gelu",
            "leaky_relu",
            "elu",
            "celu",
            "softplus",
            "softshrink",
            "hardshrink",
            "hardtanh",
        )
    ),
    *(Case(name, VALUES, like=torch_function(name)) for name in ("exp", "square", "neg", "abs")),
    *(Case(name, positive(3, 4), like=torch_function(name)) for name in ("log", "sqrt")),
    Case("identity", VALUES, like=lambda torch, x: x * 1),
    Case("gelu", VALUES, approximate="tanh"),
    Case("leaky_relu", VALUES, negative_slope=0.3),
    Case("elu", VALUES, alpha=0.7),
    Case("celu", VALUES, alpha=0.7),
    Case("softplus", VALUES, beta=2.0, threshold=1.5),
    Case("softshrink", VALUES, lambd=0.9),
    Case("hardshrink", VALUES, lambd=0.9),
    Case("threshold", VALUES, 0.6, -2.0),
    Case("hardtanh", VALUES, min_val=-0.4, max_val=1.3),
    Case("activation", VALUES, "softplus", alpha=2.0, like=lambda torch, x, _: torch.nn.functional.softplus(x, 2.0)),
    Case("binarize", VALUES, threshold=0.3, like=lambda torch, x: (x > 0.3).float() + 0 * x),
    Case("prelu", VALUES, random(4)),
    Case("prelu", VALUES, random(1)),
    Case("dropout", VALUES, training=False),
]

NORMS = [
    Case("batch_norm", IMAGES, random(4), positive(4), random(4), random(4)),
    Case("batch_norm", random(5, 4), random(4), positive(4), eps=0.1),
    Case("batch_norm", IMAGES, random(4), positive(4), random(4), random(4), training=True, momentum=0.3),
    Case("batch_norm", IMAGES, random(4), positive(4), training=True),
    Case(
        "batch_norm",
        IMAGES,
        random(4),
        positive(4),
        random(4),
        random(4),
        training=True,
        use_global_stats=True,
        like=functional("batch_norm"),
    ),
    Case("layer_norm", random(3, 4, 5), (4, 5), random(4, 5), random(4, 5)),
    Case("layer_norm", random(3, 4, 5), [5], random(5), eps=0.01),
    Case("layer_norm", random(3, 4, 5), (5,)),
    Case("group_norm", IMAGES, 2, random(4), random(4)),
    Case("group_norm", IMAGES, 4, eps=0.01),
    Case("softmax", random(3, 7), dim=1),
    Case("softmax", random(3, 7, 2), dim=-1),
    Case("log_softmax", random(3, 7, 2), dim=0),
    Case("cross_entropy", random(5, 7), labels(7, 5)),
    Case("nll_loss", random(5, 7), labels(7, 5)),
    Case("nll_loss", random(5, 7, 2), labels(7, 5, 2), reduction="sum"),
    Case("nll_loss", random(5, 7), labels(7, 5), reduction="none"),
    Case("mse_loss", random(5, 7), random(5, 7)),
    Case("mse_loss", random(5, 7), random(5, 7), reduction="sum"),
    Case("mse_loss", random(5, 7), random(5, 7), reduction="none"),
]

ELEMENTWISE = [
    Case("add", random(3, 4), random(3, 4), like=torch_function("add")),
    Case("add", random(3, 1, 4), random(2, 1), alpha=0.5, like=torch_function("add", alpha=0.5)),
    *(Case(name, random(3, 4), positive(4), like=torch_function(name)) for name in ("sub", "mul", "div")),
    *(Case(name, apart(3, 4), random(4), like=torch_function(name)) for name in ("maximum", "minimum")),
    Case(
        "elementwise",
        random(3, 4),
        random(3, 4),
        operation="prod",
        coef1=2.0,
        coef2=0.5,
        activation="sigmoid",
        like=lambda torch, a, b: torch.sigmoid(a * b),
    ),
    Case(
        "elementwise",
        random(3, 4),
        random(3, 4),
        coef1=2.0,
        coef2=-0.5,
        like=lambda torch, a, b: 2 * a - 0.5 * b,
    ),
    Case("sum", random(3, 4, 5), like=lambda torch, x: x.sum()[None]),
    Case("sum", random(3, 4, 5), (0, -1), keepdim=True, like=lambda torch, x, dim: x.sum(dim, keepdim=True)),
    Case("mean", random(3, 4, 5), 1, like=torch_function("mean")),
    Case("mean", random(3, 4, 5), [0, 1], like=torch_function("mean")),
    Case("reduction", random(3, 4), method="sumsq", dims=-1, like=lambda torch, x: (x * x).sum(-1, keepdim=True)),
    Case(
        "reduction",
        random(3, 4, 5),
        method="abssum",
        start_axis=1,
        keep_dim=False,
        output_scale=0.25,
        like=lambda torch, x: 0.25 * x.abs().sum((1, 2)),
    ),
    Case(
        "pointwise",
        "y0 = sum[0,2](x0); y1 = x0 * x1 + p0",
        [random(3, 4, 5), random(5)],
        [0.5],
        like=lambda torch, _, x, p: (x[0].sum((0, 2), keepdim=True), x[0] * x[1] + p[0]),
    ),
    Case(
        "pointwise",
        "y0 = max[1](x0)",
        apart(3, 4),
        keep_dim=False,
        like=lambda torch, _, x: x.amax(1),
    ),
    Case(
        "pointwise",
        "y0 = x0 * index(0)",
        random(1, 4),
        shape=(3, 1),
        like=lambda torch, _, x: x * torch.arange(3.0)[:, None],
    ),
]

SHAPES = [
    Case("concat", [random(2, 3), random(4, 3)], like=torch_function("concat")),
    Case("concat", (random(2, 3), random(2, 1), random(2, 2)), -1, like=torch_function("concat")),
    Case("slice", random(3, 6), 1, 2, 5, like=lambda torch, x, dim, begin, end: x[:, 2:5]),
    Case("slice", random(3, 6), -1, -4, -1, like=lambda torch, x, dim, begin, end: x[:, -4:-1]),
    Case("slice", random(3, 6), 0, 1, like=lambda torch, x, dim, begin: x[1:]),
    Case("split", random(6, 4), 3, like=torch_function("chunk")),
    Case("split", random(6, 4), 2, dim=-1, like=lambda torch, x, parts: torch.chunk(x, parts, -1)),
    Case("flatten", random(2, 3, 4), like=lambda torch, x: x.flatten(1)),
    Case("reshape", random(2, 3, 4), (0, -1), like=lambda torch, x, shape: x.reshape(2, 12)),
    Case("reshape", random(2, 3, 4), [6, 4], like=torch_function("reshape")),
    Case("squeeze", random(1, 3, 1), like=torch_function("squeeze")),
    Case("squeeze", random(1, 3, 1), 0, like=torch_function("squeeze")),
    Case("squeeze", random(1, 3, 1), (0, 1), like=torch_function("squeeze")),
    Case("transpose", random(2, 3, 4), like=lambda torch, x: x.transpose(-1, -2)),
    Case("transpose", random(2, 3, 4), 0, 2, like=torch_function("transpose")),
    Case("permute", random(2, 3, 4), [2, 0, 1], like=torch_function("permute")),
    Case("pad", random(2, 3, 4), (1, 2)),
    Case("pad", random(2, 3, 4), [1, 2, -1, 3], value=1.5),
    *(Case("pad", random(2, 3, 4, 5), (1, 2, 2, 1), mode=mode) for mode in ("reflect", "replicate", "circular")),
    Case("cast", random(3, 4), "float16", like=lambda torch, x, _: x.half()),
    Case("cast", random(3, 4), np.int32, like=lambda torch, x, _: x.int(), differentiable=False),
    Case("gather", random(4, 6), 1, labels(6, 4, 9), like=torch_function("gather")),
    Case("index_select", random(4, 6, 2), 1, labels(6, 5), like=torch_function("index_select")),
    Case("gather_nd", random(4, 4, 3), labels(4, 5, 2), like=lambda torch, x, i: x[tuple(i.unbind(-1))]),
    Case("scatter", random(4, 6), 1, labels(6, 4, 1), random(4, 1), like=torch_function("scatter")),
    Case(
        "scatter",
        random(4, 6),
        1,
        labels(6, 4, 9),
        random(4, 9),
        reduction="add",
        like=torch_function("scatter_add"),
    ),
    Case(
        "scatter_nd",
        random(4, 4, 3),
        labels(4, 5, 2),
        random(5, 3),
        reduction="add",
        like=lambda torch, x, i, u: x.index_put(tuple(i.unbind(-1)), u, accumulate=True),
    ),
    Case("topk", apart(3, 9), 4, like=torch_function("topk")),
    Case("topk", apart(3, 9), 2, 0, False, like=torch_function("topk")),
    Case("sort", apart(5, 7), 0, descending=True, like=torch_function("sort", descending=True)),
    Case("embedding", labels(6, 2, 3), random(6, 4)),
    Case("embedding", labels(6, 20), random(6, 4), padding_idx=-2),
]

MASK = np.random.default_rng(4).integers(0, 2, (5, 6)).astype(bool) | np.eye(5, 6, dtype=bool)
QUERY, KEY, VALUE = random(2, 4, 5, 8), random(2, 4, 6, 8), random(2, 4, 6, 3)
ATTENTION = "scaled_dot_product_attention"

SEQUENCES = [
    Case("attention", QUERY, KEY, VALUE, like=functional(ATTENTION)),
    Case("attention", QUERY, KEY, VALUE, random(5, 6), scale=0.2, like=functional(ATTENTION, scale=0.2)),
    Case("attention", QUERY, KEY, VALUE, MASK, like=functional(ATTENTION)),
    Case("attention", QUERY, KEY, VALUE, is_causal=True, like=functional(ATTENTION, is_causal=True)),
    Case(
        "attention",
        QUERY,
        random(2, 2, 6, 8),
        random(2, 2, 6, 3),
        enable_gqa=True,
        like=functional(ATTENTION, enable_gqa=True),
    ),
    Case("lstm", random(4, 2, 3), None, recurrent_params(4, 3, 5, [3]), like=recurrent("LSTM", 3, 5)),
    Case(
        "lstm",
        random(2, 4, 3),
        (random(4, 2, 5), random(4, 2, 5)),
        recurrent_params(4, 3, 5, [3, 3, 10, 10], bias=False),
        num_layers=2,
        bidirectional=True,
        batch_first=True,
        like=lambda torch, x, hx, params: recurrent_without_bias(torch, x, hx, params),
    ),
    Case(
        "gru",
        random(4, 2, 3),
        random(2, 2, 5),
        recurrent_params(3, 3, 5, [3, 5]),
        num_layers=2,
        like=recurrent("GRU", 3, 5, num_layers=2),
    ),
    Case("gru", random(4, 2, 3), None, recurrent_params(3, 3, 5, [3]), like=recurrent("GRU", 3, 5)),
]


def recurrent_without_bias(torch: Any, x: Any, hx: Any, params: Any) -> Any:
    module = torch.nn.LSTM(3, 5, num_layers=2, bidirectional=True, batch_first=True, bias=False)
    names = [name for name, _ in module.named_parameters()]
    y, states = torch.func.functional_call(module, dict(zip(names, params)), (x, hx))
    return (y, *states)


CASES = [*PRODUCTS, *POOLING, *ACTIVATIONS, *NORMS, *ELEMENTWISE, *SHAPES, *SEQUENCES]
every_case = pytest.mark.parametrize("case", CASES, ids=[f"{case.name}-{i}" for i, case in enumerate(CASES)])


def convert(value: Any, make: Callable[[np.ndarray], Any]) -> Any:
    """An argument with its arrays made into tensors."""
    if isinstance(value, np.ndarray):
        return make(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(convert(item, make) for item in value)
    return value


def leaves(value: Any, kind: type) -> list[Any]:
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item, kind)]
    return []


def as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def assert_near(got: np.ndarray, wanted: Any) -> None:
    wanted = wanted.detach().numpy()
    assert got.shape == (wanted.shape or (1,)) and got.dtype == wanted.dtype
    tolerance = 2e-3 if got.dtype == np.float16 else 2e-5
    size = np.abs(wanted).max(initial=1.0)
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=tolerance, atol=tolerance * size)


def torch_args(torch: Any, case: Case) -> list[Any]:
    def make(array: np.ndarray) -> Any:
        return torch.tensor(array, requires_grad=array.dtype == np.float32)

    return [convert(arg, make) for arg in case.args]


def statistics(torch: Any, case: Case, given: list[Any]) -> None:
    """PyTorch wants none of the gradients of running statistics, and dlprim gives none."""
    if case.name == "batch_norm":
        given[1], given[2] = given[1].detach(), given[2].detach()


@every_case
def test_forward(case: Case, context: dlprim.Context, torch: Any) -> None:
    args = [convert(arg, lambda array: dlprim.Tensor(context, array)) for arg in case.args]
    given = torch_args(torch, case)
    statistics(torch, case, given)
    got = as_tuple(case.function(*args, **case.kwargs))
    wanted = as_tuple(case.torch_call(torch, given))
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted):
        assert_near(ours.numpy(), theirs)
    if case.name == "batch_norm":  # in training the running statistics have changed
        for ours, theirs in zip(args[1:3], given[1:3]):
            assert_near(ours.numpy(), theirs)


@every_case
def test_gradient(case: Case, context: dlprim.Context, torch: Any) -> None:
    if not case.differentiable:
        pytest.skip("no gradient")
    args = [convert(arg, lambda array: dlprim.Tensor(context, array)) for arg in case.args]
    given = torch_args(torch, case)
    statistics(torch, case, given)
    results = tuple(y for y in as_tuple(case.torch_call(torch, given)) if y.dtype.is_floating_point)
    seed = np.random.default_rng(zlib.crc32(case.name.encode()))
    gradients = [seed.standard_normal(result.shape or (1,)).astype(np.float32) for result in results]
    gradients = [
        gradient.astype(np.float16) if result.dtype == torch.float16 else gradient
        for gradient, result in zip(gradients, results)
    ]
    torch.autograd.backward(results, [torch.tensor(dy).reshape(y.shape) for dy, y in zip(gradients, results)])

    dys = [dlprim.Tensor(context, gradient) for gradient in gradients]
    got = ops.grad(case.function, dys if len(dys) > 1 else dys[0], *args, **case.kwargs)

    tensors = leaves(given, torch.Tensor)
    assert len(got) == len(tensors)
    for ours, tensor in zip(got, tensors):
        if not tensor.requires_grad:
            assert ours is None
        else:
            assert ours is not None
            assert_near(ours.numpy(), tensor.grad)


def test_every_function_is_called() -> None:
    tools = {"backward", "call", "grad"}  # test_ops_calls.py
    assert {case.name for case in CASES} == set(ops.__all__) - tools
