# SPDX-License-Identifier: MIT
"""Layers of which Dynamo or the device makes several operators, by torch.compile beside eager calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Every test compiles anew, and counts its own fallbacks."""
    torch.compiler.reset()
    torch.ocl.reset_fallbacks()
    yield
    torch.compiler.reset()


def assert_same(model: Callable[..., Any], taken: list[torch.Tensor], *arguments: torch.Tensor) -> None:
    """Compiled in one graph without fallback, it gives the results and gradients of eager calls, step by step."""
    compiled = torch.compile(model, backend="dlprim", fullgraph=True)
    found = []
    for call in (compiled, model):
        torch.ocl.manual_seed(3)
        for _ in range(2):
            y = call(*arguments)
            y = y if isinstance(y, tuple) else (y,)
            seeds = [torch.sin(3 * part.detach()) for part in y]
            made = torch.autograd.grad(y, taken, seeds)
        found.append([*(part.detach() for part in y), *made])
    for made, wanted in zip(*found, strict=True):
        torch.testing.assert_close(made.cpu(), wanted.cpu(), rtol=1e-5, atol=1e-5 * float(wanted.abs().max()) + 1e-7)
    assert torch.ocl.fallbacks() == {}


RECURRENT: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(5, 7, num_layers=2, batch_first=True),
    "lstm both ways": lambda: nn.LSTM(5, 7, bidirectional=True, bias=False),
    "lstm with dropout": lambda: nn.LSTM(5, 7, num_layers=2, dropout=0.3),
    "lstm with projections": lambda: nn.LSTM(5, 7, proj_size=3),
    "gru": lambda: nn.GRU(5, 7, num_layers=2, bidirectional=True),
    "rnn": lambda: nn.RNN(5, 7, nonlinearity="relu"),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent(name: str) -> None:
    """Recurrent modules, which Dynamo traces where it may."""
    module = RECURRENT[name]().ocl()
    x = torch.randn(4, 3, 5).ocl().requires_grad_()

    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, state = module(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)

    with torch._dynamo.config.patch(allow_rnn=True):
        assert_same(model, [x, *module.parameters()], x)


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(cell: Any) -> None:
    """One step of a recurrent layer."""
    module = cell(5, 7).ocl()
    x = torch.randn(3, 5).ocl().requires_grad_()
    state = torch.randn(3, 7).ocl().requires_grad_()
    if cell is nn.LSTMCell:
        assert_same(lambda x, h: module(x, (h, h * 2)), [x, state, *module.parameters()], x, state)
    else:
        assert_same(module, [x, state, *module.parameters()], x, state)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bag(mode: str, padding: int | None) -> None:
    """Bags of rows, one of them empty."""
    module = nn.EmbeddingBag(10, 4, mode=mode, padding_idx=padding).ocl()
    indices, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]).ocl(), torch.tensor([0, 4, 4, 6]).ocl()
    assert_same(module, [module.weight], indices, offsets)


def test_embedding_bag_with_factors() -> None:
    """Each row with a factor of its own, which has a gradient, too."""
    module = nn.EmbeddingBag(10, 4, mode="sum").ocl()
    indices = torch.randint(10, (3, 5)).ocl()
    factors = torch.randn(3, 5).ocl().requires_grad_()
    assert_same(lambda x, f: module(x, per_sample_weights=f), [module.weight, factors], indices, factors)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradient_of_mask(dropout: float) -> None:
    """A mask of floats, such as a bias by position, is trained with the rest."""
    q, k, v = (torch.randn(2, 4, 6, 8).ocl().requires_grad_() for _ in range(3))
    bias = torch.randn(4, 6, 6).ocl().requires_grad_()

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, bias * 2, dropout)

    assert_same(model, [q, k, v, bias], q, k, v, bias)


def test_weight_norm() -> None:
    """Weights as direction and length."""
    module = torch.nn.utils.parametrizations.weight_norm(nn.Linear(5, 7)).ocl()
    x = torch.randn(3, 5).ocl().requires_grad_()
    assert_same(module, [x, *module.parameters()], x)
