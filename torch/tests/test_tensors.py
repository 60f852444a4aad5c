# SPDX-License-Identifier: MIT
"""Tensors on the device: making, copying, viewing, resizing, printing, saving."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


def test_first_program() -> None:
    """What the issue begins with."""
    y = torch.ones(2, 3, device="ocl") + 1
    assert y.device == torch.device("ocl:0")
    assert y.tolist() == [[2, 2, 2], [2, 2, 2]]


@pytest.mark.parametrize("dtype", [*TYPES, torch.float64, torch.complex64, torch.complex128])
def test_copies(dtype: torch.dtype) -> None:
    """There and back again, as it lies and through views."""
    x = (torch.randn(5, 7, 3) * 3).to(dtype)
    y = x.to("ocl")
    assert torch.equal(y.cpu(), x)
    assert torch.equal(y.t_().cpu() if y.dim() == 2 else y.transpose(0, 2).cpu(), x.transpose(0, 2))
    assert torch.equal(y[1:, ::2].cpu(), x[1:, ::2])
    z = torch.zeros(7, 5, 3, dtype=dtype, device="ocl")
    z.transpose(0, 1).copy_(y)
    assert torch.equal(z.cpu(), x.transpose(0, 1))
    z[2:4] = 1
    expected = x.transpose(0, 1).clone()
    expected[2:4] = 1
    assert torch.equal(z.cpu(), expected)


@pytest.mark.parametrize("to", TYPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_conversions(dtype: torch.dtype, to: torch.dtype) -> None:
    """Between any two types, on the device."""
    x = torch.tensor([0, 1, 2, 3.5, 100], dtype=torch.float32).to(dtype)
    assert torch.equal(x.to("ocl").to(to).cpu(), x.to(to))


def test_large_integers() -> None:
    """Integers of 64 bits are exact."""
    x = torch.tensor([2**62 + 1, -(2**53) - 1, 7])
    y = x.to("ocl")
    assert torch.equal(y.cpu(), x)
    assert torch.equal((y + y.clone().fill_(1)).cpu(), x + 1)
    assert torch.full((2,), 2**62 + 3, device="ocl").tolist() == [2**62 + 3] * 2


def test_views_share_memory() -> None:
    """A write through a view shows in the tensor, also where the tensor holds an operator's result."""
    x = torch.ones(4, 6, device="ocl") + 1
    v = x.view(3, 8)
    v[1] = 7
    expected = torch.full((4, 6), 2.0)
    expected.view(3, 8)[1] = 7
    assert torch.equal(x.cpu(), expected)
    x.add_(1)
    assert torch.equal(v.cpu(), expected.view(3, 8) + 1)
    assert x.data_ptr() == v.data_ptr() and x[1].data_ptr() == x.data_ptr() + 24
    assert torch.equal(x.view(torch.int32).cpu(), x.cpu().view(torch.int32))


def test_resize_and_set() -> None:
    """Storages grow and keep their contents."""
    x = torch.arange(6.0).to("ocl")
    x.resize_(2, 5)
    assert x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    y = torch.empty(0, device="ocl")
    y.set_(x)
    assert y.data_ptr() == x.data_ptr()
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0


def test_printing() -> None:
    """As on the CPU, with the device."""
    torch.ocl.set_fallback_mode("")  # printing computes with doubles on the CPU
    assert repr(torch.ones(2, device="ocl")) == "tensor([1., 1.], device='ocl:0')"


def test_saving() -> None:
    """torch.save, pickle and deepcopy keep device and sharing."""
    x = torch.arange(6.0).to("ocl")
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.device == x.device and torch.equal(other.cpu(), x.cpu())
    file = io.BytesIO()
    torch.save({"x": x, "v": x[2:]}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["x"].device == x.device and torch.equal(loaded["v"].cpu(), x[2:].cpu())
    loaded["x"][2] = 9
    assert loaded["v"][0].item() == 9
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].device.type == "cpu"


def test_methods() -> None:
    """tensor.ocl() and module.ocl()."""
    assert torch.ones(2).ocl().is_ocl
    assert next(torch.nn.Linear(2, 2).ocl().parameters()).is_ocl


def test_copies_of_memory_that_changes() -> None:
    """The device gets what the CPU's tensor held at the call, though nobody waits for the copy."""
    x = torch.zeros(1000)
    copies = []
    for i in range(50):
        x.fill_(i)
        copies.append(x.to("ocl", non_blocking=i % 2 == 0))
    assert [copy[999].item() for copy in copies] == list(range(50))
    with torch.no_grad():
        for dtype in (torch.float16, torch.int64):
            moved = [torch.full((300, 300), float(i)).to("ocl", dtype) for i in range(20)]
            assert [m[299, 299].item() for m in moved] == list(range(20))
