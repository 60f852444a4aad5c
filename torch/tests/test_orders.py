# SPDX-License-Identifier: MIT
"""Orders, extremes, running sums, searches and counts on "ocl" against the CPU."""

from __future__ import annotations

import pytest
import torch
from test_kernels import compare

TYPES = [torch.float32, torch.float16, torch.float64, torch.int64, torch.uint8]


def some(dtype: torch.dtype) -> torch.Tensor:
    """Small numbers, some of them equal."""
    return torch.randint(0, 9, (4, 6)).to(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype: torch.dtype) -> None:
    """What each type gives."""
    x = some(dtype)
    compare(lambda x: x.detach().sort(dim=1, stable=True), x)
    compare(lambda x: x.detach().cumsum(0), x)
    compare(lambda x: x.detach().max(1), x)
    compare(lambda x: x.detach().mode(1), x)
    compare(lambda x: torch.unique(x.detach(), return_inverse=True, return_counts=True), x)
    compare(lambda x: torch.searchsorted(x.detach().sort(1)[0], x.detach(), right=True), x)
    compare(lambda x: x.detach().roll((1, -2), (0, 1)).flip(0), x)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_extremes(dim: int) -> None:
    """Positions and values, of views and of numbers; of equal values the first, NaN before all."""
    x = torch.randn(4, 5, 3)
    x[1, 2, 0] = torch.nan
    for name in ("max", "min"):
        compare(lambda x, n=name: getattr(x, n)(dim), x)
        compare(lambda x, n=name: getattr(x.transpose(0, 2)[1:], n)(dim, keepdim=True), x)
        compare(lambda x, n=name: getattr(x[0, 0, 0], n)(0), x)
        compare(lambda x, n=name: getattr(x, "arg" + n)(dim, keepdim=True), x)
        compare(lambda x, n=name: getattr(x.t(), "arg" + n)(), torch.ones(4, 5))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dim: int, descending: bool) -> None:
    """Sort, topk and kthvalue along each dimension."""
    x = torch.randn(4, 5, 3)
    compare(lambda x: x.sort(dim, descending), x)
    compare(lambda x: x.transpose(0, 2)[1:].sort(dim, descending), x)
    compare(lambda x: x.topk(2, dim, largest=descending), x)
    compare(lambda x: x.kthvalue(2, dim, keepdim=descending), x)
    compare(lambda x: x[0, 0, 0].sort(0), x)
    compare(lambda x: x[:0].sort(dim), x)
    nan = torch.tensor([3, torch.nan, -torch.inf, 1, torch.inf])
    compare(lambda x: x.sort(descending=descending), nan)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians(name: str) -> None:
    """Of even and odd numbers of elements, with and without NaN, and of nothing but NaN."""
    for width in (4, 5):
        x = torch.randn(4, width)
        x[1, 2] = x[2, 0] = x[2, 3] = torch.nan
        compare(lambda x: getattr(x, name)(1)[0], x)
        compare(lambda x: getattr(x.t(), name)(0, keepdim=True)[0], x)
        x[3] = torch.nan
        compare(lambda x: getattr(x.detach(), name)(1)[0], x)
        compare(lambda x: getattr(x[:1], name)(), x)
        compare(lambda x: getattr(x.detach(), name)(), x)
    compare(lambda x: getattr(x, name)(0), torch.randint(0, 99, (7, 2)))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scans(dim: int) -> None:
    """Sums, products, extremes and logarithms of sums of exponentials up to each element."""
    x = torch.randn(4, 5, 3)
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        compare(lambda x, n=name: getattr(x, n)(dim), x)
        compare(lambda x, n=name: getattr(x.transpose(0, 2)[1:], n)(dim), x)
        compare(lambda x, n=name: getattr(x[0, 0, 0], n)(0), x)
        compare(lambda x, n=name: getattr(x[:, :0], n)(dim), x)
    compare(lambda x: (x > 0).cumsum(dim), x)
    compare(lambda x: x.cumsum(dim, dtype=torch.float64), x)


def test_moves() -> None:
    """flip, roll and windows, which overlap or not."""
    x = torch.randn(4, 5, 6)
    compare(lambda x: x.flip(0, -1), x)
    compare(lambda x: x.transpose(0, 2).flip(1), x)
    compare(lambda x: x.roll((2, -1), (1, 2)), x)
    compare(lambda x: x.transpose(0, 1).roll(3), x)
    compare(lambda x: x.roll((1, 1), (0, 0)), x)
    compare(lambda x: x.roll(1, 0), torch.tensor([2**40 + 1, 5]))
    compare(lambda x: x[:, :0].roll(1, 0), x)
    compare(lambda x: x.unfold(1, 3, 1), x)
    compare(lambda x: x.unfold(-1, 2, 3), x)


@pytest.mark.parametrize("right", [False, True])
def test_searches(right: bool) -> None:
    """Places in one line, in a line for each row, with a sorter, and of single values."""
    lines, x = torch.randn(3, 9).sort(1)[0], torch.randn(3, 4)
    x[0, 0] = lines[0, 4]
    compare(lambda s, x: torch.searchsorted(s, x, right=right), lines, x)
    compare(lambda s, x: torch.searchsorted(s[0], x, right=right, out_int32=True), lines, x)
    compare(
        lambda s: torch.searchsorted(s.flip(1).contiguous(), s, right=right, sorter=(s * -1).argsort(1).flip(1)), lines
    )
    compare(lambda s, x: torch.bucketize(x[:2], s[0].contiguous(), right=right), lines, x)
    compare(lambda s: torch.searchsorted(s[0], 0.3, right=right), lines)
    compare(lambda s, x: torch.searchsorted(s[0, :0], x, right=right), lines, x)
    many = torch.arange(1000)
    compare(lambda m: torch.bucketize(m, m[::3].contiguous(), right=right), many)


@pytest.mark.parametrize("count", [0, 5, 100])
@pytest.mark.parametrize("invert", [False, True])
def test_isin(count: int, invert: bool) -> None:
    """Among few and among many."""
    x, others = torch.randint(0, 300, (4, 50)), torch.randint(0, 300, (count,))
    compare(lambda x, o: torch.isin(x, o, invert=invert), x, others)
    compare(lambda x, o: torch.isin(x.t(), o.to(torch.float32), invert=invert), x, others)
    compare(lambda x: torch.isin(x, 7, invert=invert), x)
    compare(lambda x: torch.isin(7, x, invert=invert), x)


def test_unique() -> None:
    """Values, rows, neighbours, and nothing."""
    x = torch.randint(0, 3, (6, 2))
    both = {"return_inverse": True, "return_counts": True}
    compare(lambda x: torch.unique(x, **both), x)
    compare(lambda x: torch.unique(x.t(), dim=1, **both), x)
    compare(lambda x: torch.unique_consecutive(x[:, 0], **both), x)
    compare(lambda x: torch.unique_consecutive(x, dim=0, **both), x)
    compare(lambda x: torch.unique(x[:0], **both), x)
    compare(lambda x: torch.unique(x[:1, 0], **both), x)
    compare(lambda x: torch.unique(x[:0], dim=0, **both), x)
    compare(lambda x: torch.unique_consecutive(x[:0], dim=0, **both), x)


def test_counts() -> None:
    """bincount, histc and repeat_interleave."""
    x, w = torch.randint(0, 7, (40,)), torch.randn(40)
    compare(torch.bincount, x)
    compare(lambda x, w: torch.bincount(x[::2], w.detach()[::2], 12), x, w)
    compare(lambda x: torch.bincount(x[:0], minlength=3), x)
    compare(lambda w: torch.histc(w.detach(), 10), w)
    compare(lambda w: torch.histc(w.detach(), 4, -1, 1), w)
    compare(torch.repeat_interleave, torch.tensor([1, 0, 3, 2]))
    compare(lambda x, r: x.repeat_interleave(r, 1), torch.randn(2, 4), torch.tensor([1, 0, 3, 2]))
    compare(lambda x, r: x.repeat_interleave(r, 1, output_size=6), torch.randn(2, 4), torch.tensor([1, 0, 3, 2]))
    with pytest.raises(RuntimeError, match="negative"):
        torch.repeat_interleave(torch.tensor([1, -1]).ocl())


def test_triangles_and_renorm() -> None:
    """Coordinates of triangles, and norms with a limit."""
    for name in ("tril_indices", "triu_indices"):
        compare(lambda x, n=name: getattr(torch, n)(4, 5, -1, device=x.device), torch.ones(1))
    compare(lambda x: x.renorm(2, 1, 0.5), torch.randn(4, 5, 3))
    compare(lambda x: x.detach().transpose(0, 2).renorm(1, 0, 2), torch.randn(4, 5, 3))


@pytest.mark.parametrize("reduction", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("initial", [None, 2])
def test_segments(reduction: str, initial: float | None) -> None:
    """Segments by lengths and by offsets, one of them empty; a product with zeros."""
    x, lengths = torch.rand(3, 6, 2) + 0.1, torch.tensor([[2, 0, 4], [1, 2, 3], [3, 3, 0]])
    x[0, 1] = 0
    offsets = torch.cat([torch.zeros(3, 1, dtype=torch.long), lengths.cumsum(1)], 1)
    how = {"reduce": reduction, "initial": initial}
    compare(lambda x, n: torch.segment_reduce(x, lengths=n, axis=1, **how), x, lengths)
    compare(lambda x, o: torch.segment_reduce(x, offsets=o, axis=1, **how), x, offsets)
    compare(lambda x, n: torch.segment_reduce(x[0].t().contiguous().t(), lengths=n[0], **how), x, lengths)


@pytest.mark.parametrize("density", [False, True])
def test_histograms(density: bool) -> None:
    """Edges by number, by range and given, with weights, and values outside and on the last edge."""
    x, w, edges = torch.rand(4, 20), torch.rand(4, 20), torch.tensor([0.1, 0.2, 0.5, 0.75])
    x[0, 0], x[0, 1], x[0, 2] = 0.75, 0.1, torch.nan
    compare(lambda x: torch.histogram(x[1:].detach(), 5, density=density), x)
    compare(lambda x: torch.histogram(x.detach(), 5, range=(0.2, 0.8), density=density), x)
    compare(lambda x, e: torch.histogram(x[1:].detach(), e.detach(), density=density), x, edges)
    compare(
        lambda x, w, e: torch.histogram(x[:, 3:].detach(), e.detach(), weight=w[:, 3:].detach(), density=density),
        x,
        w,
        edges,
    )
    compare(lambda x, e: torch.histogram(x[0, :2].detach(), e.detach()), x, edges)
