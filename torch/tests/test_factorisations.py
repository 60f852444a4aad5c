# SPDX-License-Identifier: MIT
"""Cholesky's factorisation, triangular systems and QR, with gradients, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

Function = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
SHAPES = [(1, 1), (2, 5, 5), (2, 0, 3, 3), (2, 0, 0), (2, 1, 17, 17)]


def compare(function: Function, *operands: torch.Tensor, gradients: bool = True) -> None:
    """Results, and gradients of their weighted sum."""
    results, slopes = [], []
    for device in ("cpu", "ocl"):
        own = [each.to(device).detach().requires_grad_(gradients) for each in operands]
        made = function(*own)
        made = [made] if isinstance(made, torch.Tensor) else list(made)
        results.append([each.detach().cpu() for each in made])
        if gradients:
            generator = torch.Generator().manual_seed(5)
            weights = [torch.randn(each.shape, generator=generator, dtype=each.dtype).to(device) for each in made]
            sum((each * weight).sum() for each, weight in zip(made, weights, strict=True)).backward()
            slopes.append([each.grad.cpu() for each in own])
    exact = operands[0].dtype == torch.float64
    tolerance = {"rtol": 1e-9, "atol": 1e-10} if exact else {"rtol": 2e-3, "atol": 2e-4}
    torch.testing.assert_close(results[1], results[0], **tolerance)
    if gradients:
        torch.testing.assert_close(slopes[1], slopes[0], **tolerance)


def positive(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Matrices that Cholesky's factorisation takes."""
    x = torch.randn(shape, dtype=dtype)
    return x @ x.mT + shape[-1] * torch.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_cholesky(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Both triangles; what is solved and inverted by them."""
    matrices = positive(shape, dtype)
    compare(torch.linalg.cholesky, matrices)
    compare(lambda a: torch.linalg.cholesky(a, upper=True), matrices)
    compare(torch.cholesky, matrices)
    factor = torch.linalg.cholesky(matrices)
    right = torch.randn((*shape[:-1], 2), dtype=dtype)
    compare(torch.cholesky_solve, right, factor)
    compare(lambda b, u: torch.cholesky_solve(b, u, upper=True), right, factor.mT)
    compare(torch.cholesky_inverse, factor)


def test_cholesky_of_what_is_not_positive() -> None:
    """The first minor that is not positive is named, of each matrix of a batch."""
    good, bad, zero = torch.eye(3), torch.diag(torch.tensor([1.0, -1.0, 1.0])), torch.zeros(3, 3)
    batch = torch.stack([good, bad, zero]).ocl()
    assert torch.linalg.cholesky_ex(batch).info.tolist() == [0, 2, 1]
    with pytest.raises(torch.linalg.LinAlgError, match="leading minor of order 2 is not positive"):
        torch.linalg.cholesky(bad.ocl())
    assert torch.distributions.constraints.positive_definite.check(batch).tolist() == [True, False, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular(upper: bool, unit: bool, dtype: torch.dtype) -> None:
    """From the left and the right, with batches that are broadcast, whatever the other half holds."""
    a = torch.randn(2, 1, 6, 6, dtype=dtype) / 6 + torch.eye(6, dtype=dtype)
    b = torch.randn(3, 6, 4, dtype=dtype)

    def left(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)

    def right(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(a, b.mT, upper=upper, left=False, unitriangular=unit)

    compare(left, a, b)
    compare(right, a, b)
    for transpose in (False, True):
        compare(lambda b, a, t=transpose: torch.triangular_solve(b, a, upper, t, unit)[0], b, a)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [*SHAPES, (2, 7, 4), (4, 7)])
def test_qr(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """All modes, tall and wide."""
    matrices = torch.randn(shape, dtype=dtype)
    compare(torch.linalg.qr, matrices)
    compare(lambda a: torch.linalg.qr(a, mode="complete"), matrices, gradients=shape[-1] >= shape[-2])
    compare(lambda a: torch.linalg.qr(a, mode="r")[1], matrices, gradients=False)
    compare(torch.geqrf, matrices, gradients=False)
    if shape[-2] >= shape[-1]:
        compare(torch.linalg.householder_product, *torch.geqrf(matrices), gradients=matrices.numel() > 0)


def test_qr_of_columns_without_length() -> None:
    """A column of zeros has no reflection."""
    compare(torch.linalg.qr, torch.tensor([[0.0, 0.0], [0.0, 2.0], [0.0, 3.0]]), gradients=False)


def test_multivariate_normal() -> None:
    """A distribution that needs them has samples, densities and gradients."""

    def density(mean: torch.Tensor, covariance: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.distributions.MultivariateNormal(mean, covariance).log_prob(x)

    compare(density, torch.randn(3), positive((3, 3), torch.float32), torch.randn(10, 3))
    covariance = positive((3, 3), torch.float32)
    drawn = torch.distributions.MultivariateNormal(torch.zeros(3).ocl(), covariance.ocl()).sample((50_000,))
    torch.testing.assert_close(torch.cov(drawn.T).cpu(), covariance, rtol=0.05, atol=0.1)
