# SPDX-License-Identifier: MIT
"""describe(): operators with shapes and parameters, without a device."""

from __future__ import annotations

import pathlib

import dlprim
import pytest
from small_networks import classifier, convolutions

NETS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "nets"


def test_operators_have_shapes_makers_and_parameters() -> None:
    network = dlprim.describe(convolutions())
    assert isinstance(network, dlprim.NetworkDescription)
    assert all(isinstance(op, dlprim.OperatorDescription) for op in network.operators)
    assert [op.name for op in network.operators] == ["conv", "bn", "relu", "out"]
    conv, _, relu, out = network.operators
    assert conv.type == "Convolution2D"
    assert conv.inputs[0].name == "data" and conv.inputs[0].producer == -1
    assert conv.inputs[0].shape == (2, 3, 8, 8) and conv.inputs[0].dtype == "float32"
    assert conv.outputs[0].shape == (2, 4, 8, 8)
    assert conv.options["channels_out"] == 4 and conv.options["bias"] is True
    assert conv.gflop == pytest.approx(2 * 2 * 4 * 64 * 27e-9)
    assert (conv.precision, conv.frozen) == ("fp32", False)
    weight, bias = conv.params
    assert isinstance(weight, dlprim.ParamDescription)
    assert isinstance(conv.inputs[0], dlprim.TensorDescription)
    assert (weight.name, weight.shape, weight.dtype, weight.count) == ("conv.0", (4, 3, 3, 3), "float32", 108)
    assert weight.trainable and not weight.shared and bias.shape == (4,)
    # relu works in place: both tensors are called bn.
    assert relu.inputs[0].name == relu.outputs[0].name == "bn"
    assert (relu.inputs[0].producer, out.inputs[0].producer) == (1, 2)


def test_a_network_has_inputs_outputs_losses_and_counts() -> None:
    network = dlprim.describe(classifier(), batch=9)
    assert [(t.name, t.shape, t.dtype) for t in network.inputs] == [
        ("data", (9, 8), "float32"),
        ("label", (9,), "int32"),
    ]
    assert [t.name for t in network.outputs] == ["prob", "loss"]
    assert network.losses == {"loss": 1.0}
    assert network.params == network.trainable_params == 8 * 16 + 16 + 16 * 3 + 3
    assert "4 operators" in repr(network)
    assert "fc1" in repr(network.operators[0])


def test_a_net_describes_itself(host: dlprim.Context) -> None:
    net = dlprim.Net.from_json(host, classifier())
    net.reshape(5)
    assert net.describe().operators[0].outputs[0].shape == (5, 16)


def test_files_are_described_and_mistakes_named() -> None:
    assert dlprim.describe(NETS / "resnet18.json", "inference").params == 11699112
    with pytest.raises(dlprim.FormatError, match="network:1"):
        dlprim.describe("[")
    with pytest.raises(TypeError, match="no option 'bath'"):
        dlprim.describe(classifier(), bath=3)
    with pytest.raises(FileNotFoundError):
        dlprim.describe(NETS / "gone.json")
