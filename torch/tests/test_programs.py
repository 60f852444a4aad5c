# SPDX-License-Identifier: MIT
"""Programs that are written by hand in C++: random numbers, cells, ranges, and copies of conjugates."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_kernels import compare
from test_rows import check


@pytest.mark.parametrize(
    ("fill", "mean", "std"),
    [
        (lambda t: t.uniform_(2, 4), 3, 4 / 12**0.5 / 2),
        (lambda t: t.normal_(1, 2), 1, 2),
        (lambda t: t.exponential_(0.5), 2, 2),
        (lambda t: t.bernoulli_(0.25), 0.25, 0.4330),
        (lambda t: t.bernoulli_(torch.full((20000,), 0.25, device="ocl")), 0.25, 0.4330),
        (lambda t: t.geometric_(0.5), 2, 2**0.5),
        (lambda t: t.log_normal_(0, 0.25), 1.0317, 0.2620),
        (lambda t: t.random_(3, 8), 5, 2**0.5),
    ],
)
def test_distributions(fill: Callable[[torch.Tensor], torch.Tensor], mean: float, std: float) -> None:
    """Mean and deviation, the same numbers for the same seed, and others for the next call."""
    torch.manual_seed(3)
    x = fill(torch.empty(20000, device="ocl")).cpu()
    assert abs(x.mean() - mean) < 0.05 * max(1, std) and abs(x.std() - std) < 0.05 * max(1, std)
    y = fill(torch.empty(20000, device="ocl")).cpu()
    assert not torch.equal(x, y)
    torch.manual_seed(3)
    assert torch.equal(fill(torch.empty(20000, device="ocl")).cpu(), x)


def test_dropout() -> None:
    """The share that stays, its scale, and its gradient."""
    x = torch.ones(10000, device="ocl", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    kept = y.detach().cpu() != 0
    assert abs(kept.float().mean() - 0.75) < 0.02
    assert x.grad is not None
    check(x.grad, torch.where(kept, torch.tensor(4 / 3), torch.tensor(0.0)))
    assert torch.nn.functional.dropout(x, 0.25, training=False) is x
    check(torch.nn.functional.dropout(x.detach(), 1.0), torch.zeros(10000))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_cells(kind: type[torch.nn.Module], bias: bool) -> None:
    """Forward and backward of one step."""
    cell = kind(5, 4, bias=bias)
    names = [name for name, _ in cell.named_parameters()]

    def step(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        return torch.func.functional_call(cell, dict(zip(names, values, strict=True)), (x,))  # type: ignore[no-any-return]

    compare(step, torch.randn(3, 5), *cell.parameters())


def test_ranges() -> None:
    """Integers exactly, floats as on the CPU."""
    check(torch.arange(5, device="ocl"), torch.arange(5))
    check(torch.arange(2**40 + 1, 2**40 + 9, 3, device="ocl"), torch.arange(2**40 + 1, 2**40 + 9, 3))
    check(torch.arange(1, -2, -0.5, device="ocl"), torch.arange(1, -2, -0.5))
    check(torch.linspace(-3, 5, 17, device="ocl"), torch.linspace(-3, 5, 17))
    check(torch.linspace(3, 4, 1, device="ocl"), torch.linspace(3, 4, 1))
    check(torch.logspace(0, 3, 7, 2.0, device="ocl"), torch.logspace(0, 3, 7, 2.0))
    check(torch.eye(3, 5, device="ocl"), torch.eye(3, 5))
    check(torch.eye(3, dtype=torch.int64, device="ocl"), torch.eye(3, dtype=torch.int64))


def test_conjugates() -> None:
    """Copies from and to tensors with a bit of conjugation or negation end, and are right."""
    x = torch.randn(4, dtype=torch.complex64)
    y = x.ocl()
    check(y.conj(), x.conj())
    check(y.conj().clone(), x.conj().resolve_conj())
    check(y.conj().imag.clone(), x.conj().imag.resolve_neg())
    target, expected = torch.zeros(4, dtype=torch.complex64).ocl(), torch.zeros(4, dtype=torch.complex64)
    target.conj().copy_(y)
    expected.conj().copy_(x)
    check(target, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_variance(dtype: torch.dtype) -> None:
    """Of all elements and some, with corrections, and of too few elements."""
    x = torch.randn(3, 4, 5).to(dtype) + 2
    check(x.ocl().var(), x.var())
    check(x.ocl().std((0, -1), correction=0, keepdim=True), x.std((0, -1), correction=0, keepdim=True))
    for actual, expected in zip(torch.var_mean(x.ocl(), 1), torch.var_mean(x, 1), strict=True):
        check(actual, expected)
    check(x[:1].ocl().std(0), x[:1].std(0))
    check(x[:0].ocl().var(0), x[:0].var(0))


def test_random_integers() -> None:
    """Ranges beyond what float holds, and all of a type."""
    torch.manual_seed(1)
    x = torch.randint(2**40, 2**40 + 1000, (5000,), device="ocl").cpu()
    assert x.min() >= 2**40 and x.max() < 2**40 + 1000 and len(x.unique()) > 950
    assert torch.empty(5000, dtype=torch.int64, device="ocl").random_().cpu().float().mean() > 2**61
    y = torch.empty(5000, dtype=torch.uint8, device="ocl").random_().cpu()
    assert len(y.unique()) == 256


def test_two_runs_have_the_same_bits() -> None:
    """A step with dropout, of one seed; and no operator is refused as not deterministic."""

    def run() -> list[torch.Tensor]:
        torch.manual_seed(5)
        model = torch.nn.Sequential(
            torch.nn.Embedding(9, 16), torch.nn.Dropout(0.3), torch.nn.Flatten(), torch.nn.Linear(64, 8)
        ).ocl()
        words = torch.randint(0, 9, (6, 4), device="ocl")
        loss = torch.nn.functional.cross_entropy(model(words), torch.arange(6, device="ocl"))
        loss.backward()
        return [loss.detach().cpu(), *(parameter.grad.cpu() for parameter in model.parameters())]

    torch.use_deterministic_algorithms(True)
    try:
        first, second = run(), run()
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
