# SPDX-License-Identifier: MIT
"""Every operator of docs/json.md from dlprim.nn, its options and results beside PyTorch's."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE, MATRIX, ROWS = (2, 4, 6, 8), (3, 5), (2, 3, 4)
SERIES, VOLUME = (2, 4, 9), (2, 4, 5, 6, 7)

Symbols = Callable[..., Any]
# What nn makes of symbols, what torch makes of tensors, and the inputs' shapes.
CASES: dict[str, tuple[Symbols, Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "relu": (nn.relu, lambda t, x: t.relu(x), (MATRIX,)),
    "relu6": (nn.relu6, lambda t, x: t.nn.functional.relu6(x), (MATRIX,)),
    "sigmoid": (nn.sigmoid, lambda t, x: t.sigmoid(x), (MATRIX,)),
    "tanh": (nn.tanh, lambda t, x: t.tanh(x), (MATRIX,)),
    "gelu": (nn.gelu, lambda t, x: t.nn.functional.gelu(x), (MATRIX,)),
    "gelu_tanh": (lambda x: nn.gelu(x, "tanh"), lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), (MATRIX,)),
    "silu": (nn.silu, lambda t, x: t.nn.functional.silu(x), (MATRIX,)),
    "hardswish": (nn.hardswish, lambda t, x: t.nn.functional.hardswish(x), (MATRIX,)),
    "hardsigmoid": (nn.hardsigmoid, lambda t, x: t.nn.functional.hardsigmoid(x), (MATRIX,)),
    "hardtanh": (lambda x: nn.hardtanh(x, -0.5, 0.25), lambda t, x: t.clamp(x, -0.5, 0.25), (MATRIX,)),
    "leaky_relu": (lambda x: nn.leaky_relu(x, 0.2), lambda t, x: t.nn.functional.leaky_relu(x, 0.2), (MATRIX,)),
    "elu": (lambda x: nn.elu(x, 0.7), lambda t, x: t.nn.functional.elu(x, 0.7), (MATRIX,)),
    "selu": (nn.selu, lambda t, x: t.selu(x), (MATRIX,)),
    "celu": (lambda x: nn.celu(x, 0.7), lambda t, x: t.celu(x, 0.7), (MATRIX,)),
    "softplus": (lambda x: nn.softplus(x, 2, 1), lambda t, x: t.nn.functional.softplus(x, 2, 1), (MATRIX,)),
    "softsign": (nn.softsign, lambda t, x: t.nn.functional.softsign(x), (MATRIX,)),
    "mish": (nn.mish, lambda t, x: t.nn.functional.mish(x), (MATRIX,)),
    "logsigmoid": (nn.logsigmoid, lambda t, x: t.nn.functional.logsigmoid(x), (MATRIX,)),
    "tanhshrink": (nn.tanhshrink, lambda t, x: t.nn.functional.tanhshrink(x), (MATRIX,)),
    "softshrink": (lambda x: nn.softshrink(x, 0.3), lambda t, x: t.nn.functional.softshrink(x, 0.3), (MATRIX,)),
    "hardshrink": (lambda x: nn.hardshrink(x, 0.3), lambda t, x: t.nn.functional.hardshrink(x, 0.3), (MATRIX,)),
    "threshold": (lambda x: nn.threshold(x, 0.1, 9), lambda t, x: t.nn.functional.threshold(x, 0.1, 9), (MATRIX,)),
    "exp": (nn.exp, lambda t, x: t.exp(x), (MATRIX,)),
    "log": (lambda x: nn.log(abs(x)), lambda t, x: t.log(t.abs(x)), (MATRIX,)),
    "sqrt": (lambda x: nn.sqrt(nn.abs(x)), lambda t, x: t.sqrt(t.abs(x)), (MATRIX,)),
    "square": (nn.square, lambda t, x: x * x, (MATRIX,)),
    "step": (lambda x: nn.step(x, 0.2), lambda t, x: (x > 0.2).float(), (MATRIX,)),
    "softmax": (lambda x: nn.softmax(x, -1), lambda t, x: t.softmax(x, -1), (ROWS,)),
    "log_softmax": (nn.log_softmax, lambda t, x: t.log_softmax(x, 1), (ROWS,)),
    "dropout": (lambda x: nn.dropout(x, 0.3), lambda t, x: x, (MATRIX,)),
    "add": (lambda a, b: nn.add(a, b, activation="relu"), lambda t, a, b: t.relu(a + b), (ROWS, (3, 1))),
    "mul": (lambda a, b: nn.mul(a, b, activation="tanh"), lambda t, a, b: t.tanh(a * b), (ROWS, (4,))),
    "add of a number": (lambda a: nn.add(a, 2, activation="relu"), lambda t, a: t.relu(a + 2), (ROWS,)),
    "maximum": (nn.maximum, lambda t, a, b: t.maximum(a, b), (ROWS, ROWS)),
    "weighted_sum": (lambda a, b: nn.weighted_sum(a, b, 2, -0.5), lambda t, a, b: 2 * a - 0.5 * b, (ROWS, ROWS)),
    "matmul": (
        lambda a, b, c: nn.matmul(a, b, c, transpose_b=True, alpha=0.5),
        lambda t, a, b, c: 0.5 * a @ b.transpose(-2, -1) + c,
        (ROWS, (2, 5, 4), (5,)),
    ),
    "matmul_add": (
        lambda a, b, c: nn.matmul_add(a, b, c, transpose_a=True, alpha=0.5, beta=2),
        lambda t, a, b, c: t.addmm(c, a.T, b, alpha=0.5, beta=2),
        ((4, 3), (4, 5), MATRIX),
    ),
    "pointwise": (
        lambda a, b: nn.pointwise("y0 = max(x0 * p0, x1)", a, b, scalars=[3]),
        lambda t, a, b: t.maximum(3 * a, b),
        (ROWS, ROWS),
    ),
    "sum": (lambda x: nn.sum(x, (0, 2)), lambda t, x: x.sum((0, 2)), (ROWS,)),
    "mean": (lambda x: nn.mean(x, -1, keepdim=True), lambda t, x: x.mean(-1, keepdim=True), (ROWS,)),
    "sum of squares": (lambda x: nn.reduce(x, "sumsq", 1, scale=2), lambda t, x: 2 * (x * x).sum(1), (ROWS,)),
    "max_pool2d": (
        lambda x: nn.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True),
        lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        (IMAGE,),
    ),
    "avg_pool2d": (
        lambda x: nn.avg_pool2d(x, (2, 3), padding=1),
        lambda t, x: t.nn.functional.avg_pool2d(x, (2, 3), padding=1),
        (IMAGE,),
    ),
    "avg_pool2d without padding": (
        lambda x: nn.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False),
        lambda t, x: t.nn.functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
        (IMAGE,),
    ),
    "global_avg_pool2d": (nn.global_avg_pool2d, lambda t, x: x.mean((2, 3), keepdim=True), (IMAGE,)),
    "global_max_pool2d": (nn.global_max_pool2d, lambda t, x: x.amax((2, 3), keepdim=True), (IMAGE,)),
    "interpolate": (
        lambda x: nn.interpolate(x, (9, 7), mode="bilinear", align_corners=True),
        lambda t, x: t.nn.functional.interpolate(x, (9, 7), mode="bilinear", align_corners=True),
        (IMAGE,),
    ),
    "interpolate by a factor": (
        lambda x: nn.interpolate(x, scale_factor=2),
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=2),
        (IMAGE,),
    ),
    "max_pool_nd": (
        lambda x: nn.max_pool_nd(x, 2, stride=1, dilation=(1, 2, 3), ceil_mode=True),
        lambda t, x: t.nn.functional.max_pool3d(x, 2, 1, dilation=(1, 2, 3), ceil_mode=True),
        (VOLUME,),
    ),
    "max_pool_nd_with_indices": (
        lambda x: nn.cast(nn.max_pool_nd_with_indices(x, 3, stride=2, padding=1)[1], "float32"),
        lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)[1].float(),
        (IMAGE,),
    ),
    "avg_pool_nd": (
        lambda x: nn.avg_pool_nd(x, 3, padding=1, count_include_pad=False),
        lambda t, x: t.nn.functional.avg_pool1d(x, 3, padding=1, count_include_pad=False),
        (SERIES,),
    ),
    "avg_pool_nd by a divisor": (
        lambda x: nn.avg_pool_nd(x, (2, 3), divisor_override=4),
        lambda t, x: t.nn.functional.avg_pool2d(x, (2, 3), divisor_override=4),
        (IMAGE,),
    ),
    "adaptive_avg_pool": (
        lambda x: nn.adaptive_avg_pool(x, 4),
        lambda t, x: t.nn.functional.adaptive_avg_pool1d(x, 4),
        (SERIES,),
    ),
    "adaptive_max_pool": (
        lambda x: nn.adaptive_max_pool(x, (None, 3)),
        lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (None, 3)),
        (IMAGE,),
    ),
    "adaptive_max_pool_with_indices": (
        lambda x: nn.cast(nn.adaptive_max_pool_with_indices(x, 2)[1], "float32"),
        lambda t, x: t.nn.functional.adaptive_max_pool3d(x, 2, return_indices=True)[1].float(),
        (VOLUME,),
    ),
    "resize": (
        lambda x: nn.resize(x, (4, 11), mode="cubic", antialias=True),
        lambda t, x: t.nn.functional.interpolate(x, (4, 11), mode="bicubic", antialias=True),
        (IMAGE,),
    ),
    "resize by a factor": (
        lambda x: nn.resize(x, scale_factor=1.7, mode="linear", align_corners=True),
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.7, mode="linear", align_corners=True),
        (SERIES,),
    ),
    "grid_sample": (
        lambda x, at: nn.grid_sample(x, at, "bicubic", "reflection", True),
        lambda t, x, at: t.nn.functional.grid_sample(x, at, "bicubic", "reflection", True),
        (IMAGE, (2, 3, 5, 2)),
    ),
    "argmax": (
        lambda x: nn.cast(nn.argmax(x, 1), "float32"),
        lambda t, x: t.argmax(x, 1).float(),
        (ROWS,),
    ),
    "argmin of all": (
        lambda x: nn.cast(nn.argmin(x, keepdim=True), "float32"),
        lambda t, x: t.argmin(x, None, True).float(),
        (ROWS,),
    ),
    "max": (lambda x: nn.max(x, -1)[0], lambda t, x: t.max(x, -1)[0], (ROWS,)),
    "min": (lambda x: nn.min(x, 1, keepdim=True)[0], lambda t, x: t.min(x, 1, True)[0], (ROWS,)),
    "cumsum": (lambda x: nn.cumsum(x, 1), lambda t, x: t.cumsum(x, 1), (ROWS,)),
    "cumsum from behind": (
        lambda x: nn.cumsum(x, 1, reverse=True, exclusive=True),
        lambda t, x: x.sum(1, keepdim=True) - x.cumsum(1),
        (ROWS,),
    ),
    "cumsum of integers": (
        lambda x: nn.cast(nn.cumsum(nn.cast(10 * x, "int8"), 0, dtype="int64"), "float32"),
        lambda t, x: (10 * x).to(t.int8).cumsum(0).float(),
        (ROWS,),
    ),
    "cumprod": (lambda x: nn.cumprod(x, -1), lambda t, x: t.cumprod(x, -1), (ROWS,)),
    "cummax": (lambda x: nn.cummax(x, 1)[0], lambda t, x: t.cummax(x, 1)[0], (ROWS,)),
    "cummin": (
        lambda x: nn.cast(nn.cummin(x, -1)[1], "float32"),
        lambda t, x: t.cummin(x, -1)[1].float(),
        (ROWS,),
    ),
    "logcumsumexp": (lambda x: nn.logcumsumexp(x, 2), lambda t, x: t.logcumsumexp(x, 2), (ROWS,)),
    "nonzero": (
        lambda x: nn.cast(nn.nonzero(nn.relu(x), size=9, fill_value=-3)[0], "float32"),
        lambda t, x: t.nonzero_static(t.relu(x), size=9, fill_value=-3).float(),
        (ROWS,),
    ),
    "nonzero, counted": (
        lambda x: nn.cast(nn.nonzero(nn.relu(x), flat=True)[1], "float32"),
        lambda t, x: (x > 0).sum().float().reshape(1),
        (ROWS,),
    ),
    "concat": (lambda a, b: nn.concat([a, b], -1), lambda t, a, b: t.cat([a, b], -1), (ROWS, (2, 3, 5))),
    "split": (lambda x: nn.split(x, 2, -1)[1], lambda t, x: t.chunk(x, 2, -1)[1], (ROWS,)),
    "slice": (lambda x: nn.slice(x, 2, 1, -1), lambda t, x: x[:, :, 1:-1], (ROWS,)),
    "flatten": (nn.flatten, lambda t, x: x.flatten(1), (ROWS,)),
    "reshape": (lambda x: nn.reshape(x, (0, -1, 2)), lambda t, x: x.reshape(2, -1, 2), (ROWS,)),
    "squeeze": (lambda x: nn.squeeze(x, 1), lambda t, x: x.squeeze(1), ((2, 1, 3),)),
    "unsqueeze": (lambda x: nn.unsqueeze(x, -1), lambda t, x: x.unsqueeze(-1), (ROWS,)),
    "transpose": (lambda x: nn.transpose(x, 0, 2), lambda t, x: x.transpose(0, 2), (ROWS,)),
    "permute": (lambda x: nn.permute(x, (2, 0, 1)), lambda t, x: x.permute(2, 0, 1), (ROWS,)),
    "flip": (lambda x: nn.flip(x, (0, -1)), lambda t, x: x.flip(0, -1), (ROWS,)),
    "pad": (
        lambda x: nn.pad(x, (1, 2, 0, 1), value=3),
        lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 1), value=3),
        (ROWS,),
    ),
    "pad by reflection": (
        lambda x: nn.pad(x, (1, 2), mode="reflect"),
        lambda t, x: t.nn.functional.pad(x, (1, 2), mode="reflect"),
        (ROWS,),
    ),
    "cast": (lambda x: nn.cast(nn.cast(x, "int32"), np.float32), lambda t, x: x.int().float(), (ROWS,)),
    "attention": (
        lambda q, k, v, m: nn.attention(q, k, v, m, scale=0.3),
        lambda t, q, k, v, m: t.nn.functional.scaled_dot_product_attention(q, k, v, m, scale=0.3),
        ((2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5)),
    ),
    "mse_loss": (
        lambda x, y: nn.mse_loss(x, y, reduce="none"),
        lambda t, x, y: t.nn.functional.mse_loss(x, y, reduction="none"),
        (ROWS, ROWS),
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_function(context: dlprim.Context, torch: Any, case: str) -> None:
    function, reference, shapes = CASES[case]
    rng = np.random.default_rng(11)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    symbols = [nn.Input(f"in{i}", shape) for i, shape in enumerate(shapes)]
    made = function(*symbols)
    expected = reference(torch, *map(torch.from_numpy, arrays)).numpy()
    assert made.shape == expected.shape
    net = nn.Model(symbols, {"y": made}).build(context, mode="inference")
    for i, array in enumerate(arrays):
        net.set_input(f"in{i}", array)
    net.forward()
    np.testing.assert_allclose(net.output("y").numpy(), expected, rtol=2e-5, atol=2e-6)


# A layer of nn, the module of torch that has the same weights, and the input's shape.
LAYERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], tuple[int, ...]]] = {
    "Conv2d": (
        lambda: nn.Conv2d(6, (3, 2), stride=2, padding=(1, 2), dilation=(1, 2), groups=2),
        lambda t: t.Conv2d(4, 6, (3, 2), 2, (1, 2), (1, 2), 2),
        IMAGE,
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(6, 3, stride=2, padding=1, output_padding=1, bias=False),
        lambda t: t.ConvTranspose2d(4, 6, 3, 2, 1, 1, bias=False),
        IMAGE,
    ),
    "ConvNd of one dimension": (
        lambda: nn.ConvNd(6, 3, stride=2, padding=1, groups=2),
        lambda t: t.Conv1d(4, 6, 3, 2, 1, groups=2),
        SERIES,
    ),
    "ConvNd of the same size": (
        lambda: nn.ConvNd(6, 3, padding="same", dilation=2),
        lambda t: t.Conv3d(4, 6, 3, padding="same", dilation=2),
        VOLUME,
    ),
    "ConvTransposeNd": (
        lambda: nn.ConvTransposeNd(3, (2, 3, 3), stride=2, padding=(0, 1, 1), output_padding=1, bias=False),
        lambda t: t.ConvTranspose3d(4, 3, (2, 3, 3), 2, (0, 1, 1), 1, bias=False),
        VOLUME,
    ),
    "Linear": (lambda: nn.Linear(7, features_in=4), lambda t: t.Linear(4, 7), ROWS),
    "BatchNorm": (lambda: nn.BatchNorm(eps=1e-3, features=4), lambda t: t.BatchNorm2d(4, eps=1e-3), IMAGE),
    "BatchNorm without affine": (lambda: nn.BatchNorm(affine=False), lambda t: t.BatchNorm2d(4, affine=False), IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm((3, 4)), lambda t: t.LayerNorm((3, 4)), ROWS),
    "LayerNorm of one": (lambda: nn.LayerNorm(4, bias=False), lambda t: t.LayerNorm(4, bias=False), ROWS),
    "LayerNorm by dims": (lambda: nn.LayerNorm(dims=2, eps=1e-3), lambda t: t.LayerNorm((3, 4), eps=1e-3), ROWS),
    "GroupNorm": (lambda: nn.GroupNorm(2), lambda t: t.GroupNorm(2, 4), IMAGE),
    "PReLU": (lambda: nn.PReLU(4), lambda t: t.PReLU(4), IMAGE),
    "LSTM": (
        lambda: nn.LSTM(5, num_layers=2, bidirectional=True, batch_first=True),
        lambda t: t.LSTM(4, 5, 2, bidirectional=True, batch_first=True),
        ROWS,
    ),
    "GRU": (lambda: nn.GRU(5, bias=False), lambda t: t.GRU(4, 5, bias=False), ROWS),
}


@pytest.mark.parametrize("case", list(LAYERS))
def test_layer_with_torchs_weights(context: dlprim.Context, torch: Any, case: str) -> None:
    make, make_module, shape = LAYERS[case]
    torch.manual_seed(6)
    module = make_module(torch.nn).eval()
    with torch.no_grad():
        for tensor in module.state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.1, 1)
    x = nn.Input("data", shape)
    made = make()(x)
    made = made if isinstance(made, tuple) else (made,)
    model = nn.Model(x, {f"y{i}": y for i, y in enumerate(made)})
    net = model.build(context, mode="inference")
    dlprim.weights.load(net, module)
    values = torch.randn(shape)
    net.set_input("data", values.numpy())
    net.forward()
    with torch.no_grad():
        expected = module(values)
    flat = [expected] if not isinstance(expected, tuple) else [expected[0], *_flat(expected[1])]
    assert len(flat) == len(made)
    for i, y in enumerate(flat):
        assert made[i].shape == tuple(y.shape)
        np.testing.assert_allclose(net.output(f"y{i}").numpy(), y.numpy(), rtol=1e-4, atol=1e-5)


def _flat(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


def test_first_states_of_recurrent_layers(host: dlprim.Context, torch: Any) -> None:
    x, h0, c0 = nn.Input("x", (6, 2, 4)), nn.Input("h0", (1, 2, 5)), nn.Input("c0", (1, 2, 5))
    y, _, c = nn.LSTM(5)(x, h0, c0)
    z, h = nn.GRU(5)(x, h0)
    net = nn.Model([x, h0, c0], {"y": y, "c": c, "z": z, "h": h}).build(host, mode="inference")
    torch.manual_seed(8)
    lstm, gru = torch.nn.LSTM(4, 5), torch.nn.GRU(4, 5)
    dlprim.weights.load(net, torch.nn.ModuleList([lstm, gru]))
    values = {name: torch.randn(net.input_shape(name)) for name in ("x", "h0", "c0")}
    for name, value in values.items():
        net.set_input(name, value.numpy())
    net.forward()
    with torch.no_grad():
        y_, (_, c_) = lstm(values["x"], (values["h0"], values["c0"]))
        z_, h_ = gru(values["x"], values["h0"])
    for name, expected in {"y": y_, "c": c_, "z": z_, "h": h_}.items():
        np.testing.assert_allclose(net.output(name).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_embedding(host: dlprim.Context, torch: Any) -> None:
    x = nn.Input("x", (2, 3), "int64")
    net = nn.Model(x, {"y": nn.Embedding(9, 4, padding_idx=-1)(x)}).build(host, mode="inference")
    module = torch.nn.Embedding(9, 4, padding_idx=-1)
    dlprim.weights.load(net, module)
    indices = torch.tensor([[0, 8, 3], [5, 5, 1]])
    net.set_input("x", indices.numpy())
    net.forward()
    np.testing.assert_array_equal(net.output("y").numpy(), module(indices).detach().numpy())


def indexed_model() -> nn.Model:
    x, index = nn.Input("x", (4, 5)), nn.Input("index", (4, 2), "int64")
    values, positions = nn.topk(x, 2, largest=False)
    outputs = {
        "elements": nn.gather(x, 1, index),
        "rows": nn.index_select(x, -1, index),
        "tuples": nn.gather_nd(x, index),
        "changed": nn.scatter(x, 1, index, values, reduction="add"),
        "tuples_changed": nn.scatter_nd(x, index, nn.reshape(nn.slice(values, 1, 0, 1), (4,))),
        "positions": positions,
        "sorted": nn.sort(x, 0, descending=True)[0],
    }
    return nn.Model([x, index], outputs)


def test_indices_and_order(host: dlprim.Context, torch: Any) -> None:
    net = indexed_model().build(host, mode="inference")
    torch.manual_seed(7)
    x, index = torch.randn(4, 5), torch.tensor([[0, 4], [1, 2], [3, 3], [2, 0]])
    net.set_input("x", x.numpy())
    net.set_input("index", index.numpy())
    net.forward()
    values, positions = x.topk(2, largest=False)
    at = tuple(index.unbind(-1))
    expected = {
        "elements": x.gather(1, index),
        "rows": x[:, index],
        "tuples": x[at],
        "changed": x.scatter_add(1, index, values),
        "tuples_changed": x.index_put(at, values[:, 0]),
        "positions": positions,
        "sorted": x.sort(0, descending=True)[0],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(net.output(name).numpy(), value.numpy(), rtol=1e-6)


def test_losses_of_labels(host: dlprim.Context, torch: Any) -> None:
    x = nn.Input("x", (4, 3, 5))
    rows = nn.mean(x, -1)
    logs = nn.log_softmax(x)
    outputs = {
        "loss_a": nn.softmax_with_loss(rows, "a"),
        "loss_b": nn.nll_loss(logs, "b", reduce="sum"),
        "loss_c": nn.nll_loss(logs, "b", reduce="none", weight=2),
    }
    net = nn.Model(x, outputs).build(host, mode="evaluation")
    assert net.loss_weights == {"loss_a": 1, "loss_b": 1, "loss_c": 2}
    torch.manual_seed(9)
    values, a, b = torch.randn(4, 3, 5), torch.randint(0, 3, (4,)), torch.randint(0, 3, (4, 5))
    for name, value in {"x": values, "a": a.int(), "b": b.int()}.items():
        net.set_input(name, value.numpy())
    net.forward()
    f = torch.nn.functional
    expected = {
        "loss_a": f.cross_entropy(values.mean(-1), a).reshape(1),
        "loss_b": f.nll_loss(f.log_softmax(values, 1), b, reduction="sum").reshape(1),
        "loss_c": f.nll_loss(f.log_softmax(values, 1), b, reduction="none"),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(net.output(name).numpy(), value.numpy(), rtol=1e-5)


def test_parameters_that_belong_to_the_network(host: dlprim.Context) -> None:
    x = nn.Input("x", (2, 3))
    scale = nn.parameter((3,), value=2.0, name="scale")
    shift = nn.parameter((3,), trainable=False, value=1.0, name="shift")
    model = nn.Model(x, {"y": x * scale + shift})
    assert [(p.name, p.trainable) for p in model.parameters] == [("scale.0", True), ("shift.0", False)]
    net = model.build(host, mode="inference")
    net.initialize()
    net.set_input("x", np.ones((2, 3), np.float32))
    net.forward()
    assert net.output("y").numpy().tolist() == [[3.0] * 3] * 2


def test_programs_of_several_outputs(host: dlprim.Context) -> None:
    x = nn.Input("x", (2, 3))
    total, largest = nn.pointwise_all("y0 = sum[1](x0); y1 = max[1](x0)", x, keepdim=False)
    assert (total.shape, largest.shape) == ((2,), (2,))
    net = nn.Model(x, {"total": total, "largest": largest}).build(host, mode="inference")
    net.set_input("x", np.arange(6, dtype=np.float32).reshape(2, 3))
    net.forward()
    assert (net.output("total").numpy().tolist(), net.output("largest").numpy().tolist()) == ([3, 12], [2, 5])


# Layers that stand in lists, for functions that test_function() tests.
STEPS: list[Any] = [
    nn.ConvNd(4, 3, padding="same"), nn.ConvTransposeNd(4, 1),
    nn.Conv2d(4, 3), nn.ReLU(), nn.ReLU6(), nn.Sigmoid(), nn.Tanh(), nn.GELU(), nn.SiLU(),
    nn.Hardswish(), nn.Hardsigmoid(), nn.LeakyReLU(), nn.ELU(), nn.Softplus(), nn.Mish(), nn.Hardtanh(),
    nn.PReLU(), nn.Activation("selu"), nn.Dropout(),
    nn.Upsample(scale_factor=2), nn.Pad((1, 1)), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.GroupNorm(2),
    nn.MaxPoolNd(3, stride=1, padding=1), nn.AvgPoolNd(1), nn.AdaptiveMaxPool((4, None)), nn.AdaptiveAvgPool(3),
    nn.GlobalAvgPool2d(), nn.GlobalMaxPool2d(), nn.Reshape((0, 2, 2)), nn.Softmax(), nn.LogSoftmax(-1),
    nn.Flatten(), nn.Linear(3),
    nn.SoftmaxWithLoss(),
]  # fmt: skip


def test_layers_in_a_list(host: dlprim.Context) -> None:
    net = nn.Sequential([nn.Input("x", (2, 3, 8, 8)), *STEPS]).build(host, mode="training")
    net.initialize()
    for name in net.input_names:
        net.input(name).fill(0)
    net.forward()
    assert net.output("loss").numpy().shape == (1,)


def test_every_operator_of_the_documentation_can_be_made() -> None:
    """The types in the table of docs/json.md are those that layers and functions make."""
    table = (ROOT / "docs/json.md").read_text().split("| type | options (default)")[1].split("\n\n")[0]
    documented = {name.strip() for row in table.splitlines()[2:] for name in row.split("|")[1].split(",")}
    x, words = nn.Input("x", MATRIX), nn.Input("words", (3,), "int32")
    made = types([x], nn.softmax_with_loss(x)) | types([x], nn.nll_loss(x)) | types([], nn.parameter((3,)))
    made |= types([words], nn.Embedding(3, 4)(words)) | {layer.type for layer in indexed_model().layers}
    for function, _, shapes in CASES.values():
        symbols = [nn.Input(f"in{i}", shape) for i, shape in enumerate(shapes)]
        made |= types(symbols, function(*symbols))
    for make, _, shape in LAYERS.values():
        symbol = nn.Input("data", shape)
        made |= types([symbol], make()(symbol))
    assert "Convolution2D" in documented and len(documented) > 30
    assert documented - made == set()


def types(inputs: list[nn.Symbol], made: Any) -> set[str]:
    return {layer.type for layer in nn.Model(inputs, made).layers}
