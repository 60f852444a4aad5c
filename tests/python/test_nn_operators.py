# SPDX-License-Identifier: MIT
"""Every operator of docs/json.md from dlprim.nn: its results beside those of dlprim.ops, or PyTorch's."""

from __future__ import annotations

import inspect
import json
import pathlib
from collections.abc import Callable
from typing import Any

import dlprim
import numpy as np
import ops_cases
import pytest
from dlprim import nn, ops
from dlprim._core import operator_declarations
from ops_cases import Case, convert

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE, MATRIX, ROWS = (2, 4, 6, 8), (3, 5), (2, 3, 4)
SERIES, VOLUME = (2, 4, 9), (2, 4, 5, 6, 7)

# What nn makes otherwise than dlprim.ops: a function of symbols, what torch makes of tensors, and the inputs' shapes.
OWN: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "step": (lambda x: nn.step(x, 0.2), lambda t, x: (x > 0.2).float(), (MATRIX,)),
    "log_softmax of dimension 1": (nn.log_softmax, lambda t, x: t.log_softmax(x, 1), (ROWS,)),
    "dropout": (lambda x: nn.dropout(x, 0.3), lambda t, x: x, (MATRIX,)),
    "add": (lambda a, b: nn.add(a, b, activation="relu"), lambda t, a, b: t.relu(a + b), (ROWS, (3, 1))),
    "mul": (lambda a, b: nn.mul(a, b, activation="tanh"), lambda t, a, b: t.tanh(a * b), (ROWS, (4,))),
    "add of a number": (lambda a: nn.add(a, 2, activation="relu"), lambda t, a: t.relu(a + 2), (ROWS,)),
    "pow": (lambda x: nn.pow(nn.exp(x), 1.5), lambda t, x: t.exp(x) ** 1.5, (MATRIX,)),
    "weighted_sum": (lambda a, b: nn.weighted_sum(a, b, 2, -0.5), lambda t, a, b: 2 * a - 0.5 * b, (ROWS, ROWS)),
    "pointwise": (
        lambda a, b: nn.pointwise("y0 = max(x0 * p0, x1)", a, b, scalars=[3]),
        lambda t, a, b: t.maximum(3 * a, b),
        (ROWS, ROWS),
    ),
    "pointwise_all": (
        lambda x: nn.pointwise_all("y0 = sum[1](x0); y1 = max[1](x0)", x, keepdim=False),
        lambda t, x: (x.sum(1), x.amax(1)),
        (MATRIX,),
    ),
    "reduce": (lambda x: nn.reduce(x, "sumsq", 1, scale=2), lambda t, x: 2 * (x * x).sum(1), (ROWS,)),
    "cumsum of integers": (
        lambda x: nn.cumsum(nn.cast(10 * x, "int8"), 0, dtype="int64"),
        lambda t, x: (10 * x).to(t.int8).cumsum(0),
        (ROWS,),
    ),
    "nonzero of floats": (
        lambda x: nn.nonzero(nn.relu(x), size=9, fill_value=-3),
        lambda t, x: (t.nonzero_static(t.relu(x), size=9, fill_value=-3), (x > 0).sum().reshape(1)),
        (ROWS,),
    ),
    "concat": (lambda a, b: nn.concat([a, b]), lambda t, a, b: t.cat([a, b], 1), (ROWS, (2, 5, 4))),
    "split": (lambda x: nn.split(x, 3), lambda t, x: t.chunk(x, 3, 1), (ROWS,)),
    "unsqueeze": (lambda x: nn.unsqueeze(x, -1), lambda t, x: x.unsqueeze(-1), (ROWS,)),
    "mse_loss": (
        lambda x, y: nn.mse_loss(x, y, reduce="none"),
        lambda t, x, y: t.nn.functional.mse_loss(x, y, reduction="none"),
        (ROWS, ROWS),
    ),
    "huber_loss": (
        lambda x, y: nn.huber_loss(x, y, delta=0.5),
        lambda t, x, y: t.nn.functional.huber_loss(x, y, delta=0.5).reshape(1),
        (ROWS, ROWS),
    ),
}


def as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def computed(
    context: dlprim.Context, symbols: list[nn.Symbol], made: Any, arrays: list[np.ndarray]
) -> list[np.ndarray]:
    """What a network of these outputs makes of arrays. Results have the shapes that their symbols say."""
    outputs = {f"y{i}": symbol for i, symbol in enumerate(as_tuple(made))}
    net = nn.Model(symbols, outputs).build(context, mode="inference")
    found = net.run(**{symbol.name: array for symbol, array in zip(symbols, arrays)})
    assert {name: array.shape for name, array in found.items()} == {name: y.shape for name, y in outputs.items()}
    return [found[name] for name in outputs]


def assert_near(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert [array.dtype for array in found] == [array.dtype for array in expected]
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", OWN)
def test_function(context: dlprim.Context, torch: Any, case: str) -> None:
    function, reference, shapes = OWN[case]
    rng = np.random.default_rng(11)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    symbols = [nn.Input(f"in{i}", shape) for i, shape in enumerate(shapes)]
    expected = as_tuple(reference(torch, *map(torch.from_numpy, arrays)))
    assert_near(computed(context, symbols, function(*symbols), arrays), [tensor.numpy() for tensor in expected])


def arguments_for_nn(case: Case) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a call of dlprim.ops for the function of dlprim.nn that has its name. None where it lacks one.

    What nn takes as a keyword alone goes by its name, and so does what the two leave out with other meanings.
    """
    if not hasattr(nn, case.name):
        return None
    ours, theirs = (inspect.signature(getattr(module, case.name)).parameters for module in (nn, ops))
    places = [name for name, parameter in ours.items() if parameter.kind == parameter.POSITIONAL_OR_KEYWORD]
    names = {*places, *(name for name, parameter in ours.items() if parameter.kind == parameter.KEYWORD_ONLY)}
    by_place = list(case.args[: len(places)])
    by_name = dict(zip(list(theirs)[len(by_place) :], case.args[len(by_place) :])) | case.kwargs
    if not names >= by_name.keys():
        return None
    left_out = (names & theirs.keys()) - by_name.keys() - set(places[: len(by_place)])
    defaults = {name: theirs[name].default for name in left_out}
    return by_place, by_name | {name: value for name, value in defaults.items() if value != ours[name].default}


SHARED = [(case, made) for case in ops_cases.CASES if (made := arguments_for_nn(case)) is not None]


class Inputs:
    """Symbols in the place of arrays, which it keeps."""

    def __init__(self) -> None:
        self.symbols: list[nn.Symbol] = []
        self.arrays: list[np.ndarray] = []

    def __call__(self, array: np.ndarray) -> nn.Symbol:
        self.symbols.append(nn.Input(f"in{len(self.symbols)}", array.shape, str(array.dtype)))
        self.arrays.append(array)
        return self.symbols[-1]


@pytest.mark.parametrize(("case", "made"), SHARED, ids=[f"{case.name}-{i}" for i, (case, _) in enumerate(SHARED)])
def test_function_of_the_same_name(context: dlprim.Context, case: Case, made: tuple[list[Any], dict[str, Any]]) -> None:
    """Calls that test_ops.py compares with PyTorch give the same in a network."""
    inputs, (args, kwargs) = Inputs(), made
    symbols = getattr(nn, case.name)(*(convert(arg, inputs) for arg in args), **kwargs)
    tensors = (convert(arg, lambda array: dlprim.Tensor(context, array)) for arg in case.args)
    expected = [tensor.numpy() for tensor in as_tuple(case.function(*tensors, **case.kwargs))]
    assert_near(computed(context, inputs.symbols, symbols, inputs.arrays), expected)


def test_every_function_is_called() -> None:
    others = {"loss", "parameter", "nll_loss", "linear_cross_entropy", "softmax_with_loss", "activation"}
    functions = {name for name in nn.__all__ if name.islower()}
    called = {case.name for case, _ in SHARED} | {name.split()[0] for name in OWN}
    assert functions - called == others - called


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
    "RMSNorm": (lambda: nn.RMSNorm((3, 4)), lambda t: t.RMSNorm((3, 4), eps=1e-5), ROWS),
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
    made = as_tuple(make()(x))
    net = nn.Model(x, {f"y{i}": y for i, y in enumerate(made)}).build(context, mode="inference")
    dlprim.weights.load(net, module)
    values = torch.randn(shape)
    found = net.run(data=values.numpy())
    with torch.no_grad():
        expected = module(values)
    flat = [expected] if not isinstance(expected, tuple) else [expected[0], *as_tuple(expected[1])]
    assert len(flat) == len(made)
    for i, y in enumerate(flat):
        assert made[i].shape == tuple(y.shape)
        np.testing.assert_allclose(found[f"y{i}"], y.numpy(), rtol=1e-4, atol=1e-5)


def test_first_states_of_recurrent_layers(host: dlprim.Context, torch: Any) -> None:
    x, h0, c0 = nn.Input("x", (6, 2, 4)), nn.Input("h0", (1, 2, 5)), nn.Input("c0", (1, 2, 5))
    y, _, c = nn.LSTM(5)(x, h0, c0)
    z, h = nn.GRU(5)(x, h0)
    net = nn.Model([x, h0, c0], {"y": y, "c": c, "z": z, "h": h}).build(host, mode="inference")
    torch.manual_seed(8)
    lstm, gru = torch.nn.LSTM(4, 5), torch.nn.GRU(4, 5)
    dlprim.weights.load(net, torch.nn.ModuleList([lstm, gru]))
    values = {name: torch.randn(net.input_shape(name)) for name in ("x", "h0", "c0")}
    found = net.run(**{name: value.numpy() for name, value in values.items()})
    with torch.no_grad():
        y_, (_, c_) = lstm(values["x"], (values["h0"], values["c0"]))
        z_, h_ = gru(values["x"], values["h0"])
    for name, expected in {"y": y_, "c": c_, "z": z_, "h": h_}.items():
        np.testing.assert_allclose(found[name], expected.numpy(), rtol=1e-4, atol=1e-5)


def test_embedding(host: dlprim.Context, torch: Any) -> None:
    x = nn.Input("x", (2, 3), "int64")
    net = nn.Model(x, {"y": nn.Embedding(9, 4, padding_idx=-1)(x)}).build(host, mode="inference")
    module = torch.nn.Embedding(9, 4, padding_idx=-1)
    dlprim.weights.load(net, module)
    indices = torch.tensor([[0, 8, 3], [5, 5, 1]])
    np.testing.assert_array_equal(net.run(x=indices.numpy())["y"], module(indices).detach().numpy())


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
    found = net.run(x=values.numpy(), a=a.int().numpy(), b=b.int().numpy())
    f = torch.nn.functional
    expected = {
        "loss_a": f.cross_entropy(values.mean(-1), a).reshape(1),
        "loss_b": f.nll_loss(f.log_softmax(values, 1), b, reduction="sum").reshape(1),
        "loss_c": f.nll_loss(f.log_softmax(values, 1), b, reduction="none"),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value.numpy(), rtol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_loss_with_the_last_product(context: dlprim.Context, torch: Any, bias: bool) -> None:
    """Chunks of two rows give the loss and the gradients of the plain form."""
    x = nn.Input("x", (3, 4, 5))
    loss = nn.linear_cross_entropy(x, 7, bias=bias, ignore_index=2, chunk_bytes=2 * 7 * 4, name="head")
    net = nn.Model(x, loss).build(context, mode="training")
    torch.manual_seed(10)
    head = torch.nn.Linear(5, 7, bias=bias)
    dlprim.weights.load(net, head)
    values, labels = torch.randn(3, 4, 5), torch.randint(0, 7, (3, 4))
    labels[0, :3] = 2  # a whole chunk, and a row of another, are ignored
    net.set_input("x", values.numpy())
    net.set_input("label", labels.int().numpy())
    net.forward()
    net.backward()
    expected = torch.nn.functional.cross_entropy(head(values).flatten(0, 1), labels.flatten(), ignore_index=2)
    expected.backward()
    np.testing.assert_allclose(net.output(net.output_names[0]).numpy(), [expected.item()], rtol=1e-5)
    for i, parameter in enumerate(head.parameters()):
        assert parameter.grad is not None
        np.testing.assert_allclose(net.gradient(f"head.{i}").numpy(), parameter.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_parameters_that_belong_to_the_network(host: dlprim.Context) -> None:
    x = nn.Input("x", (2, 3))
    scale = nn.parameter((3,), value=2.0, name="scale")
    shift = nn.parameter((3,), trainable=False, value=1.0, name="shift")
    model = nn.Model(x, {"y": x * scale + shift})
    assert [(p.name, p.trainable) for p in model.parameters] == [("scale.0", True), ("shift.0", False)]
    net = model.build(host, mode="inference")
    net.initialize()
    assert net.run(x=np.ones((2, 3), np.float32))["y"].tolist() == [[3.0] * 3] * 2


# Layers that stand in lists, for functions that test_function() tests.
STEPS: list[Any] = [
    nn.Unfold(3, padding=1), nn.Fold(8, 3, padding=1),
    nn.ConvNd(4, 3, padding="same"), nn.ConvTransposeNd(4, 1), nn.GatedActivation(dim=1),
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
    made |= types([x], nn.linear_cross_entropy(x, 5))
    made |= types([words], nn.Embedding(3, 4)(words)) | types([x], nn.dropout(x)) | types([x], nn.step(x))
    for case, (args, kwargs) in SHARED:
        inputs = Inputs()
        symbols = getattr(nn, case.name)(*(convert(arg, inputs) for arg in args), **kwargs)
        made |= types(inputs.symbols, symbols)
    for make, _, shape in LAYERS.values():
        symbol = nn.Input("data", shape)
        made |= types([symbol], make()(symbol))
    declared = json.loads(operator_declarations())
    made |= {declared[name]["alias_of"] for name in made if "alias_of" in declared.get(name, {})}
    assert "Softmax" in documented and len(documented) > 30
    assert documented - made == set()


def types(inputs: list[nn.Symbol], made: Any) -> set[str]:
    return {layer.type for layer in nn.Model(inputs, list(as_tuple(made))).layers}
