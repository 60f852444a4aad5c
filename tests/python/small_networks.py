# SPDX-License-Identifier: MIT
"""Networks that the tests of Net, Solver and train() share."""

from __future__ import annotations

from typing import Any

import dlprim
import numpy as np

CLASSES = 3


def classifier(batch: int = 4, features: int = 8) -> dict[str, Any]:
    """Two inner products with a loss: inputs data (batch, features) and label (batch)."""
    return {
        "inputs": [{"name": "data", "shape": [batch, features]}, {"name": "label", "shape": [batch], "dtype": "int"}],
        "outputs": ["prob", "loss"],
        "operators": [
            {"name": "fc1", "type": "InnerProduct", "inputs": ["data"], "outputs": ["h"],
             "options": {"outputs": 16, "activation": "relu"}},
            {"name": "fc2", "type": "InnerProduct", "inputs": ["h"], "outputs": ["scores"],
             "options": {"outputs": CLASSES}},
            {"name": "prob", "type": "Softmax", "inputs": ["scores"], "outputs": ["prob"]},
            {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]},
        ],
    }  # fmt: skip


def convolutions(batch: int = 2) -> dict[str, Any]:
    """A convolution, a batch norm and a pooling over pictures (batch, 3, 8, 8), without a loss."""
    return {
        "inputs": [{"name": "data", "shape": [batch, 3, 8, 8]}],
        "outputs": ["out"],
        "operators": [
            {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv"],
             "options": {"channels_out": 4, "kernel": 3, "pad": 1}},
            {"name": "bn", "type": "BatchNorm", "inputs": ["conv"], "outputs": ["bn"]},
            {"name": "relu", "type": "Activation", "inputs": ["bn"], "outputs": ["bn"],
             "options": {"activation": "relu"}},
            {"name": "out", "type": "GlobalPooling", "inputs": ["bn"], "outputs": ["out"]},
        ],
    }  # fmt: skip


def samples(count: int = 4, features: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Data of `count` samples and labels that depend on them."""
    data = np.random.default_rng(seed).standard_normal((count, features), dtype=np.float32)
    return data, data[:, :CLASSES].argmax(axis=1)


def probabilities(weights: dict[str, np.ndarray], data: np.ndarray) -> np.ndarray:
    """What the classifier computes, by numpy."""
    hidden = np.maximum(data @ weights["fc1.0"].T + weights["fc1.1"], 0)
    scores = hidden @ weights["fc2.0"].T + weights["fc2.1"]
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def initialized(context: dlprim.Context, *mode: str, **options: Any) -> dlprim.Net:
    """The classifier with first values."""
    net = dlprim.Net.from_json(context, classifier(), *mode, **options)
    net.initialize()
    return net


def set_batch(net: Any, data: Any, label: Any) -> None:
    """The inputs of the classifier; `net` may be one of several devices."""
    net.set_input("data", data)
    net.set_input("label", label)


def assert_same_weights(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Bit by bit."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
