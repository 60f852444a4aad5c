# SPDX-License-Identifier: MIT
"""Networks that scripts/torchvision_net.py exports take torchvision's weights by order and shape."""

from __future__ import annotations

import sys
from typing import Any

import dlprim
import numpy as np
import pytest


def random_weights(torch: Any, model: Any) -> None:
    """Statistics and scales that differ from each other, as those of a trained network do."""
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2)
            elif name.endswith("running_mean"):
                tensor.normal_(0, 0.2)
            elif tensor.dim() == 1 and tensor.is_floating_point():
                tensor.add_(torch.randn_like(tensor) * 0.2)


@pytest.mark.parametrize("name", ["densenet121", "inception_v3", "vit_b_16", "swin_t"])
def test_shapes_find_their_tensors(torchvision: Any, name: str) -> None:
    torchvision_net = sys.modules["torchvision_net"]
    model = torchvision_net.make_model(name, device="meta")  # shapes alone
    description, exporter = torchvision_net.export(name, 1, loss=False, keep_dropout=False, model=model)
    operators = dlprim.describe(description, "inference").operators
    shapes = {param.name: param.shape for op in operators for param in op.params}
    matches = dlprim.weights.match(shapes, model.state_dict())
    assert {m.param: m.source for m in matches} == exporter.weights
    assert matches.problems == []


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_network_takes_the_state_dict(context: dlprim.Context, torch: Any, torchvision: Any, name: str) -> None:
    torchvision_net = sys.modules["torchvision_net"]
    torch.manual_seed(1)
    model = torchvision.models.get_model(name, weights=None).eval()
    random_weights(torch, model)
    description, exporter = torchvision_net.export(name, 2, loss=False, keep_dropout=False, model=model, size=96)
    net = dlprim.Net.from_json(context, description, mode="inference")
    matches = dlprim.weights.load(net, model.state_dict())
    assert {m.param: m.source for m in matches} == exporter.weights
    assert len(matches) + len(matches.ignored) == len(model.state_dict())

    images = torch.randn(2, 3, 96, 96)
    net.set_input("data", images.numpy())
    net.forward()
    with torch.no_grad():
        expected = model(images).numpy()
    (output,) = net.output_names
    made = net.output(output).numpy()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(made / scale, expected / scale, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(made.argmax(1), expected.argmax(1))

    back = dlprim.weights.to_state_dict(net, like=model)
    for key, value in model.state_dict().items():
        assert torch.equal(back[key], value), key
