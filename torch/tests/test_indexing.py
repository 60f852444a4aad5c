# SPDX-License-Identifier: MIT
"""Elements that indices and masks choose, on "ocl" against the CPU, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_kernels import compare
from torch.nn import functional as F

TYPES = [torch.float32, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool]
REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]


def made(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Small numbers that all types hold."""
    return torch.randint(0, 5, shape).to(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype: torch.dtype) -> None:
    """Elements of all types are moved as they are."""
    x, i = made((4, 5), dtype), torch.tensor([2, 0, 3])
    compare(lambda x, i: x.detach().index_select(0, i), x, i)
    compare(lambda x, i: x.detach()[:, i], x, i)
    compare(lambda x, i: x.detach().gather(1, i.view(3, 1)), x, i)
    compare(lambda x, i: x.detach().scatter(1, i.view(3, 1), x.detach()), x, i)
    compare(lambda x, i: x.detach().index_add(0, i, x[:3].detach()), x, i)
    compare(lambda x: x.detach()[x > 1], x)
    compare(lambda x: x.detach().masked_scatter(x > 1, x.detach()), x)


def test_rows() -> None:
    """Rows of views, of dimensions that count from the end, of int32 indices, and of nothing."""
    x, y, i = torch.randn(4, 5, 6), torch.randn(4, 3, 6), torch.tensor([4, 0, 4])
    compare(lambda x, i: x.index_select(1, i), x, i)
    compare(lambda x, i: x.transpose(0, 2).index_select(-2, i.int()), x, i)
    compare(lambda x, i: x.index_select(1, i[:0]), x, i)
    compare(lambda x, i: x[0, 0, 0].index_select(0, i[1]), x, i)
    compare(lambda x, y, i: x.index_add(1, i, y, alpha=0.5), x, y, i)
    compare(lambda x, y, i: x[::2].index_add(1, i, y[::2]), x, y, i)
    compare(lambda x, y, i: x.index_copy(1, i[:2], y[:, 1:]), x, y, i)
    compare(lambda x, i: x.index_fill(1, i, 3), x, i)
    compare(lambda x, i: x.transpose(0, 1).index_fill(0, i, x[0, 0, 0].detach()), x, i)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions(reduction: str, include_self: bool) -> None:
    """With the elements that are there, and without; an index smaller than tensor and source."""
    x, y, i = torch.randn(4, 5), torch.randn(3, 6), torch.tensor([[3, 0, 3], [1, 1, 1]])
    how = {"reduce": reduction, "include_self": include_self}
    compare(lambda x, y, i: x.scatter_reduce(0, i, y[:2, :3], **how), x, y, i)
    compare(lambda x, y, i: x.detach().scatter_reduce(0, i, y.detach(), **how), x, y, i)
    if reduction != "sum":
        compare(lambda x, y, i: x.index_reduce(0, i[0], y[:, :5], reduction, include_self=include_self), x, y, i)


def test_scatter() -> None:
    """Elements that are replaced and added, in place in a view, and without dimensions."""
    x, y, i = torch.randn(4, 5), torch.randn(4, 6), torch.tensor([[3, 0, 2], [1, 4, 0]])
    compare(lambda x, i: x.gather(1, i), x, i)
    compare(lambda x, i: x.t()[1:].gather(0, i.t().clamp(max=3)), x, i)
    compare(lambda x, y, i: x.scatter(1, i, y[:2, :3]), x, y, i)
    compare(lambda x, y, i: x.detach().scatter(1, i, y.detach()), x, y, i)
    compare(lambda x, i: x.scatter(1, i, 2.5), x, i)
    compare(lambda x, y, i: x.scatter_add(1, i, y[:2, :3]), x, y, i)
    compare(lambda x, i: x.detach().scatter(1, i, 2, reduce="multiply"), x, i)
    compare(lambda x, i: x.clone().t().scatter_(0, i.t(), 1), x, i)
    compare(lambda x, i: x[0, 0].scatter(0, i[0, 1], x[1, 1]), x, i)
    compare(lambda x, i: x.gather(1, i[:0]), x, i)


def test_advanced_index() -> None:
    """Indices side by side and apart, masks, negative ones, and assignments."""
    x, i, j = torch.randn(4, 5, 6), torch.tensor([2, -1]), torch.tensor([[0], [3]])
    mask = torch.rand(4, 5) > 0.5
    compare(lambda x, i, j: x[i, j], x, i, j)
    compare(lambda x, i, j: x[i, :, j], x, i, j)
    compare(lambda x, i, j: x[:, i, j], x, i, j)
    compare(lambda x, i: x.transpose(0, 2)[None, i, ..., i], x, i)
    compare(lambda x, m: x[m], x, mask)
    compare(lambda x, m, i: x[m][:, i], x, mask, i)
    compare(lambda x, i: x[:, i[:0]], x, i)
    compare(lambda x: x[[1, 2], [0, 0]], x)
    compare(lambda x: x[torch.tensor([1, 2])], x)


def test_assignment() -> None:
    """index_put of values that are broadcast, in place in views, once and accumulated."""
    x, y, i, j = torch.randn(4, 5, 6), torch.randn(2, 1, 6), torch.tensor([2, -1]), torch.tensor([3, 0])
    compare(lambda x, y, i, j: x.index_put((i, j), y[:, 0]), x, y, i, j)
    compare(lambda x, y, i: x.index_put((i,), y), x, y, i)
    compare(lambda x, y, i: x.index_put((i[:1].expand(2),), y, accumulate=True), x, y, i)

    def assign(x: torch.Tensor, y: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        z = x.clone()
        z.transpose(0, 1)[:, i] = y[:, 0, :1].t().unsqueeze(2)
        z[z > 1] = 0
        z[x > 0.5] = y[0, 0, 0]
        return z

    compare(assign, x, y, i)


def test_flat_positions() -> None:
    """take and put_, also of views."""
    x, y, i = torch.randn(4, 5), torch.randn(2, 2), torch.tensor([[7, 0], [-1, 3]])
    compare(lambda x, i: x.t().take(i), x, i)
    compare(lambda x, i: x.take(i[0, 0]), x, i)
    compare(lambda x, y, i: x.put(i, y), x, y, i)
    compare(lambda x, y, i: x.clone().t().put_(i, y, accumulate=True), x, y, i)


def test_masks() -> None:
    """Masks that are broadcast, places that are not 0, and nothing."""
    x, m = torch.randn(4, 5), torch.tensor([True, False, True, True, False])
    compare(lambda x, m: x.masked_select(m), x, m)
    compare(lambda x, m: x.masked_select(m & False), x, m)
    compare(lambda x, m: x.t().masked_scatter(m[:, None], x), x, m)
    compare(lambda x: (x * (x > 0)).detach().nonzero(), x)
    compare(lambda x: x.detach()[:0].nonzero(), x)
    compare(lambda x: x[0, 0].detach().nonzero(), x)
    compare(lambda x: (x > 0).nonzero_static(size=30, fill_value=-3), x)
    compare(lambda x: torch.where(x > 0)[1], x)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}, {"max_norm": 0.5}])
def test_embedding(options: dict[str, object]) -> None:
    """Rows of a table, and the sums of their gradients."""

    def embed(w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return F.embedding(i, w * 1 if "max_norm" not in options else w.detach().clone(), **options)

    compare(embed, torch.randn(7, 3), torch.tensor([[2, 0, 6], [2, 2, 1]]))
    compare(embed, torch.randn(7, 3), torch.zeros(2, 0, dtype=torch.long))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x.index_select(0, i),
        lambda x, i: x[i],
        lambda x, i: x.scatter_add(0, i, x),
        lambda x, i: x.index_put((i,), x),
        lambda x, i: x.take(i),
    ],
    ids=["index_select", "index", "scatter_add", "index_put", "take"],
)
def test_out_of_range(function: Callable[..., torch.Tensor]) -> None:
    """Raised when the program next waits; the device serves on."""
    result = function(torch.ones(3, device="ocl"), torch.tensor([0, 7, 1]).ocl())
    with pytest.raises(IndexError):
        result.sum().item()
    assert (torch.ones(2, device="ocl") + 1).tolist() == [2, 2]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"include_last_offset": True}])
def test_embedding_bag(mode: str, options: dict[str, object]) -> None:
    """Bags of rows, among them empty ones, and their gradients."""
    w, i, o = torch.randn(7, 3), torch.tensor([2, 0, 6, 2, 2, 1]), torch.tensor([0, 3, 3, 6])
    compare(lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, **options), w, i, o)
    compare(lambda w, i, o: F.embedding_bag(i[:0], w, o * 0, mode=mode, **options), w, i, o)
    if mode == "sum":
        factors = torch.randn(6)
        compare(
            lambda w, i, o, f: F.embedding_bag(i, w, o, mode=mode, per_sample_weights=f, **options), w, i, o, factors
        )


def test_frequency_of_bags() -> None:
    """Gradients divided by how often a row is named, as those of F.embedding are."""
    i, grads = torch.tensor([[2, 0, 6], [2, 2, 1]]), []
    for function in (
        lambda w, i: F.embedding(i, w, scale_grad_by_freq=True).sum(1),
        lambda w, i: F.embedding_bag(i, w, mode="sum", scale_grad_by_freq=True),
    ):
        w = torch.ones(7, 3, device="ocl", requires_grad=True)
        function(w, i.ocl()).square().sum().backward()
        grads.append(w.grad.cpu())
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[torch.ones(3, dtype=torch.bool, device=x.device)],
        lambda x, i: x[i.float()],
        lambda x, i: x[0, 0, i],
        lambda x, i: x[i, i[:1].expand(3)],
        lambda x, i: x.index_put_((i,), torch.ones(3, device=x.device)),
        lambda x, i: x.index_put_((i,), x[i].double()),
        lambda x, i: x.index_select(2, i),
        lambda x, i: x.take(i.int()),
        lambda x, i: x.scatter_add(0, i[:, None], x.double()),
        lambda x, i: x.masked_select(x),
    ],
)
def test_refused(function: Callable[..., torch.Tensor]) -> None:
    """What PyTorch refuses on the CPU, with the same type of error."""
    x, i = torch.ones(4, 5), torch.tensor([0, 1])
    with pytest.raises((IndexError, RuntimeError)) as expected:
        function(x, i)
    with pytest.raises(expected.type):
        function(x.ocl(), i.ocl())
