# SPDX-License-Identifier: MIT
"""Optimizers on the device: foreach, which is their default there, and fused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

SHAPES = [(3, 4), (5,), (1,), (2, 3, 2, 2)]

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, lr=0.1),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "maximize": partial(torch.optim.SGD, lr=0.1, momentum=0.9, dampening=0.1, maximize=True),
    "adam": partial(torch.optim.Adam, lr=1e-2),
    "adam_decay": partial(torch.optim.Adam, lr=1e-2, weight_decay=1e-2, amsgrad=True),
    "adamw": partial(torch.optim.AdamW, lr=1e-2, betas=(0.8, 0.99)),
    "adagrad": partial(torch.optim.Adagrad, lr=1e-1, lr_decay=1e-2, weight_decay=1e-2),
    "rmsprop": partial(torch.optim.RMSprop, lr=1e-2, momentum=0.5, centered=True),
}
FUSED = ["sgd", "momentum", "maximize", "adam", "adam_decay", "adamw", "adagrad"]


def trained(device: str, dtype: torch.dtype, make: Callable[..., Any], steps: int = 4) -> list[torch.Tensor]:
    """Parameters after some steps with gradients that are the same everywhere."""
    torch.manual_seed(0)
    params = [torch.randn(shape).to(device, dtype).requires_grad_() for shape in SHAPES]
    params[-1] = params[-1].detach().to(memory_format=torch.channels_last).requires_grad_()
    optimizer = make(params)
    for _ in range(steps):
        for param, shape in zip(params, SHAPES, strict=True):
            param.grad = torch.randn(shape).to(device, dtype)
        params[-1].grad = params[-1].grad.contiguous(memory_format=torch.channels_last)  # type: ignore[union-attr]
        optimizer.step()
    return [param.detach().cpu() for param in params]


def compare(make: Callable[..., Any], **how: bool) -> None:
    """The device's steps beside those of the CPU in double, tensor by tensor."""
    expected = trained("cpu", torch.float64, partial(make, foreach=False))
    for ours, wanted in zip(trained("ocl", torch.float32, partial(make, **how)), expected, strict=True):
        torch.testing.assert_close(ours.double(), wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_foreach(name: str) -> None:
    """By lists of tensors, without falling back."""
    compare(OPTIMIZERS[name])


@pytest.mark.parametrize("name", FUSED)
def test_fused(name: str) -> None:
    """In one kernel."""
    compare(OPTIMIZERS[name], fused=True)


def test_fused_with_scaler() -> None:
    """A step with an infinity changes nothing, and the next one does."""
    w = torch.ones(3, device="ocl", requires_grad=True)
    b = torch.ones(2, device="ocl", requires_grad=True)
    optimizer = torch.optim.Adam([w, b], lr=0.5, fused=True)
    scaler = torch.amp.GradScaler("ocl", init_scale=8.0)
    for factor, moved in ((float("inf"), False), (1.0, True)):
        optimizer.zero_grad()
        scaler.scale((w * torch.tensor([factor, 1, 2], device="ocl")).sum() + b.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert ((w != 1).all().item(), (b != 1).all().item()) == (moved, moved)
    torch.testing.assert_close(w.detach().cpu(), torch.full((3,), 0.5))


def test_clipping() -> None:
    """The norm over all gradients, and gradients that are scaled by it."""
    params = [torch.zeros(shape, requires_grad=True) for shape in SHAPES]
    for param in params:
        param.grad = torch.randn_like(param)
    ours = [param.detach().ocl().requires_grad_() for param in params]
    for mine, theirs in zip(ours, params, strict=True):
        mine.grad = theirs.grad.ocl()  # type: ignore[union-attr]
    for foreach in (None, False):
        wanted = torch.nn.utils.clip_grad_norm_(params, 0.5)
        found = torch.nn.utils.clip_grad_norm_(ours, 0.5, foreach=foreach)
        torch.testing.assert_close(found.cpu(), wanted)
        for mine, theirs in zip(ours, params, strict=True):
            torch.testing.assert_close(mine.grad.cpu(), theirs.grad)  # type: ignore[union-attr]


def test_state_is_saved() -> None:
    """An optimizer goes on from its saved state as if nothing had been saved."""
    model = torch.nn.Linear(3, 2).ocl()
    x = torch.randn(4, 3).ocl()

    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    step(model, optimizer)
    other = copy.deepcopy(model)
    again = torch.optim.AdamW(other.parameters(), lr=0.1, fused=True)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    step(model, optimizer)
    step(other, again)
    for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine.detach().cpu(), theirs.detach().cpu())
