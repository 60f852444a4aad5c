# SPDX-License-Identifier: MIT
"""Draws of gamma, Dirichlet, Poisson and binomial distributions, beside draws of the CPU, and their gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

COUNT = 100_000
Draw = Callable[[torch.Tensor], torch.Tensor]


def distance(one: torch.Tensor, two: torch.Tensor) -> float:
    """Kolmogorov and Smirnov's statistic of two samples: 2.2 is passed by chance once in 10^4 times."""
    both = torch.cat([one, two]).unique()
    parts = [torch.searchsorted(sample.sort().values, both, right=True) / len(sample) for sample in (one, two)]
    return float((parts[0] - parts[1]).abs().max() * (len(one) / 2) ** 0.5)


def check(draw: Draw, values: list[float], dtype: torch.dtype = torch.float32) -> None:
    """Compares samples of each parameter with the CPU's."""
    for value in values:
        own = draw(torch.full((COUNT,), value, dtype=dtype, device="ocl"))
        assert own.dtype == dtype
        other = draw(torch.full((COUNT,), value, dtype=torch.float64))
        assert distance(own.cpu().double(), other) < 2.2, value


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gamma(dtype: torch.dtype) -> None:
    """Shapes below and above 1."""
    check(torch._standard_gamma, [0.1, 0.5, 1, 2.5, 10, 1000], dtype)


def test_poisson() -> None:
    """Both methods, and where one ends and the other begins."""
    check(torch.poisson, [0, 0.1, 1, 5, 9.9, 10, 11, 30, 1000])
    assert torch.poisson(torch.tensor([float("nan")], device="ocl")).isnan().all()
    many = torch.poisson(torch.full((COUNT,), 1e5, device="ocl"))
    assert abs(many.mean().item() / 1e5 - 1) < 1e-4 and abs(many.var().item() / 1e5 - 1) < 0.03


@pytest.mark.parametrize("chance", [0, 0.01, 0.3, 0.5, 0.9, 1])
def test_binomial(chance: float) -> None:
    """Both methods, and the rarer of the two outcomes."""
    check(lambda count: torch.binomial(count, torch.full_like(count, chance)), [0, 1, 10, 30, 100, 1000])


def test_binomial_broadcast() -> None:
    """Counts and chances are broadcast, and a count of impossible outcomes is 0."""
    counts = torch.tensor([[4.0], [400.0]], device="ocl")
    drawn = torch.binomial(counts, torch.tensor([0.0, 0.5, 1.0], device="ocl"))
    assert drawn[:, [0, 2]].tolist() == [[0, 4], [0, 400]] and 150 < drawn[1, 1].item() < 250


def test_dirichlet() -> None:
    """Parts of 1, with the distribution's means and variances."""
    distribution = torch.distributions.Dirichlet(torch.tensor([0.5, 1.0, 3.0], device="ocl"))
    drawn = distribution.sample((COUNT,))
    assert torch.allclose(drawn.sum(-1).cpu(), torch.ones(COUNT))
    assert torch.allclose(drawn.mean(0), distribution.mean, atol=3e-3)
    assert torch.allclose(drawn.var(0), distribution.variance, atol=1e-3)


def test_seed() -> None:
    """One seed gives one sequence, whose draws differ."""
    shapes = torch.rand(1000, device="ocl") * 20
    draws: list[Draw] = [torch._standard_gamma, torch.poisson, lambda x: torch.binomial(x.floor(), x / 20)]
    for draw in draws:
        torch.manual_seed(3)
        first, second = draw(shapes), draw(shapes)
        torch.manual_seed(3)
        assert torch.equal(first, draw(shapes)) and not torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gamma_gradient(dtype: torch.dtype) -> None:
    """The gradient with respect to the shape, in each of its regions."""
    shapes = torch.logspace(-2, 3, 40, dtype=dtype)[:, None]
    drawn = shapes * torch.linspace(0.02, 3, 50, dtype=dtype)
    expected = torch._standard_gamma_grad(shapes.expand_as(drawn).contiguous(), drawn)
    own = torch._standard_gamma_grad(shapes.expand_as(drawn).ocl(), drawn.ocl())
    torch.testing.assert_close(own.cpu(), expected, rtol=1e-4, atol=1e-6)


def test_dirichlet_gradient() -> None:
    """The gradient with respect to the concentration, in each of its regions."""
    x = torch.linspace(0.005, 0.995, 67)[:, None, None]
    alpha = torch.logspace(-1, 2, 12)[:, None]
    total = alpha + torch.logspace(-1, 2, 12)
    operands = [each.expand(67, 12, 12).contiguous() for each in (x, alpha, total)]
    # In double, since the series of the CPU's float are off by more.
    expected = torch._dirichlet_grad(*(each.double() for each in operands)).float()
    own = torch._dirichlet_grad(*(each.ocl() for each in operands)).cpu()
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-6)


def test_gradients_of_distributions() -> None:
    """Samples of torch.distributions carry gradients."""
    shape = torch.tensor([0.5, 2.0, 9.0], device="ocl", requires_grad=True)
    torch.distributions.Gamma(shape, torch.ones_like(shape)).rsample().sum().backward()
    torch.distributions.Dirichlet(shape).rsample()[0].backward()
    assert shape.grad is not None and shape.grad.isfinite().all()
