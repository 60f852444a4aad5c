# SPDX-License-Identifier: MIT
"""What ranks of the distributed tests compute with: numbers of each, and sums of them."""

from __future__ import annotations

import torch
from torch import distributed

Tensor = torch.Tensor
SIZE = 2  # ranks of a test that says nothing else


def values(rank: int, count: int = 1001, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers of a rank, on the CPU."""
    generator = torch.Generator().manual_seed(rank)
    if dtype.is_floating_point:
        return torch.randn(count, generator=generator).to(dtype)
    return torch.randint(-50, 50, (count,), generator=generator).to(dtype)


def same_bits(results: list[Tensor]) -> bool:
    """Whether all ranks have the same bits."""
    return all(torch.equal(results[0].view(torch.uint8), result.view(torch.uint8)) for result in results)


def mine(count: int = 1001, dtype: torch.dtype = torch.float32) -> Tensor:
    """This rank's numbers on the device."""
    return values(distributed.get_rank(), count, dtype).to("ocl")


def reduced(name: str, dtype: torch.dtype, count: int) -> Tensor:
    """A rank's part of test_all_reduce."""
    x = mine(count, dtype)
    distributed.all_reduce(x, getattr(distributed.ReduceOp, name))
    return x.cpu()
