# SPDX-License-Identifier: MIT
"""Weights as direction and length, beside the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.parametrizations import weight_norm


def run(device: str, dim: int | None, dtype: torch.dtype, shape: tuple[int, ...]) -> list[torch.Tensor]:
    """The weight, and gradients of direction and length."""
    torch.manual_seed(1)
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(torch.randn(shape, dtype=dtype))
    layer = weight_norm(layer, dim=dim).to(device)
    factor = torch.randn(shape).to(device, dtype)
    (layer.weight * factor).sum().backward()
    gradients = [parameter.grad for parameter in layer.parameters()]
    return [layer.weight.detach().cpu(), *(each.cpu() for each in gradients if each is not None)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim: int | None, dtype: torch.dtype) -> None:
    """Lengths along each dimension, and one length in all."""
    expected = run("cpu", dim, dtype, (4, 3, 5))
    found = run("ocl", dim, dtype, (4, 3, 5))
    assert len(found) == len(expected) == 3
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, **tolerance)


def test_vector() -> None:
    """Without other dimensions each element has a length of its own."""
    for own, other in zip(run("ocl", 0, torch.float32, (5,)), run("cpu", 0, torch.float32, (5,)), strict=True):
        torch.testing.assert_close(own, other)


def test_layer() -> None:
    """A convolution with a normalised weight learns as on the CPU."""
    x = torch.randn(1, 4, 9)
    layers = {}
    for device in ("cpu", "ocl"):
        torch.manual_seed(0)
        layers[device] = weight_norm(torch.nn.Conv1d(4, 4, 3)).to(device)
        layers[device](x.to(device)).square().sum().backward()
    for own, other in zip(layers["ocl"].parameters(), layers["cpu"].parameters(), strict=True):
        assert own.grad is not None
        torch.testing.assert_close(own.grad.cpu(), other.grad, rtol=1e-4, atol=1e-5)
