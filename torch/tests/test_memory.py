# SPDX-License-Identifier: MIT
"""Memory: what torch.ocl and torch.accelerator tell of it, what is kept for later, and what a step needs."""

from __future__ import annotations

import gc

import pytest
import torch
from programs import busy, ever

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


# PyTorch pins for CUDA alone where it has both devices, except in Tensor.pin_memory().
PINS_FOR_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="this PyTorch pins for CUDA")


@PINS_FOR_CUDA
def test_pinned_is_told() -> None:
    """Tensors in pinned memory and views of them are told from others, and memory that is freed from memory in use."""
    x = torch.arange(1000.0)
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned[500:].is_pinned()
    assert not x.is_pinned()
    assert torch.equal(pinned, x)
    assert torch.empty(0).pin_memory().numel() == 0
    address = pinned.data_ptr()
    del pinned
    again = torch.empty(1000, pin_memory=True)
    assert again.is_pinned()
    assert again.data_ptr() == address  # blocks are used again
    del again
    torch.ocl.empty_cache()


def test_pinned_copies_do_not_wait() -> None:
    """With non_blocking, whatever their size, and also where the program lets go of the memory at once."""
    count = 20 * MIB  # more than what is copied by way of memory of the host otherwise
    target = torch.empty(count, device="ocl")
    back = torch.zeros(count).pin_memory()
    busy(20).cpu()

    def copies_beside(products: int) -> bool:
        source = torch.arange(count, dtype=torch.float32).pin_memory()  # let go of at the end
        busy(products)
        target.copy_(source, non_blocking=True)
        back.copy_(target, non_blocking=True)
        return not torch.ocl.current_stream().query()

    assert ever(copies_beside)
    torch.empty(count).pin_memory().fill_(7)  # which must not be the memory that is still read
    torch.ocl.synchronize()
    assert torch.equal(back, torch.arange(count, dtype=torch.float32))


@PINS_FOR_CUDA
def test_pinned_to_the_host() -> None:
    """What to() makes with non_blocking is pinned, and holds the values when the device is done."""
    x = torch.arange(6.0, device="ocl").view(2, 3)
    for tensor in (x, x.t(), x[:, :2]):
        found = tensor.to("cpu", non_blocking=True)
        torch.ocl.synchronize()
        assert found.is_pinned()
        assert found.tolist() == tensor.tolist()


def test_pinned_copies_that_wait() -> None:
    """Without non_blocking the program may write to the memory at once; other types and gaps are copied as ever."""
    source = torch.ones(1 << 20).pin_memory()
    busy(20)
    target = source.to("ocl")
    source.fill_(2)
    assert target.min().item() == target.max().item() == 1
    halves = torch.empty(1 << 20, device="ocl", dtype=torch.float16).copy_(source, non_blocking=True)
    gaps = torch.zeros(2, 1 << 20, device="ocl").t()[:, 0].copy_(source, non_blocking=True)
    assert halves.min().item() == gaps.min().item() == 2


def test_pinned_batches() -> None:
    """A DataLoader's."""
    loader = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, pin_memory=True)
    batches = list(loader)
    assert all(batch.is_pinned() for batch in batches)
    assert [batch.to("ocl", non_blocking=True).tolist() for batch in batches] == [[0, 1], [2, 3]]
