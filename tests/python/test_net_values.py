# SPDX-License-Identifier: MIT
"""Net: inputs from numpy, outputs and gradients against numpy, and inputs that do not fit."""

from __future__ import annotations

import dlprim
import numpy as np
import pytest
from small_networks import classifier, convolutions, initialized, probabilities, samples


def test_outputs_are_what_numpy_computes(net: dlprim.Net) -> None:
    data, labels = samples()
    expected = probabilities(net.weights(), data)
    live = net.forward(data, label=labels)
    np.testing.assert_allclose(live["prob"].numpy(), expected, rtol=1e-5)
    for outputs in (net(data, labels), net(data=data, label=labels), net.run({"data": data}, label=labels)):
        np.testing.assert_allclose(outputs["prob"], expected, rtol=1e-5)
        picked = -np.log(expected[np.arange(4), labels])
        np.testing.assert_allclose(outputs["loss"], [picked.mean()], rtol=1e-5)
    before = net(data, labels)["prob"]
    net(-data, labels)
    np.testing.assert_allclose(before, expected, rtol=1e-5)  # run() returns copies
    np.testing.assert_allclose(net.output("prob").numpy(), net.forward()["prob"].numpy())
    with pytest.raises(TypeError, match="2 inputs, data, label; 3 were given"):
        net(data, labels, data)


def test_gradients_are_what_numpy_computes(context: dlprim.Context) -> None:
    net = initialized(context, input_gradients=True)
    data, labels = samples()
    probability = net(data, labels)["prob"]
    net.backward()
    net.context.finish()
    one_hot = np.eye(3)[labels]
    np.testing.assert_allclose(net.gradient("fc2.1").numpy(), (probability - one_hot).mean(axis=0), atol=1e-6)
    assert net.gradient_names() == ["data", "fc1.0", "fc1.1", "fc2.0", "fc2.1"]
    assert net.gradient("data").shape == (4, 8)
    assert net.changed_by_forward() == []


def test_backward_starts_from_gradients_that_are_given(context: dlprim.Context) -> None:
    net = dlprim.Net.from_json(context, convolutions(), "evaluation", input_gradients=True, output_gradients=True)
    net.initialize()
    net.output_gradient("out").fill(0)
    net(np.ones((2, 3, 8, 8), np.float32))
    net.backward()
    assert not net.gradient("data").numpy().any()
    with pytest.raises(dlprim.InvalidArgumentError, match="backward"):
        net.reshape(1)
        net.backward()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(32, dtype=np.float64).reshape(4, 8),
        np.arange(32, dtype=np.uint8).reshape(4, 8),
        np.arange(32, dtype=">f4").reshape(4, 8),
        np.arange(32, dtype=np.float32).reshape(8, 4).T.copy().T.reshape(8, 4).reshape(4, 8),
        np.asfortranarray(np.arange(32, dtype=np.float32).reshape(4, 8)),
        np.arange(31, -1, -1, dtype=np.float32)[::-1].reshape(4, 8),
        np.repeat(np.arange(32, dtype=np.float32), 2)[::2].reshape(4, 8),
        [[float(8 * i + j) for j in range(8)] for i in range(4)],
        np.arange(32, dtype=np.float16).reshape(4, 8),
    ],
    ids=["float64", "uint8", "big_endian", "copies", "fortran", "negative_stride", "strided", "list", "float16"],
)
def test_inputs_of_any_layout_hold_the_same_numbers(net: dlprim.Net, array: object) -> None:
    net.set_input("data", array)
    np.testing.assert_array_equal(net.input("data").numpy(), np.arange(32, dtype=np.float32).reshape(4, 8))


def test_an_array_may_change_once_it_was_set(net: dlprim.Net) -> None:
    data, labels = samples()
    expected = net(data, labels)["prob"]
    for _ in range(4):
        given = data.copy()
        net.set_input("data", given)
        given[:] = np.nan
        np.testing.assert_array_equal(net.run()["prob"], expected)
    read_only = data.copy()
    read_only.flags.writeable = False
    net.set_input("data", read_only)


@pytest.mark.parametrize(
    ("name", "array", "error", "says"),
    [
        ("data", np.zeros((4, 9)), ValueError, r"shape \[4, 8\], got \[4, 9\]"),
        ("data", np.zeros(32), ValueError, r"shape \[4, 8\], got \[32\]"),
        ("data", np.array([[object()] * 8] * 4), TypeError, "object"),
        ("data", np.zeros((4, 8), complex), TypeError, "complex128"),
        ("data", np.full((4, 8), "a"), TypeError, "no element type"),
        ("data", np.zeros((4, 8), "M8[s]"), TypeError, "datetime64"),
        ("label", np.array([0, 1, np.nan, 2]), ValueError, "nan at position 2, which int32 cannot hold"),
        ("label", np.array([0, 1, 0.5, 2]), ValueError, "0.5.* at position 2"),
        ("label", np.array([0, 1, 2**40, 2]), ValueError, "position 2, which int32 cannot hold"),
        ("label", np.array([0, 1, 3, 2]), ValueError, "label 3 at position 2"),
        ("label", np.array([0, -1, 2, 2]), ValueError, "label -1 at position 1"),
        ("lable", np.zeros(4), KeyError, "did you mean 'label'"),
    ],
)  # fmt: skip
def test_an_input_that_does_not_fit_is_refused(
    net: dlprim.Net, name: str, array: np.ndarray, error: type[Exception], says: str
) -> None:
    data, labels = samples()
    expected = net(data, labels)
    with pytest.raises(error, match=says):
        net.set_input(name, array)
    np.testing.assert_array_equal(net.run()["prob"], expected["prob"])


def test_labels_that_are_floats_are_checked_too(context: dlprim.Context) -> None:
    network = classifier()
    network["inputs"][1]["dtype"] = "float"
    net = dlprim.Net.from_json(context, network)
    net.set_input("label", np.array([0.0, 1.0, 2.0, 0.0]))
    with pytest.raises(ValueError, match="(?i)nan at position 1"):
        net.set_input("label", np.array([0, np.nan, 1, 1]))


def test_reshape_takes_a_batch_or_shapes(net: dlprim.Net) -> None:
    data, labels = samples(7)
    net.reshape(7)
    assert net(data, labels)["prob"].shape == (7, 3)
    net.reshape({"data": (2, 8), "label": (2,)})
    np.testing.assert_allclose(net(data[:2], labels[:2])["prob"], probabilities(net.weights(), data[:2]), rtol=1e-5)
    with pytest.raises(dlprim.InvalidArgumentError, match="batch of 0"):
        net.reshape(0)
    with pytest.raises(dlprim.DlprimError):
        net.reshape({"data": (2, 9)})
    assert net.input_shape("data") == (2, 8)
    with pytest.raises(TypeError):
        net.reshape("2")
