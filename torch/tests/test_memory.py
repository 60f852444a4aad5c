# SPDX-License-Identifier: MIT
"""Memory: what torch.ocl and torch.accelerator tell of it, what is kept for later, and what a step needs."""

from __future__ import annotations

import gc

import pytest
import torch

MIB = 2**20


def test_statistics() -> None:
    """Bytes of tensors, their peak, and those that are kept."""
    gc.collect()
    torch.ocl.empty_cache()
    before = torch.ocl.memory_allocated()
    x = torch.ones(4 * MIB, device="ocl")
    y = x + 1
    used = torch.ocl.memory_allocated()
    assert used - before >= 32 * MIB
    torch.ocl.reset_peak_memory_stats()
    del y
    assert torch.ocl.max_memory_allocated() >= used
    assert torch.ocl.memory_allocated() < used
    assert torch.ocl.memory_reserved() >= used
    del x
    torch.ocl.empty_cache()
    assert torch.ocl.memory_reserved() < used
    torch.ocl.reset_peak_memory_stats()
    assert torch.ocl.max_memory_reserved() == torch.ocl.memory_reserved()
    free, total = torch.ocl.mem_get_info()
    assert 0 < free <= total
    assert torch.accelerator.memory_allocated() == torch.ocl.memory_allocated()


def test_blocks_are_used_again() -> None:
    """After two steps nothing is allocated from the driver, compiled, or waited for."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).ocl()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    x, t = torch.randn(16, 32), torch.randint(0, 8, (16,))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.ocl()), t.ocl()).backward()
        optimizer.step()

    for _ in range(3):
        step()
    before = torch.ocl.counters()
    for _ in range(3):
        step()
    after = torch.ocl.counters()
    for what in ("compiles", "allocations", "waits"):
        assert after[what] == before[what], what


def test_out_of_memory() -> None:
    """The exception that CUDA's users know, with the bytes that were wanted."""
    _, total = torch.ocl.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(total, device="ocl") + 1
    assert (torch.ones(2, device="ocl") + 1).tolist() == [2, 2]
