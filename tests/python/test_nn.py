# SPDX-License-Identifier: MIT
"""dlprim.nn: describing networks: names, shapes, sharing, inputs of labels, and what mistakes get."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import nn


def image(channels: int = 3, size: int = 8, name: str = "data") -> nn.Symbol:
    return nn.Input(name, (2, channels, size, size))


def operators(model: nn.Model) -> list[dict[str, Any]]:
    return list(model.to_dict()["operators"])


def test_a_model_is_the_json_of_the_documentation() -> None:
    x = nn.Input("data", (64, 1, 28, 28))
    y = nn.Conv2d(16, 3, padding=1, activation="relu", name="conv")(x)
    y = nn.global_max_pool2d(y, name="pool")
    logits = nn.Linear(10, name="fc")(nn.flatten(y, name="flat"))
    model = nn.Model(x, {"prob": nn.softmax(logits), "loss": nn.softmax_with_loss(logits)})
    assert model.to_dict() == {
        "inputs": [
            {"name": "data", "shape": [64, 1, 28, 28]},
            {"name": "label", "shape": [64], "dtype": "int"},
        ],
        "outputs": ["prob", "loss"],
        "operators": [
            {"name": "conv", "type": "Convolution", "inputs": ["data"], "outputs": ["conv"],
             "options": {"channels_out": 16, "kernel": 3, "pad": 1, "activation": "relu"}},
            {"name": "pool", "type": "GlobalPooling", "inputs": ["conv"], "outputs": ["pool"],
             "options": {"mode": "max"}},
            {"name": "flat", "type": "Flatten", "inputs": ["pool"], "outputs": ["flat"]},
            {"name": "fc", "type": "InnerProduct", "inputs": ["flat"], "outputs": ["fc"], "options": {"outputs": 10}},
            {"name": "prob", "type": "Softmax", "inputs": ["fc"], "outputs": ["prob"]},
            {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["fc", "label"], "outputs": ["loss"]},
        ],
    }  # fmt: skip


def test_json_text_holds_one_operator_a_line(tmp_path: pathlib.Path) -> None:
    x = image()
    model = nn.Model(x, nn.relu(nn.Conv2d(4, 3)(x)))
    text = model.to_json(tmp_path / "net.json")
    assert json.loads(text) == model.to_dict()
    assert (tmp_path / "net.json").read_text() == text
    assert sum('"type"' in line for line in text.splitlines()) == 2


def test_shapes_are_known_at_once() -> None:
    x = nn.Input("data", (2, 3, 224, 224))
    y = nn.Conv2d(64, 7, stride=2, padding=3)(x)
    assert (y.shape, y.dtype, y.ndim) == ((2, 64, 112, 112), "float32", 4)
    assert nn.max_pool2d(y, 3, stride=2, padding=1).shape == (2, 64, 56, 56)
    assert nn.ConvTranspose2d(8, 4, stride=2, padding=1)(y).shape == (2, 8, 224, 224)
    assert nn.cast(y, np.float16).dtype == "float16"


def test_generated_names_count_by_kind_and_depend_on_the_model_alone() -> None:
    def names() -> list[str]:
        x = image()
        y = nn.relu(nn.Conv2d(4, 3)(x)) + nn.Conv2d(4, 3)(x)
        return [op["name"] for op in operators(nn.Model(x, nn.BatchNorm()(y)))]

    assert names() == ["conv2d_1", "relu_1", "conv2d_2", "add_1", "batch_norm_1"]
    assert names() == names()


def test_generated_names_go_around_given_ones() -> None:
    x = nn.Input("relu_1", (2, 4))
    y = nn.relu(nn.relu(nn.Linear(4, name="relu_2")(x)))
    assert [op["name"] for op in operators(nn.Model(x, y))] == ["relu_2", "relu_3", "relu_4"]


def test_layers_keep_their_generated_names_in_further_models() -> None:
    x = image()
    first, second = nn.Conv2d(4, 3), nn.Conv2d(5, 3)
    y = second(first(x))
    whole = nn.Model(x, y)
    assert [p.name for p in whole.parameters] == ["conv2d_1.0", "conv2d_1.1", "conv2d_2.0", "conv2d_2.1"]
    tail_input = nn.Input("tail", (2, 4, 6, 6))
    tail = nn.Model(tail_input, second(tail_input))
    assert [p.name for p in tail.parameters] == ["conv2d_2.0", "conv2d_2.1"]


def test_calling_a_layer_twice_shares_its_parameters() -> None:
    x = nn.Input("data", (2, 4))
    layer = nn.Linear(4, name="fc")
    model = nn.Model(x, layer(layer(x)))
    assert [(op["name"], op.get("params")) for op in operators(model)] == [("fc", None), ("fc_2", ["fc.0", "fc.1"])]
    assert [p.name for p in model.parameters] == ["fc.0", "fc.1"]


def test_parameters_can_be_given_names() -> None:
    x = nn.Input("data", (2, 4))
    model = nn.Model(x, nn.Linear(3, params=["head.weight", "head.bias"])(x))
    assert operators(model)[0]["params"] == ["head.weight", "head.bias"]
    assert [(p.name, p.shape) for p in model.parameters] == [("head.weight", (3, 4)), ("head.bias", (3,))]


def test_a_model_is_called_like_a_layer() -> None:
    x = image()
    features = nn.Model(x, nn.relu(nn.Conv2d(4, 3)(x)))
    a, b = image(name="a"), image(name="b")
    both = nn.Model([a, b], features(a) - features(b))
    assert [p.name for p in both.parameters] == ["conv2d_1.0", "conv2d_1.1"]
    assert [op["inputs"] for op in operators(both)][0] == ["a"]
    with pytest.raises(dlprim.InvalidArgumentError, match="called with 2 tensors, it has 1 inputs"):
        features(a, b)


def test_sequential_without_an_input_is_a_block() -> None:
    block = nn.Sequential([nn.Linear(5), nn.relu, nn.Sequential([nn.Linear(3)])])
    assert repr(block) == "<Sequential of 3 layers>" == str(block)
    x = nn.Input("data", (2, 4))
    assert block(x).shape == (2, 3)
    with pytest.raises(dlprim.InvalidArgumentError, match="this Sequential has no input"):
        block.to_dict()


def test_sequential_goes_on_from_the_output_of_an_lstm() -> None:
    model = nn.Sequential([nn.Input("data", (7, 2, 4)), nn.LSTM(5), nn.Linear(3)])
    assert model.layers[-1].outputs[0].shape == (7, 2, 3)


def test_losses_make_inputs_for_their_labels_and_share_them() -> None:
    x = nn.Input("data", (2, 4))
    a, b = nn.Linear(3)(x), nn.Linear(3)(x)
    model = nn.Model(x, [nn.softmax_with_loss(a), nn.softmax_with_loss(b, weight=0.3)])
    assert [entry["name"] for entry in model.to_dict()["inputs"]] == ["data", "label"]
    assert model.to_dict()["outputs"] == ["loss", {"name": "loss_2", "loss_weight": 0.3}]
    regression = nn.Model(x, nn.mse_loss(nn.Linear(3)(x), reduce="sum"))
    assert regression.to_dict()["inputs"][1] == {"name": "target", "shape": [2, 3]}


def test_labels_can_be_a_symbol() -> None:
    x, label = nn.Input("data", (2, 4)), nn.Input("classes", (2,), "int32")
    model = nn.Model([x, label], nn.softmax_with_loss(nn.Linear(3)(x), label))
    assert [entry["name"] for entry in model.to_dict()["inputs"]] == ["data", "classes"]


def test_any_tensor_can_be_a_loss() -> None:
    x = nn.Input("data", (2, 4))
    model = nn.Model(x, {"penalty": nn.loss(nn.reduce(nn.Linear(3)(x), "sumsq"), weight=0.01)})
    assert model.to_dict()["outputs"] == [{"name": "penalty", "loss_weight": 0.01}]


def test_linear_acts_on_the_last_dimension(host: dlprim.Context) -> None:
    x = nn.Input("data", (2, 3, 4))
    y = nn.Linear(5)(x)
    assert y.shape == (2, 3, 5)
    net = nn.Model(x, {"y": y}).build(host, mode="inference", batch=6)  # other batches than the declared
    net.initialize()
    values = np.random.default_rng(1).standard_normal((6, 3, 4)).astype(np.float32)
    weight, bias = (net.param(name).numpy() for name in net.param_names)
    np.testing.assert_allclose(net.run(data=values)["y"], values @ weight.T + bias, rtol=1e-5, atol=1e-6)


ARITHMETIC: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("a + b", lambda a, b: a + b),
    ("a - b", lambda a, b: a - b),
    ("a * b", lambda a, b: a * b),
    ("a / b", lambda a, b: a / b),
    ("2 - a", lambda a, b: 2 - a),
    ("3 / b", lambda a, b: 3 / b),
    ("a * 1.5 + 1", lambda a, b: a * 1.5 + 1),
    ("numpy's numbers", lambda a, b: a * np.float32(1.5) + np.float64(1)),
    ("b ** 2", lambda a, b: b**2),
    ("b ** 1.5", lambda a, b: b**1.5),
    ("-a", lambda a, b: -a),
    ("abs(a)", lambda a, b: abs(a)),
    ("a @ b", lambda a, b: a @ b),
    ("a[0]", lambda a, b: a[0]),
    ("a[:, 1:3]", lambda a, b: a[:, 1:3]),
    ("a[..., -1]", lambda a, b: a[..., -1]),
    ("a[-2:, None, 1]", lambda a, b: a[-2:, None, 1]),
    ("a[:-1, :-2]", lambda a, b: a[:-1, :-2]),
    ("a[None]", lambda a, b: a[None]),
    ("a[:]", lambda a, b: a[:]),
]


@pytest.mark.parametrize(("text", "function"), ARITHMETIC, ids=[text for text, _ in ARITHMETIC])
def test_arithmetic_is_numpys(host: dlprim.Context, text: str, function: Callable[[Any, Any], Any]) -> None:
    rng = np.random.default_rng(3)
    arrays = {"a": rng.standard_normal((4, 4)).astype(np.float32), "b": rng.uniform(1, 2, (4, 4)).astype(np.float32)}
    a, b = (nn.Input(name, array.shape) for name, array in arrays.items())
    made = function(a, b)
    expected = function(arrays["a"], arrays["b"])
    assert made.shape == expected.shape
    model = nn.Model([a, b], {"y": nn.activation(made, "identity")})
    net = model.build(host, mode="inference")
    np.testing.assert_allclose(net.run(**arrays)["y"], expected, rtol=1e-5, atol=1e-6)


def test_integers_stay_integers(host: dlprim.Context) -> None:
    x = nn.Input("x", (3,), "int32")
    y = -(x * 2 + x) - 5
    assert y.dtype == "int32"
    net = nn.Model(x, {"y": y}).build(host, mode="inference")
    assert net.run(x=np.array([1, -2, 3], np.int32))["y"].tolist() == [-8, 1, -14]


def test_slices_of_the_batch_follow_its_size(host: dlprim.Context) -> None:
    x = nn.Input("x", (2, 3))
    net = nn.Model(x, {"y": x[1:, 1:]}).build(host, mode="inference", batch=5)
    found = net.run(x=np.arange(15, dtype=np.float32).reshape(5, 3))["y"]
    assert found.tolist() == [[4, 5], [7, 8], [10, 11], [13, 14]]


def test_options_of_every_layer_reach_the_json() -> None:
    x = nn.Input("data", (2, 4))
    y = nn.Linear(3, frozen=True, recompute=True, engine="inner_product.gemm", precision="fp16")(x)
    operator = operators(nn.Model(x, y))[0]
    assert (operator["frozen"], operator["engine"], operator["precision"]) == (True, "inner_product.gemm", "fp16")
    assert operator["recompute"] is True
    model = nn.Model(x, y)
    assert not any(p.trainable for p in model.parameters)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_same_padding_keeps_the_size(host: dlprim.Context, torch: Any) -> None:
    x = image(1, 9)
    y = nn.Conv2d(2, (4, 3), padding="same", dilation=(1, 2))(x)
    assert y.shape == (2, 2, 9, 9)
    net = nn.Model(x, {"y": y}).build(host, mode="inference")
    torch.manual_seed(1)
    module = torch.nn.Conv2d(1, 2, (4, 3), padding="same", dilation=(1, 2))
    dlprim.weights.load(net, module)
    values = torch.randn(2, 1, 9, 9)
    np.testing.assert_allclose(net.run(data=values.numpy())["y"], module(values).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_same_padding_of_any_dimensions() -> None:
    series, volume = nn.Input("series", (2, 1, 9)), nn.Input("volume", (2, 1, 5, 6, 7))
    assert nn.ConvNd(2, [4], padding="same")(series).shape == (2, 2, 9)
    assert nn.ConvNd(2, 3, padding="same", dilation=2)(volume).shape == (2, 2, 5, 6, 7)
    assert nn.ConvNd(2, (2, 3, 4), padding="same")(volume).shape == (2, 2, 5, 6, 7)
    assert nn.ConvNd(2, 2, padding="same", dilation=(1, 3, 5))(volume).shape == (2, 2, 5, 6, 7)


def mistake(message: str, error: type[Exception], function: Callable[[], Any]) -> Any:
    return pytest.param(message, error, function, id=message[:40])


BAD: type[Exception] = dlprim.InvalidArgumentError
MISTAKES = [
    mistake(r"input \[2, 4\] is not \[N, C, \.\.\.\]", BAD, lambda: nn.Conv2d(4, 3)(nn.Input("x", (2, 4)))),
    mistake("Conv2d has no option 'paddin'; did you mean 'padding'", TypeError, lambda: nn.Conv2d(4, 3, paddin=1)),  # type: ignore[call-arg]
    mistake("nn.relu has no option 'slope'; it has x, name", TypeError, lambda: nn.relu(image(), slope=1)),  # type: ignore[call-arg]
    mistake("relux", BAD, lambda: nn.activation(image(), "relux")),
    mistake("does not fit into an image of", BAD, lambda: nn.Conv2d(4, 9)(image())),
    mistake(r"shapes \[2, 3, 8, 8\] and \[2, 3, 7, 7\]", BAD, lambda: image() + image(size=7, name="other")),
    mistake("channels_in says 5", BAD, lambda: nn.Conv2d(4, 3, channels_in=5)(image())),
    mistake("dims", BAD, lambda: nn.reshape(image(), (5, -1))),
    mistake("Linear is called with a ndarray", TypeError, lambda: nn.Linear(3)(np.zeros((2, 2)))),  # type: ignore[arg-type]
    mistake("cannot be combined with a ndarray", TypeError, lambda: np.ones((2, 2)) * nn.Input("x", (2, 2))),
    mistake("cannot be combined with a list", TypeError, lambda: image() + [1]),  # type: ignore[operator]
    mistake("neither true nor false", TypeError, lambda: bool(image())),
    mistake("cannot be iterated", TypeError, lambda: list(image())),
    mistake("has no values", TypeError, lambda: np.asarray(image())),
    mistake("index 5 is none of dimension 1", BAD, lambda: image()[:, 5]),
    mistake("has step 2", BAD, lambda: image()[:, ::2]),
    mistake("range 2:1 of dimension 1", BAD, lambda: image()[:, 2:1]),
    mistake("5 indices are given", BAD, lambda: image()[0, 0, 0, 0, 0]),
    mistake("sizes are at least 1", BAD, lambda: nn.Input("x", (0, 3))),
    mistake("the shape is 5", TypeError, lambda: nn.Input("x", 5)),  # type: ignore[arg-type]
    mistake("holds 2.5; sizes are integers", TypeError, lambda: nn.Input("x", (2.5, 3))),  # type: ignore[arg-type]
    mistake("tensors have no element type", TypeError, lambda: nn.Input("x", (2, 3), "float31")),
    mistake("the name is ''", TypeError, lambda: nn.Input("", (2, 3))),
    mistake("either size or scale_factor", BAD, lambda: nn.Upsample(4, 2.0)),
    mistake('padding="same" keeps the size', BAD, lambda: nn.Conv2d(4, 3, stride=2, padding="same")),
    mistake("give kernel_size as a list", BAD, lambda: nn.ConvNd(4, 2, padding="same")),
    mistake("ConvNd: padding is 'full'", BAD, lambda: nn.ConvNd(4, 3, padding="full")),
    mistake("output has 3 entries", BAD, lambda: nn.AdaptiveAvgPool((1, 2, 3))(image())),
    mistake("padding is 'full'", BAD, lambda: nn.Conv2d(4, 3, padding="full")),
    mistake("starts from h0 and c0", BAD, lambda: nn.LSTM(4)(nn.Input("x", (5, 2, 3)), nn.Input("h", (1, 2, 4)))),
    mistake("makes 2 outputs", BAD, lambda: nn.pointwise("y0 = x0; y1 = x0 + 1", image())),
    mistake("has 2 parameters, params names 1", BAD, lambda: nn.Linear(3, params=["w"])(nn.Input("x", (2, 3)))),
    mistake("takes a list of tensors", TypeError, lambda: nn.concat(image())),  # type: ignore[arg-type]
    mistake("labels have shape", BAD, lambda: nn.softmax_with_loss(nn.Input("x", (2, 3)), nn.Input("l", (3,), int))),
    mistake("is no layer", TypeError, lambda: nn.Sequential([nn.Linear(3), 5])),  # type: ignore[list-item]
    mistake("can only be the first", BAD, lambda: nn.Sequential([nn.Linear(3), image()])),
    mistake("takes a list of layers, not a Linear", TypeError, lambda: nn.Sequential(nn.Linear(3))),  # type: ignore[arg-type]
    mistake("relux", BAD, lambda: nn.Conv2d(4, 3, activation="relux")(image())),
    mistake("precision is 'fp8'", BAD, lambda: nn.Linear(3, precision="fp8")),
    mistake("engine is an int", TypeError, lambda: nn.Linear(3, engine=5)),  # type: ignore[arg-type]
    mistake("stride is {}; numbers", TypeError, lambda: nn.Conv2d(4, 3, stride={})),  # type: ignore[arg-type]
    mistake("alpha is nan; a finite number", BAD, lambda: nn.leaky_relu(image(), float("nan"))),
    mistake("channels_out' must be an integer, not 'a'", BAD, lambda: nn.Conv2d("a", 3)(image())),  # type: ignore[arg-type]
    mistake("size is (1, 2, 3)", BAD, lambda: nn.Upsample((1, 2, 3))),
    mistake("is longer than 512 bytes", BAD, lambda: nn.relu(image(), name="x" * 513)),
    mistake("more than 2^60 elements", BAD, lambda: nn.Input("x", (1 << 40, 1 << 40))),
    mistake("makes an int", TypeError, lambda: nn.Sequential([image(), lambda x: 3])),
]


@pytest.mark.parametrize(("message", "error", "function"), MISTAKES)
def test_mistakes_get_one_sentence_where_they_are_made(
    message: str, error: type[Exception], function: Callable[[], Any]
) -> None:
    with pytest.raises(error) as caught:
        function()
    said = str(caught.value)
    assert message.replace("\\", "") in said
    assert "\n" not in said and not said.endswith(".")


def test_a_name_given_twice_is_told_at_the_layer_that_repeats_it() -> None:
    x = nn.Input("data", (2, 4))
    y = nn.Linear(4, name="fc")(x)
    with pytest.raises(dlprim.InvalidArgumentError, match="the name 'fc' is given twice, to two Linears"):
        nn.Linear(4, name="fc")(y)
    with pytest.raises(dlprim.InvalidArgumentError, match="'data' is given twice, to a Linear and an input"):
        nn.Linear(4, name="data")(x)
    other = nn.Linear(4, name="fc")(x)  # as when a notebook's cell runs again: no mistake until both meet
    with pytest.raises(dlprim.InvalidArgumentError, match="the name 'fc' is given twice"):
        y + other
    with pytest.raises(dlprim.InvalidArgumentError, match="the name 'fc' is given twice"):
        nn.Model(x, [y, other])


def test_tensors_of_two_models_are_told() -> None:
    x, other = nn.Input("data", (2, 4)), nn.Input("other", (2, 4))
    with pytest.raises(dlprim.InvalidArgumentError, match="nn.add reads 'other', which is not among the model's"):
        nn.Model(x, x + other)
    with pytest.raises(dlprim.InvalidArgumentError, match="the name 'data' is given twice, to two inputs"):
        x + nn.Input("data", (2, 4))


def test_a_layer_called_with_another_size_says_what_it_would_share() -> None:
    layer = nn.Linear(3)
    layer(nn.Input("a", (2, 4)))
    with pytest.raises(dlprim.InvalidArgumentError, match=r"float32 \[3, 4\], which this call would share but wants"):
        layer(nn.Input("b", (2, 5)))


def test_a_model_says_what_is_wrong_with_its_inputs_and_outputs() -> None:
    x = nn.Input("data", (2, 4))
    y = nn.relu(x)
    with pytest.raises(dlprim.InvalidArgumentError, match="at least one output"):
        nn.Model(x, [])
    with pytest.raises(
        dlprim.InvalidArgumentError, match="made by a layer; the inputs of a model are made by nn.Input"
    ):
        nn.Model(y, nn.relu(y))
    with pytest.raises(TypeError, match="a model's outputs hold an int"):
        nn.Model(x, [3])  # type: ignore[list-item]
    with pytest.raises(dlprim.InvalidArgumentError, match="is called 'a' already"):
        nn.Model(x, {"a": y, "b": y})
    with pytest.raises(dlprim.InvalidArgumentError, match="to an input and an output"):
        nn.Model(x, {"data": y})


def test_symbols_show_what_they_are() -> None:
    x = nn.Input("data", (2, 4))
    y = nn.Linear(3)(x)
    assert repr(x) == "<Symbol data: float32 (2, 4)>"
    assert repr(y) == "<Symbol linear: float32 (2, 3)>"
    nn.Model(x, y)
    assert (repr(y), y.name) == ("<Symbol linear_1: float32 (2, 3)>", "linear_1")
    assert repr(nn.Linear(3, name="fc")) == "<Linear 'fc': InnerProduct with outputs=3>"


def test_linear_and_last_elements_follow_every_size(host: dlprim.Context) -> None:
    x = nn.Input("data", (2, 3, 4))
    y = nn.Linear(5)(x)
    net = nn.Model(x, {"y": y, "last": y[:, -1], "wide": nn.unsqueeze(y, 2)}).build(host, mode="inference")
    net.initialize()
    weight, bias = (net.param(name).numpy() for name in net.param_names)
    for shape in ((2, 3, 4), (3, 7, 4), (1, 1, 4)):
        net.reshape({"data": shape})
        values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        found = net(values)
        expected = values @ weight.T + bias
        np.testing.assert_allclose(found["y"], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found["last"], expected[:, -1], rtol=1e-5, atol=1e-6)
        assert found["wide"].shape == (*shape[:2], 1, 5)


def made(layer: nn.Layer, x: nn.Symbol) -> dict[str, Any]:
    layer(x)  # type: ignore[operator]
    return dict(layer.options)


def test_layers_take_pytorchs_order_of_arguments() -> None:
    pixels, rows = image(3), nn.Input("rows", (2, 4))
    assert made(nn.Conv2d(3, 16, 3), pixels) == made(nn.Conv2d(16, 3, channels_in=3), pixels)
    assert made(nn.Conv2d(3, 16, kernel_size=3), pixels) == made(nn.Conv2d(16, 3, channels_in=3), pixels)
    assert made(nn.Conv2d(3, 6, 3, 2, 1, 1, 3, False), pixels) == made(
        nn.Conv2d(6, 3, stride=2, padding=1, groups=3, bias=False, channels_in=3), pixels
    )
    assert made(nn.ConvTranspose2d(3, 8, 4, 2, 1, 1), pixels) == made(
        nn.ConvTranspose2d(8, 4, stride=2, padding=1, output_padding=1, channels_in=3), pixels
    )
    assert made(nn.Linear(4, 3), rows) == made(nn.Linear(3, features_in=4), rows)
    assert made(nn.Linear(4, 3, False), rows) == made(nn.Linear(3, features_in=4, bias=False), rows)
    assert made(nn.MaxPool2d(2, 2, 1), pixels) == made(nn.MaxPool2d(2, stride=2, padding=1), pixels)
    assert made(nn.BatchNorm(3, 1e-3), pixels) == made(nn.BatchNorm(features=3, eps=1e-3), pixels)
    assert made(nn.GroupNorm(1, 3), pixels) == made(nn.GroupNorm(1, num_channels=3), pixels)
    words = nn.Input("words", (2, 7, 4))
    assert made(nn.LSTM(4, 5, 2, True, True), words) == made(nn.LSTM(5, num_layers=2, batch_first=True), words)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: nn.Conv2d(4, 16, 3)(image(3)), "channels"),
        (lambda: nn.Linear(5, 3)(nn.Input("x", (2, 4))), "4 features, option inputs says 5"),
        (lambda: nn.LSTM(5, 3)(nn.Input("x", (7, 2, 4))), "4 features, input_size says 5"),
    ],
)
def test_sizes_in_pytorchs_order_are_checked(make: Callable[[], object], says: str) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match=says):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: nn.Conv2d(16, 3, out_channels=3), "Conv2d has no option 'out_channels'; did you mean 'channels_out'"),
        (lambda: nn.Conv2d(16, 3, dilate=3), "did you mean 'dilation'"),
        (lambda: nn.Linear(out_features=3), "did you mean 'features'"),
        (lambda: nn.Linear(3, use_bias=False), "did you mean 'bias'"),
        (lambda: nn.Linear(1, 2, True, 4), "4 arguments were given"),
        (lambda: nn.Linear(4, 3, features=3), "features is given twice"),
    ],
)
def test_arguments_by_other_names_are_offered_ours(make: Callable[[], object], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make()


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("Dense", "Linear"),
        ("MaxPooling2D", "MaxPool2d"),
        ("AveragePooling2D", "AvgPool2d"),
        ("BatchNorm2d", "BatchNorm"),
        ("Conv1d", "ConvNd"),
        ("CrossEntropyLoss", "SoftmaxWithLoss"),
        ("MSELoss", "mse_loss"),
        ("Lineer", "Linear"),
    ],
)
def test_layers_by_other_names_are_offered_ours(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=f"dlprim.nn has no '{name}'; did you mean '{ours}'"):
        getattr(nn, name)


def test_indices_of_an_embedding_are_integers(host: dlprim.Context) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match="called with float32; indices are integers"):
        nn.Embedding(5, 3)(nn.Input("words", (2, 4)))
    net = {
        "inputs": [{"name": "words", "shape": [2, 4]}],
        "outputs": ["rows"],
        "operators": [{"name": "rows", "type": "Embedding", "inputs": ["words"], "outputs": ["rows"],
                       "options": {"num_embeddings": 5, "embedding_dim": 3}}],
    }  # fmt: skip
    assert any("reads indices from 'words', which is float" in note for note in dlprim.Net(host, net).notes())
