# SPDX-License-Identifier: MIT
"""Kernels written by hand against the CPU, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F


def compare(
    function: Callable[..., Any], *tensors: torch.Tensor, tolerance: float = 1e-4, exact_types: bool = True
) -> None:
    """Results and gradients of float tensors on both devices."""
    found = []
    for device in ("cpu", "ocl"):
        own = [t.detach().to(device) for t in tensors]
        own = [t.requires_grad_() if t.is_floating_point() else t for t in own]
        results = function(*own)
        results = results if isinstance(results, (tuple, list)) else (results,)
        torch.manual_seed(1)
        floats = [r for r in results if r.is_floating_point() and r.requires_grad]
        if floats:
            torch.autograd.backward(floats, [torch.randn(r.shape).to(r.dtype).to(device) for r in floats])
        found.append([*results, *(t.grad for t in own if t.grad is not None)])
    assert len(found[0]) == len(found[1])
    for expected, actual in zip(*found, strict=True):
        assert actual.device.type == "ocl"
        torch.testing.assert_close(
            actual.detach().cpu(),
            expected.detach(),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
            check_dtype=exact_types,
        )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": (1, 2)}, {"dilation": 2}, {"groups": 2, "padding": 1}],
    ids=["plain", "stride", "dilation", "groups"],
)
def test_conv2d(options: dict[str, Any], bias: bool) -> None:
    """Convolutions of images."""
    x, w, b = torch.randn(2, 4, 9, 11), torch.randn(6, 4 // options.get("groups", 1), 3, 3), torch.randn(6)
    compare(lambda x, w, *b: F.conv2d(x, w, *b, **options), x, w, *([b] if bias else []))


def test_conv2d_views() -> None:
    """Of views, in channels_last, and of a single image."""
    x, w = torch.randn(2, 4, 9, 11), torch.randn(6, 4, 3, 3)
    compare(lambda x, w: F.conv2d(x.transpose(2, 3), w[:, :, :2]), x, w)
    compare(lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w).contiguous(), x, w)
    compare(lambda x, w: F.conv2d(x[0], w), x, w)


def test_conv3d() -> None:
    """Convolutions of volumes."""
    x, w, b = torch.randn(2, 4, 5, 6, 7), torch.randn(6, 2, 3, 2, 3), torch.randn(6)
    compare(lambda x, w, b: F.conv3d(x, w, b, stride=(1, 2, 1), padding=1, groups=2), x, w, b)
    compare(lambda x, w: F.conv_transpose3d(x, w, stride=2, output_padding=1), x, torch.randn(4, 3, 2, 2, 2))


def test_conv_transpose2d_and_1d() -> None:
    """Transposed convolutions, and those of sequences."""
    x, w, b = torch.randn(2, 4, 5, 6), torch.randn(4, 3, 3, 3), torch.randn(6)
    compare(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1, groups=2), x, w, b)
    compare(lambda x, w, b: F.conv1d(x, w, b, padding=2, stride=2), torch.randn(2, 4, 13), torch.randn(6, 4, 3), b)
    compare(lambda x, w: F.conv_transpose1d(x, w, stride=2), torch.randn(2, 4, 7), torch.randn(4, 5, 3))


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (4, 3, 5, 6), (2, 3, 2, 3, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape: tuple[int, ...], training: bool) -> None:
    """With and without affine parameters and running statistics; these are updated."""
    x, w, b = torch.randn(shape) * 2 + 1, torch.randn(3), torch.randn(3)
    mean, var = torch.randn(3), torch.rand(3) + 0.5

    def both(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        m, v = mean.to(x.device, copy=True), var.to(x.device, copy=True)
        return F.batch_norm(x, m, v, w, b, training, 0.3, 1e-3), m, v

    compare(both, x, w, b)
    compare(lambda x: F.batch_norm(x, mean.to(x.device), var.to(x.device), training=training), x)
    compare(lambda x: F.batch_norm(x, None, None, training=True), x)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0), "ceil_mode": True},
    ],
)
def test_pooling(options: dict[str, Any]) -> None:
    """Maxima with their positions, and means."""
    x = torch.randn(2, 3, 9, 10)
    compare(lambda x: F.max_pool2d(x, **options, return_indices=True), x)
    compare(lambda x: F.max_pool2d(x[0], **options), x)
    compare(lambda x: F.avg_pool2d(x, **options), x)
    compare(lambda x: F.avg_pool2d(x, **options, count_include_pad=False), x)
    compare(lambda x: F.avg_pool2d(x, **options, divisor_override=3), x)


def test_pooling_with_dilation_and_of_volumes() -> None:
    """What the operators for plain images do not serve."""
    x = torch.randn(2, 3, 9, 10)
    compare(lambda x: F.max_pool2d(x, 2, 2, 1, 2, return_indices=True), x)
    compare(lambda x: F.max_pool2d(x, 2, return_indices=True), x.double())
    v = torch.randn(2, 3, 5, 6, 7)
    compare(lambda v: F.max_pool3d(v, 2, return_indices=True), v)
    compare(lambda v: F.avg_pool3d(v[0], (1, 2, 3), 2), v)
    compare(lambda v: F.adaptive_avg_pool3d(v, (2, 3, 4)), v)
    compare(lambda v: F.adaptive_max_pool3d(v, (2, 3, 4), return_indices=True), v)


@pytest.mark.parametrize("size", [1, (3, 2), (None, 5), (4, 7)])
def test_adaptive_pooling(size: Any) -> None:
    """Means and maxima of parts."""
    compare(lambda x: F.adaptive_avg_pool2d(x, size), torch.randn(2, 3, 9, 10))
    compare(lambda x: F.adaptive_max_pool2d(x, size, return_indices=True), torch.randn(2, 3, 9, 10))


def test_products() -> None:
    """mm, addmm, bmm, baddbmm, linear and matmul, on views of all kinds."""
    a, b, c = torch.randn(5, 7), torch.randn(7, 6), torch.randn(5, 6)
    compare(lambda a, b: a @ b, a, b)
    compare(lambda a, b: b.t() @ a.t(), a, b)
    compare(lambda a, b: a[1:4, ::2] @ b[::2], a, b)
    compare(lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), a, b, c)
    compare(lambda a, b, c: torch.addmm(c, a, b, beta=0), a, b, torch.full_like(c, torch.nan))
    compare(lambda a, b, c: F.linear(a, b.t(), c[0]), a, b, c)
    compare(lambda a, c: torch.addmm(c[:, :1], a, a.t()), torch.randn(5, 7), torch.randn(5, 6))
    x, y, z = torch.randn(3, 4, 5), torch.randn(3, 5, 2), torch.randn(3, 4, 2)
    compare(torch.bmm, x, y)
    compare(torch.bmm, torch.randint(-9, 9, (3, 4, 5)), torch.randint(-9, 9, (3, 5, 2)))
    compare(torch.bmm, x.double(), y.double())
    compare(lambda x, y: torch.bmm(y.transpose(1, 2), x.transpose(1, 2)), x, y)
    compare(lambda x, y: torch.bmm(x.transpose(0, 1).reshape(4, 3, 5).transpose(0, 1), y), x, y)
    compare(lambda x, y, z: torch.baddbmm(z, x, y, beta=2, alpha=0.5), x, y, z)
    compare(lambda x, y: x[:, None] @ y[None], x, y)
    compare(lambda a: a @ a[0], a)
    compare(lambda a, b: a[:, :0] @ b[:0], a, b)
    compare(lambda a, b, c: torch.addmm(c, a[:, :0], b[:0]), a, b, c)
    compare(lambda a, b: a[:0] @ b, a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_products(dtype: torch.dtype) -> None:
    """Sums are in float."""
    a, b = torch.randn(17, 33).to(dtype), torch.randn(33, 9).to(dtype)
    compare(lambda a, b: a @ b, a, b, tolerance=2e-2)
    compare(
        lambda x, w: F.conv2d(x, w, padding=1),
        torch.randn(2, 4, 6, 7).to(dtype),
        torch.randn(5, 4, 3, 3).to(dtype),
        tolerance=4e-2,
    )


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax(function: Callable[..., torch.Tensor], dim: int) -> None:
    """Along each dimension, of views, with another type of result, and without dimensions."""
    x = torch.randn(4, 5, 6)
    compare(lambda x: function(x, dim), x)
    compare(lambda x: function(x.transpose(0, 2)[1:], dim), x)
    compare(lambda x: function(x, dim, dtype=torch.float32), x.half(), tolerance=2e-3)
    compare(lambda x: function(x, 0), torch.randn(()))
    compare(lambda x: function(x[:0], dim), x)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(reduction: str, weighted: bool) -> None:
    """Of rows and of images, with weights and ignored labels."""
    weight = torch.rand(5) + 0.1
    for shape, labels in (((6, 5), (6,)), ((2, 5, 3, 4), (2, 3, 4)), ((5,), ())):
        x, t = torch.randn(shape), torch.randint(0, 5, labels)
        if labels:
            t.view(-1)[1] = -100
        compare(lambda x, t, w: F.nll_loss(x, t, w.detach() if weighted else None, reduction=reduction), x, t, weight)
    compare(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), torch.randn(6, 5), torch.randint(0, 5, (6,)))
    none = torch.full((6,), -100)
    compare(lambda x, t: F.nll_loss(x, t, reduction="sum"), torch.randn(6, 5), none)


def test_label_out_of_range() -> None:
    """Raised when the program next waits, with the operator."""
    loss = F.nll_loss(torch.randn(4, 5).ocl(), torch.tensor([0, 1, 9, 2]).ocl())
    with pytest.raises(IndexError, match="NLLLoss"):
        loss.item()
    assert (torch.ones(2, device="ocl") + 1).tolist() == [2, 2]


def test_cat() -> None:
    """Of views, of several types, and with empty tensors."""
    a, b = torch.randn(2, 3), torch.randn(2, 5)
    compare(lambda a, b: torch.cat([a, b], 1), a, b)
    compare(lambda a, b: torch.cat([a.t(), b.t()[::2]]), a, b)
    compare(lambda a, b: torch.cat([a, b.long()], -1), a, torch.randint(0, 5, (2, 5)))
    compare(lambda a: torch.cat([a, torch.ones(0, device=a.device), a[:0]]), a)
    compare(lambda a: torch.stack([a, a, a], 1), a)
    out = torch.zeros(3, 8, device="ocl")
    torch.cat([a.ocl(), b.ocl()], 1, out=out[:2])
    assert torch.equal(out[:2].cpu(), torch.cat([a, b], 1)) and out[2].sum().item() == 0
