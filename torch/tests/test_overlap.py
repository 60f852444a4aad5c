# SPDX-License-Identifier: MIT
"""Tensors whose elements are the same memory, and operands that overlap: what PyTorch refuses is refused as it does."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch

Work = Callable[[torch.Tensor], object]
SHAPE = (3, 4)


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Ones on the device."""
    return torch.ones(*shape, dtype=dtype, device="ocl")


def rows() -> torch.Tensor:
    """The indices of two rows."""
    return torch.tensor([0, 1], device="ocl")


WRITERS: dict[str, Work] = {
    "add_": lambda x: x.add_(1),
    "copy_": lambda x: x.copy_(ones(3, 4)),
    "copy_ of the CPU": lambda x: x.copy_(torch.ones(3, 4)),
    "masked_scatter_": lambda x: x.masked_scatter_(ones(3, 4, dtype=torch.bool), ones(12)),
    "index_add_": lambda x: x.index_add_(0, rows(), ones(2, 4)),
    "index_copy_": lambda x: x.index_copy_(0, rows(), ones(2, 4)),
    "scatter_": lambda x: x.scatter_(0, torch.zeros_like(x, dtype=torch.long), ones(3, 4)),
    "put_": lambda x: x.put_(torch.tensor([0], device="ocl"), ones(1)),
    "normal_": lambda x: x.normal_(),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "addmm_": lambda x: x.addmm_(ones(3, 2), ones(2, 4)),
    "cumsum_": lambda x: x.cumsum_(0),
    "renorm_": lambda x: x.renorm_(2, 0, 1.0),
    "mm": lambda x: torch.mm(ones(3, 2), ones(2, 4), out=x),
    "add": lambda x: torch.add(ones(3, 4), 1, out=x),
    "sum": lambda x: torch.sum(ones(2, 3, 4), 0, out=x),
    "softmax": lambda x: torch.softmax(ones(3, 4), 0, out=x),
    "sort": lambda x: torch.sort(ones(3, 4), out=(x, torch.zeros(3, 4, dtype=torch.long, device="ocl"))),
    "index_select": lambda x: torch.index_select(ones(3, 4), 0, torch.arange(3, device="ocl"), out=x),
    "take": lambda x: torch.take(ones(3, 4), torch.zeros(3, 4, dtype=torch.long, device="ocl"), out=x),
    "_foreach_add_": lambda x: torch._foreach_add_([x], 1),
}


@pytest.mark.parametrize("name", WRITERS)
def test_written_elements_share_memory(name: str) -> None:
    """Expanded tensors, and views whose rows overlap, are not written to."""
    expanded = torch.zeros(3, 1, device="ocl").expand(SHAPE)
    overlapping = torch.zeros(8, device="ocl").as_strided(SHAPE, (1, 1))
    for target in (expanded, overlapping):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            WRITERS[name](target)
    assert not overlapping.any() and not expanded.any()


@pytest.mark.fallback
def test_fallback_writes_to_expanded() -> None:
    """An operator that runs on the CPU, whose copies do not show it, refuses them, too."""
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.linalg.inv(torch.eye(3, device="ocl"), out=torch.zeros(3, 1, device="ocl").expand(3, 3))


def test_fill_of_expanded() -> None:
    """The same number everywhere has one meaning."""
    base = torch.zeros(3, 1, device="ocl")
    base.expand(SHAPE).fill_(2)
    assert base.tolist() == [[2], [2], [2]]
    base.expand(SHAPE).zero_()
    assert base.tolist() == [[0], [0], [0]]


DEPRECATED: dict[str, Callable[[torch.Tensor, str], object]] = {
    "masked_fill_": lambda x, device: x.masked_fill_(torch.eye(3, 4, device=device).bool(), 2),
    "index_fill_": lambda x, device: x.index_fill_(0, torch.tensor([0, 2], device=device), 5),
    "index_put_": lambda x, device: x.index_put_(
        (torch.tensor([0, 1], device=device),), torch.ones(2, 4, device=device), accumulate=True
    ),
}


@pytest.mark.fallback
@pytest.mark.parametrize("name", DEPRECATED)
def test_deprecated_writes_to_expanded(name: str) -> None:
    """Three operators that PyTorch lets write to expanded tensors give what the CPU gives."""
    on_cpu, on_ocl = torch.zeros(3, 1), torch.zeros(3, 1, device="ocl")
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        DEPRECATED[name](on_cpu.expand(SHAPE), "cpu")
        DEPRECATED[name](on_ocl.expand(SHAPE), "ocl")
    assert on_ocl.tolist() == on_cpu.tolist()


PARTS: dict[str, Work] = {
    "add_": lambda x: x[:4].add_(x[2:6]),
    "copy_": lambda x: x[:4].copy_(x[2:6]),
    "copy_ of the transpose": lambda x: x[:9].view(3, 3).copy_(x[:9].view(3, 3).t()),
    "lerp_": lambda x: x[:4].lerp_(x[2:6], 0.5),
    "cumsum": lambda x: torch.cumsum(x[:4], 0, out=x[2:6]),
    "sum": lambda x: torch.sum(x[:8].view(2, 4), 0, out=x[2:6]),
    "cat": lambda x: torch.cat([x[:2], x[2:4]], out=x[:4]),
    "gather": lambda x: torch.gather(x, 0, torch.arange(9, device="ocl"), out=x),
    "index_select": lambda x: torch.index_select(x, 0, torch.arange(9, device="ocl"), out=x),
    "take": lambda x: torch.take(x, torch.arange(9, device="ocl"), out=x),
    "index_put_": lambda x: x.index_put_((torch.arange(4, device="ocl"),), x[2:6]),
    "put_": lambda x: x.put_(torch.tensor([0, 1], device="ocl"), x[2:4]),
}


@pytest.mark.parametrize("name", PARTS)
def test_operands_that_overlap(name: str) -> None:
    """What is written and what is read do not share a part of their elements."""
    x = torch.arange(9.0, device="ocl")
    with pytest.raises(RuntimeError, match="input tensor and the written-to tensor refer to a single memory"):
        PARTS[name](x)
    assert torch.equal(x.cpu(), torch.arange(9.0))


def test_operands_that_are_one() -> None:
    """The same elements may be read and written, and products are made as if the result were new."""
    x = torch.arange(4.0, device="ocl").view(2, 2)
    expected = x.cpu() @ x.cpu()
    torch.mm(x, x, out=x)
    assert torch.equal(x.cpu(), expected)
    x.add_(x)
    assert torch.equal(x.cpu(), expected * 2)
