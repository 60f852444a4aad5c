# SPDX-License-Identifier: MIT
"""dlprim.Function beside the same operators called one by one."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import ops

NETWORK: dict[str, Any] = {
    "inputs": [{"name": "x", "shape": [2, 3]}],
    "operators": [
        {"name": "product", "type": "InnerProduct", "inputs": ["x"], "outputs": ["p"], "options": {"outputs": 4}},
        {"name": "relu", "type": "Activation", "inputs": ["p"], "outputs": ["y"], "options": {"activation": "relu"}},
    ],
    "outputs": ["p", "y"],
}


def tensor(context: dlprim.Context, *shape: int) -> dlprim.Tensor:
    return dlprim.Tensor(context, np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("given", ["dict", "text", "path"])
def test_calls(context: dlprim.Context, given: str, tmp_path: pathlib.Path) -> None:
    network: Any = {"dict": NETWORK, "text": json.dumps(NETWORK), "path": tmp_path / "net.json"}[given]
    (tmp_path / "net.json").write_text(json.dumps(NETWORK))
    function = dlprim.Function(context, network)
    assert function.input_names == ["x", "product.0", "product.1"]
    assert function.output_names == ["p", "y"]
    assert function.context == context
    weight, bias = tensor(context, 4, 3), tensor(context, 4)
    for batch in (2, 5):
        x = tensor(context, batch, 3)
        p, y = function(x, weight, bias)
        expected = ops.inner_product(x, weight, bias)
        np.testing.assert_allclose(p.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(y.numpy(), np.maximum(p.numpy(), 0))


def test_errors(context: dlprim.Context) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match="function has no input 'z', which is to be constant"):
        dlprim.Function(context, NETWORK, constants=["z"])
    function = dlprim.Function(context, NETWORK)
    with pytest.raises(dlprim.InvalidArgumentError, match="function takes 3 tensors, got 1"):
        function(tensor(context, 2, 3))
    with pytest.raises(TypeError, match="input 0 is a dlprim.Tensor, not a list"):
        function([1.0])  # type: ignore[arg-type]
