# SPDX-License-Identifier: MIT
"""Modules that move between devices."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn


class Tied(nn.Module):
    """A table of words that is also the last layer's weight, as language models have it."""

    def __init__(self) -> None:
        """Makes the layers and ties them."""
        super().__init__()
        self.words = nn.Embedding(7, 5)
        self.norm = nn.BatchNorm1d(5)
        self.last = nn.Linear(5, 7, bias=False)
        self.last.weight = self.words.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.last(self.norm(self.words(x)))  # type: ignore[no-any-return]


def test_shared_weights_stay_shared() -> None:
    """Also their gradient is one, and they are one again on the CPU."""
    x = torch.tensor([0, 3, 6, 3])
    expected = Tied()
    model = copy.deepcopy(expected).to("ocl")
    assert model.last.weight is model.words.weight and len(list(model.parameters())) == 3
    expected(x).square().sum().backward()
    model(x.ocl()).square().sum().backward()
    # The batch norm of four rows magnifies rounding: a GPU was at 2.5e-6.
    torch.testing.assert_close(model.words.weight.grad.cpu(), expected.words.weight.grad, rtol=1e-5, atol=1e-5)  # type: ignore[union-attr]
    model = model.cpu()
    assert model.last.weight is model.words.weight
    assert model.words.weight.grad.device.type == "cpu"  # type: ignore[union-attr]
    torch.testing.assert_close(model.words.weight, expected.words.weight)


def test_parameters_stay_objects() -> None:
    """An optimizer that was made before the module moved still has its parameters."""
    model = nn.Linear(3, 2)
    before = list(model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to("ocl")
    assert all(a is b for a, b in zip(model.parameters(), before, strict=True))
    model(torch.ones(1, 3, device="ocl")).sum().backward()
    weight = model.weight.detach().cpu()
    optimizer.step()
    torch.testing.assert_close(model.weight.detach().cpu(), weight - 1)


def test_data_is_replaced() -> None:
    """By the data attribute, which keeps what autograd knows of the tensor."""
    x = torch.ones(3, requires_grad=True)
    x.data = torch.zeros(3, device="ocl")
    assert x.device.type == "ocl" and x.requires_grad
    (x + 1).sum().backward()
    assert x.grad is not None and x.grad.device.type == "ocl"
    with pytest.raises(RuntimeError):
        x.data = torch.zeros(3).to_sparse()
