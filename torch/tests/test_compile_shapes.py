# SPDX-License-Identifier: MIT
"""torch.compile for other sizes, modes and models that change, and what is compiled again."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dlprim_torch import _region, _regions


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Every test compiles anew, and counts its own fallbacks."""
    torch.compiler.reset()
    torch.ocl.reset_fallbacks()
    yield
    torch.compiler.reset()


class Counted:
    """A compiled model, whose graphs are counted."""

    def __init__(self, model: nn.Module, **options: object) -> None:
        self.model, self.graphs = model, 0

        def counting(module: torch.fx.GraphModule, examples: object) -> object:
            self.graphs += 1
            return torch._dynamo.lookup_backend("dlprim")(module, examples)

        self.call = torch.compile(model, backend=counting, **options)  # type: ignore[call-overload]

    def step(self, x: torch.Tensor) -> None:
        """A step, whose result and gradients are those of eager calls."""
        found = []
        for call in (self.call, self.model):
            y = call(x)
            found.append([y.detach(), *torch.autograd.grad(y.sin().sum(), list(self.model.parameters()))])
        for made, wanted in zip(*found, strict=True):
            torch.testing.assert_close(made.cpu(), wanted.cpu(), rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))


def compiles() -> int:
    return int(torch.ocl.counters()["compiles"])


class Text(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.into, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (z.unflatten(-1, (4, 8)).transpose(1, 2) for z in self.into(self.norm(x)).chunk(3, -1))
        return x + torch.as_tensor(self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))


def test_lengths() -> None:
    """Texts of other lengths need no other graph, and no kernel that another length has not needed."""
    model = Counted(Text().ocl(), dynamic=True, fullgraph=True)
    for length in (24, 40):
        model.step(torch.randn(2, length, 32).ocl())
    before = model.graphs, compiles()
    for length in (48, 56, 72):
        model.step(torch.randn(2, length, 32).ocl())
    assert (model.graphs, compiles()) == before
    assert torch.ocl.fallbacks() == {}


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes(mode: str) -> None:
    """Every mode is the one that there is."""
    model = nn.Linear(4, 3).ocl()
    x = torch.randn(5, 4).ocl()
    torch.testing.assert_close(torch.compile(model, mode=mode)(x).cpu(), model(x).cpu())
    assert torch.ocl.fallbacks() == {}


def test_reset() -> None:
    """What is compiled is dropped, and compiled anew for the next call without another kernel."""
    model = Counted(nn.Linear(4, 3).ocl())
    x = torch.randn(5, 4).ocl()
    model.step(x)
    before = compiles()
    torch.compiler.reset()
    model.step(x)
    assert model.graphs == 2 and compiles() == before


def test_changed_parameter() -> None:
    """A parameter that has another shape than before is compiled for again."""
    layer = nn.Linear(4, 3).ocl()
    model = Counted(layer)
    x = torch.randn(5, 4).ocl()
    model.step(x)
    layer.weight, layer.bias = nn.Parameter(torch.randn(6, 4).ocl()), nn.Parameter(torch.randn(6).ocl())
    model.step(x)
    assert model.graphs == 2


class Average(nn.Module):
    """A layer with a norm and a running average of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer = nn.BatchNorm1d(4), nn.Linear(4, 4)
        self.register_buffer("average", torch.zeros(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(self.norm(x))
        self.average.lerp_(y.detach().mean(0), 0.5)
        self.calls += 1
        return torch.as_tensor(y + self.average)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("learns", [True, False])
def test_changed_buffers(learns: bool, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers are written by the regions that compute them, or, where those cannot run, eagerly."""
    regions: list[_region.Region] = []

    class Counted(_region.Region):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            regions.append(self)
            if fails:
                self.give_up(RuntimeError("no engine"))

    monkeypatch.setattr(_regions, "Region", Counted)
    eager = Average().ocl()
    model = copy.deepcopy(eager)
    compiled = torch.compile(model, fullgraph=True)
    with torch.set_grad_enabled(learns):
        for _ in range(3):
            x = torch.randn(5, 4).ocl()
            y, wanted = compiled(x), eager(x)
            torch.testing.assert_close(y.cpu(), wanted.cpu(), rtol=1e-5, atol=1e-5)
            if learns:
                y.sin().sum().backward()
    for (name, made), buffer in zip(model.named_buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(made.cpu(), buffer.cpu(), rtol=1e-5, atol=1e-6, msg=name)
    assert sum(len(region.writes) for region in regions) == 5
    assert bool(torch.ocl.fallbacks()) == fails


def test_fullgraph() -> None:
    """A model that cannot be one graph is an error where one is asked for."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(model, fullgraph=True)(torch.ones(3).ocl())


def test_two_devices() -> None:
    """A tensor of the CPU among those of the device is PyTorch's error."""
    with pytest.raises(Exception, match="device"):
        torch.compile(lambda x, y: x + y, fullgraph=True)(torch.ones(3).ocl(), torch.ones(3))


def test_optimizer() -> None:
    """A compiled optimizer makes the steps of an eager one."""
    found = []
    for compiles_it in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(4, 3).ocl()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        step = torch.compile(optimizer.step) if compiles_it else optimizer.step
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(5, 4).ocl()).square().sum().backward()
            step()
        found.append([parameter.detach().cpu() for parameter in model.parameters()])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
