# SPDX-License-Identifier: MIT
"""Operators of rows.yaml against the CPU: types, broadcasting, views, in place and out=."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from test_kernels import compare


def check(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Same type, shape and values."""
    assert actual.device.type == "ocl"
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("b", [torch.float32, torch.float16, torch.int64, torch.int32, torch.bool])
@pytest.mark.parametrize("a", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_promotion(name: str, a: torch.dtype, b: torch.dtype) -> None:
    """The result's type follows from both operands."""
    x, y = torch.tensor([1, 2, 5]).to(a), torch.tensor([[3], [4]]).to(b)
    operation = getattr(torch, name)
    check(operation(x.ocl(), y.ocl()), operation(x, y))
    for scalar in (2, 2.5, True):
        check(operation(x.ocl(), scalar), operation(x, scalar))
        check(operation(scalar, x.ocl()) if name != "div" else scalar / x.ocl(), operation(torch.tensor(scalar), x))


def test_alpha_views_in_place_and_out() -> None:
    """What the kernels of rows do beside the expression."""
    x, y = torch.randn(4, 5), torch.randn(5, 4)
    check(torch.add(x.ocl(), y.ocl().t(), alpha=0.5), torch.add(x, y.t(), alpha=0.5))
    a, b = x.ocl(), x.clone()
    a[:, 1:3].mul_(3)
    b[:, 1:3].mul_(3)
    check(a, b)
    out = torch.empty(0, device="ocl")
    torch.sub(x.ocl(), 1, out=out)
    check(out, x - 1)
    whole = torch.zeros(8, 5, device="ocl")
    torch.exp(x.ocl(), out=whole[::2])
    expected = torch.zeros(8, 5)
    expected[::2] = x.exp()
    check(whole, expected)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int64, device="ocl").add_(0.5)
    with pytest.raises(RuntimeError, match="match the size"):
        torch.ones(2, device="ocl") + torch.ones(3, device="ocl")
    z = torch.ones(3, device="ocl")
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.add(z[:2], 1, out=z[1:])


def test_empty_and_scalars() -> None:
    """Tensors without elements, and without dimensions."""
    check(torch.ones(0, 3, device="ocl") + 1, torch.ones(0, 3))
    x = torch.tensor(3.0)
    check(x.ocl() * 2, x * 2)
    check(x.ocl() * torch.ones(2, device="ocl"), x * torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool, torch.float16])
def test_sums(dtype: torch.dtype) -> None:
    """Of all elements, and of some dimensions."""
    x = torch.randint(0, 4, (3, 4, 5)).to(dtype)
    check(x.ocl().sum(), x.sum())
    check(x.ocl().sum(1), x.sum(1))
    check(x.ocl().sum((0, -1), keepdim=True), x.sum((0, -1), keepdim=True))
    check(x.ocl().sum(0, dtype=torch.float32), x.sum(0, dtype=torch.float32))
    check(x.ocl()[:, 1:3].sum(0), x[:, 1:3].sum(0))
    check(torch.sum(x.ocl(), 2, out=torch.empty(0, dtype=torch.int64, device="ocl")), x.sum(2).long())
    check(torch.ones(0, 3, device="ocl").sum(0), torch.zeros(3))
    check(torch.ones(0, 3, device="ocl").mean(0), torch.full((3,), torch.nan))


def test_gradients() -> None:
    """PyTorch's own formulas, on our kernels."""
    compare(lambda x: (x * x).exp().relu() / 2 - x, torch.randn(3, 4))


@pytest.mark.fallback
def test_fallback() -> None:
    """What has no kernel runs on the CPU, and is counted; or it is an error."""
    torch.ocl.reset_fallbacks()
    x = torch.eye(4)
    check(torch.linalg.eigvalsh(x.ocl()), torch.linalg.eigvalsh(x))
    assert sum(torch.ocl.fallbacks().values()) == 1
    torch.ocl.set_fallback_mode("error")
    with pytest.raises(NotImplementedError, match=r"_linalg_eigh.*Float\[4, 4\]"):
        torch.linalg.eigvalsh(x.ocl())


def test_exact_integers() -> None:
    """64-bit integers keep all digits, with tensors, numbers and sums."""
    x = torch.tensor([2**60 + 1, -(2**53) - 1, 7])
    y = torch.tensor([3, 2**54 + 1, -7])
    for operation in (torch.add, torch.sub, torch.mul, torch.maximum, torch.eq, torch.lt, torch.bitwise_xor):
        check(operation(x.ocl(), y.ocl()), operation(x, y))
        check(operation(x.ocl(), y.ocl()[1]), operation(x, y[1]))
    check(x.ocl() + (2**62 + 3), x + (2**62 + 3))
    check(x.ocl() == 2**60 + 1, x == 2**60 + 1)
    check(torch.where(x.ocl() > 0, x.ocl(), -(2**61) - 1), torch.where(x > 0, x, -(2**61) - 1))
    check(x.ocl().sum(), x.sum())
    check(x.ocl().amax(), x.amax())
    check(x.ocl().clamp(min=2**53 + 1), x.clamp(min=2**53 + 1))
    small = torch.tensor([3, -2, 0, 1, -1])
    for exponent in (0, 1, 2, 3, 7, 20):
        check(small.ocl() ** exponent, small**exponent)
    check(small.ocl() ** torch.tensor([39, -1, 0, -5, -3]).ocl(), small ** torch.tensor([39, -1, 0, -5, -3]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_numbers_take_part_in_promotion(dtype: torch.dtype) -> None:
    """A float beside integers makes a float, and a zero-dimensional tensor of the CPU is a number."""
    x = torch.tensor([-2, 0, 3]).to(dtype)
    check(x.ocl().clamp(-1.5, 2), x.clamp(-1.5, 2))
    check(x.ocl() > 0.5, x > 0.5)
    check(torch.where(x.ocl() > 0, x.ocl(), 0.5), torch.where(x > 0, x, 0.5))
    check(x.ocl() * torch.tensor(2.5), x * torch.tensor(2.5))
    check(x.ocl().masked_fill(x.ocl() == 0, 4), x.masked_fill(x == 0, 4))


def test_refused_types() -> None:
    """What PyTorch refuses on the CPU is refused, and casts are checked."""
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.nn.functional.gelu(torch.ones(2, dtype=torch.int64, device="ocl"))
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        torch.bitwise_and(torch.ones(2, device="ocl"), 1)
    with pytest.raises(RuntimeError, match="bool"):
        torch.ones(2, dtype=torch.bool, device="ocl") - torch.ones(2, dtype=torch.bool, device="ocl")
    with pytest.raises(RuntimeError, match=r"^max\(\): Expected reduction dim"):
        torch.ones(0, device="ocl").max()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"])
def test_losses(name: str, reduction: str) -> None:
    """Losses and their gradients, also without elements."""
    loss = getattr(torch.nn.functional, name)
    x, target = torch.rand(3, 4), torch.rand(3, 4)
    compare(lambda x, t: loss(x, t.detach(), reduction=reduction), x, target)
    compare(lambda x, t: loss(x.detach()[:0], t.detach()[:0], reduction=reduction), x, target)


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf"), -float("inf")])
def test_norms(p: float) -> None:
    """Sums of powers whose root is taken behind the reduction, in half, too."""
    x = torch.randn(3, 50)
    check(torch.linalg.vector_norm(x.ocl(), p, 1), torch.linalg.vector_norm(x, p, 1))
    x = (x * 100).half()
    check(torch.linalg.vector_norm(x.ocl(), 2, 1), torch.linalg.vector_norm(x, 2, 1))


def test_page_is_current() -> None:
    """docs/torch_operators.md is what generate.py makes."""
    folder = Path(__file__).parents[1]
    page = folder.parent / "docs" / "torch_operators.md"
    with tempfile.TemporaryDirectory() as made:
        new = Path(made) / "page.md"
        command = [sys.executable, str(folder / "generate.py"), str(folder / "rows.yaml"), "--page", str(new)]
        subprocess.run(command, check=True, env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
        assert page.read_text() == new.read_text(), f"make it anew: {command[1]} ROWS --page {page}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.uint8, torch.float16])
def test_quotients(dtype: torch.dtype) -> None:
    """Division with rounding and what it leaves, with PyTorch's signs."""
    x, y = torch.tensor([7, -7, 7, 0, 100]).to(dtype), torch.tensor([2, 2, 3, 5, 9]).to(dtype)
    for mode in (None, "trunc", "floor"):
        check(torch.div(x.ocl(), y.ocl(), rounding_mode=mode), torch.div(x, y, rounding_mode=mode))
    for operation in (torch.floor_divide, torch.fmod, torch.remainder):
        check(operation(x.ocl(), y.ocl()), operation(x, y))
        check(operation(x.ocl(), 3), operation(x, 3))
    check(torch.remainder(100, y.ocl()), torch.remainder(100, y))
    z = torch.tensor([2**62 + 1, -(2**55) - 3])
    check(z.ocl() // 7, z // 7)
    check(z.ocl() % (2**54 + 1), z % (2**54 + 1))


@pytest.mark.parametrize("name", ["erfc", "erfinv", "lgamma", "digamma", "exp2", "log2", "log10"])
def test_functions(name: str) -> None:
    """Functions of one number, also of integers."""
    x = torch.linspace(0.05, 0.95, 50)
    check(getattr(torch, name)(x.ocl()), getattr(torch, name)(x))
    if name != "erfinv":
        i = torch.tensor([1, 2, 5])
        check(getattr(torch, name)(i.ocl()), getattr(torch, name)(i))


def test_shifts_by_operators() -> None:
    """x >> 3 and its like are overloads of their own: with numbers, tensors and in place."""
    for x in (torch.tensor([2**40, 7, -9]), torch.tensor([100, 7, -9], dtype=torch.int8)):
        by = torch.tensor([1, 3, 2], dtype=x.dtype)
        check(x.ocl() >> 3, x >> 3)
        check(x.ocl() << 1, x << 1)
        check(x.ocl() >> by.ocl(), x >> by)
        check(x.ocl() << by.ocl(), x << by)
        y, z = x.ocl(), x.clone()
        y >>= 1
        z >>= 1
        y <<= by.ocl()
        z <<= by
        check(y, z)
    for amount in (-1, 64, 200):
        check(torch.tensor([5, -5], device="ocl") << amount, torch.tensor([0, 0]))
        check(torch.tensor([5, -5], device="ocl") >> amount, torch.tensor([0, -1]))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_integers_by_zero(dtype: torch.dtype) -> None:
    """Quotients and remainders by 0 are 0, where the CPU raises (docs/pointwise.md)."""
    x = torch.tensor([7, 0, torch.iinfo(dtype).min], dtype=dtype, device="ocl")
    zeros, none = torch.zeros_like(x), torch.zeros(3, dtype=dtype)
    for divisor in (zeros, 0):
        check(x // divisor, none)
        check(x % divisor, none)
        check(torch.fmod(x, divisor), none)
        check(torch.div(x, divisor, rounding_mode="trunc"), none)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_nan_is_true(dtype: torch.dtype) -> None:
    """As a mask, in logic and in counts."""
    x = torch.tensor([float("nan"), float("inf"), 0.0, -0.0, 1.0], dtype=dtype)
    check(x.ocl().bool(), x.bool())
    check(x.ocl().logical_not(), x.logical_not())
    check(torch.where(x.ocl().bool(), 1, 2), torch.where(x.bool(), 1, 2))
    check(x.ocl().nonzero(), x.nonzero())
    check(torch.zeros(5).ocl().masked_fill(x.ocl().bool(), 3), torch.zeros(5).masked_fill(x.bool(), 3))
