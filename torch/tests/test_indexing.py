# SPDX-License-Identifier: MIT
"""Elements that indices and masks choose, on "ocl" against the CPU, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from test_kernels import compare
from torch.nn import functional as F

TYPES = [torch.float32, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool]
REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]


def made(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Small numbers that all types hold."""
    return torch.randint(0, 5, shape).to(dtype)


def bag(mode: str, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """One bag of all rows that the index names."""
    return F.embedding_bag(index, x, index[:1] * 0, mode=mode)


def reduced_elements(how: str, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Elements of the first column, combined in place."""
    return x.scatter_reduce_(0, index[:, None], x[:2] + 1, how)


def reduced_rows(how: str, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Rows, combined in place."""
    return x.index_reduce_(0, index, x[:2] + 1, how)


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


# What PyTorch refuses to count from the end: x [3, 2], and an index [2] whose last entry is -1.
BELOW_ZERO = {
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "index_select": lambda x, i: x.index_select(0, i),
    "take_along_dim": lambda x, i: x.take_along_dim(i),
    "scatter": lambda x, i: x.scatter_(0, i[:, None], x[:2] + 1),
    "scatter_value": lambda x, i: x.scatter_(0, i[:, None], 9.0),
    "scatter_add": lambda x, i: x.scatter_add_(0, i[:, None], x[:2] + 1),
    "index_add": lambda x, i: x.index_add_(0, i, x[:2] + 1),
    "index_copy": lambda x, i: x.index_copy_(0, i, x[:2] + 1),
    "embedding": lambda x, i: F.embedding(i, x),
    "embedding_max_norm": lambda x, i: F.embedding(i, x, max_norm=0.1),
    "one_hot": lambda x, i: F.one_hot(i, 3),
    "nll_loss": lambda x, i: F.nll_loss(x[:2], i),
    "nll_loss2d": lambda x, i: F.nll_loss(x[:2, :, None, None], i[:, None, None]),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:2], i),
    "multi_margin_loss": lambda x, i: F.multi_margin_loss(x[:2], i),
    "multi_margin_loss_weighted": lambda x, i: F.multi_margin_loss(x[:2], i, weight=x[0].exp()),
    "multilabel_margin_loss": lambda x, i: F.multilabel_margin_loss(x[:2], torch.stack((i, i * 2))),
    "max_unpool": lambda x, i: F.max_unpool2d(x[:1].view(1, 1, 1, 2), i.view(1, 1, 1, 2), 2),
    **{f"embedding_bag_{mode}": partial(bag, mode) for mode in ("sum", "mean", "max")},
    **{f"scatter_reduce_{how}": partial(reduced_elements, how) for how in REDUCTIONS},
    **{f"index_reduce_{how}": partial(reduced_rows, how) for how in REDUCTIONS[1:]},
}


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("function", BELOW_ZERO.values(), ids=BELOW_ZERO)
def test_below_zero(function: Callable[..., torch.Tensor]) -> None:
    """Raised when the program next waits, and not before; the last row keeps its numbers."""
    x, i = torch.randn(3, 2), torch.tensor([0, -1])
    with pytest.raises((IndexError, RuntimeError)):
        function(x.clone(), i)
    on_device, index = x.ocl(), i.ocl()
    waits = torch.ocl.counters()["waits"]
    function(on_device, index)
    assert torch.ocl.counters()["waits"] == waits
    with pytest.raises(IndexError, match="index -[12] at position"):
        torch.ocl.synchronize()
    assert torch.equal(on_device[2].cpu(), x[2])


def test_gradients_below_zero() -> None:
    """So are gradients at such indices."""
    grad, i = torch.ones(2, 2).ocl(), torch.tensor([0, -1]).ocl()
    for function in (
        lambda: torch.ops.aten.embedding_dense_backward(grad, i, 3, -1, False),
        lambda: torch.ops.aten.embedding_dense_backward(grad, i, 3, -1, True),
        lambda: torch.ops.aten.multi_margin_loss_backward(grad[0, 0], grad, i, 1, 1.0),
    ):
        function()
        with pytest.raises(IndexError, match="index -1 at position"):
            torch.ocl.synchronize()


def test_counts_from_end() -> None:
    """What PyTorch counts from the end, and labels that do not count."""
    x, i = torch.randn(3, 2), torch.tensor([0, -1])
    compare(lambda x, i: x[i], x, i)
    compare(lambda x, i: x[i, i], x, i)
    compare(lambda x, i: x.index_put((i,), x[:2]), x, i)
    compare(lambda x, i: x.index_put((i, i), x[:2, 0], accumulate=True), x, i)
    compare(lambda x, i: x.take(i), x, i)
    compare(lambda x, i: x.detach().put_(i, x[:2, 0].detach()), x, i)
    compare(lambda x, i: x.index_fill(0, i, 3), x, i)
    compare(lambda x, i: x.take_along_dim(i[:, None], 0), x, i)
    compare(lambda x, i: F.nll_loss(x[:2], i, ignore_index=-1), x, i)
    compare(lambda x, i: F.nll_loss(x[:2], i * 100), x, i)


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
