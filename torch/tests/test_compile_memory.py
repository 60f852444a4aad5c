# SPDX-License-Identifier: MIT
"""What compiled graphs save for backward, and checkpoints in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dlprim_torch import _compile


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Every test compiles anew, and counts its own fallbacks."""
    torch.compiler.reset()
    torch.ocl.reset_fallbacks()
    yield
    torch.compiler.reset()


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """For each forward graph that is compiled: the bytes of each tensor that it makes and saves, by its node's name."""
    found: list[dict[str, int]] = []
    original = _compile.compile_forward

    def counted(module: torch.fx.GraphModule, examples: Any) -> Any:
        made = original(module, examples)
        rows = [node for node in _compile.results_of(module) if node.meta.get("saved") and node.op != "placeholder"]
        found.append({node.name: node.meta["val"].nbytes for node in rows})
        return made

    monkeypatch.setattr(_compile, "compile_forward", counted)
    return found


class Gelu(nn.Module):
    """As GPT-2 of transformers writes it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


class Gated(nn.Module):
    """The second half of a block of Llama, its norm of plain operators."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6))
        return x + torch.as_tensor(self.down(F.silu(self.gate(y)) * self.up(y)))


def gradients(call: Any, model: nn.Module, x: torch.Tensor, seed: int = 5) -> list[torch.Tensor]:
    """Result and gradients of a step."""
    torch.ocl.manual_seed(seed)
    x = x.clone().requires_grad_()
    y = call(x)
    return [y.detach(), *torch.autograd.grad(y, [x, *model.parameters()], torch.sin(y.detach()))]


def assert_same(model: nn.Module, x: torch.Tensor) -> None:
    """A compiled step gives what an eager one gives."""
    found = [gradients(call, model, x) for call in (torch.compile(model, fullgraph=True), model)]
    for made, wanted in zip(*found, strict=True):
        torch.testing.assert_close(made.cpu(), wanted.cpu(), rtol=1e-5, atol=1e-5 * float(wanted.abs().max()) + 1e-6)
    assert torch.ocl.fallbacks() == {}


@pytest.mark.parametrize(
    ("make", "most"),
    [
        # Of floats: x, tanh, and gelu, which the product behind it reads.
        (lambda: nn.Sequential(nn.Linear(16, 64), Gelu(), nn.Linear(64, 16)), 3 * 64),
        # Both products, what the last one reads and the norm's result, whose root is one number.
        (lambda: Gated(16, 48), 3 * 48 + 16 + 1),
    ],
    ids=["gelu", "gated"],
)
def test_saved(make: Any, most: int, saved: list[dict[str, int]]) -> None:
    """Chains of pointwise operators are computed again, not saved."""
    rows = 6
    assert_same(make().ocl(), torch.randn(rows, 16).ocl())
    assert sum(saved[0].values()) <= 4 * rows * most, saved


def test_budget(saved: list[dict[str, int]]) -> None:
    """PyTorch's budget lets more be computed again, and no number be drawn twice."""
    first = nn.Sequential(nn.Linear(16, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64))
    model = nn.Sequential(first, nn.GELU(), nn.Dropout(0.4), nn.Linear(64, 16)).ocl()
    x = torch.randn(6, 16).ocl()
    for budget in (1.0, 0.5):
        torch.compiler.reset()
        with torch._functorch.config.patch(activation_memory_budget=budget):
            assert_same(model, x)
    whole, half = (sum(rows.values()) for rows in saved)
    assert half < whole, saved


class Checkpointed(nn.Module):
    """Layers that draw, computed again in backward."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.3), nn.Linear(64, 32), nn.Dropout(0.2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = checkpoint(self.layers, x, use_reentrant=False)
        return torch.as_tensor(checkpoint(self.layers, x + y, use_reentrant=False))


@pytest.mark.parametrize("reentrant", [False, True])
def test_eager_checkpoint(reentrant: bool) -> None:
    """What is computed again without torch.compile draws the same numbers, too."""
    layers = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.3)).ocl()
    found = []
    for call in (layers, lambda x: checkpoint(layers, x, use_reentrant=reentrant)):
        torch.ocl.manual_seed(5)
        x = torch.ones(6, 32).ocl().requires_grad_()
        call(x).sum().backward()
        assert x.grad is not None
        found.append(x.grad.cpu())
    assert torch.equal(*found)


def test_checkpoint(saved: list[dict[str, int]]) -> None:
    """A checkpoint keeps what it reads and the masks of dropout, a byte for each element, which stay those of eager."""
    rows = 6
    assert_same(Checkpointed().ocl(), torch.randn(rows, 32).ocl())
    masks = 2 * rows * (64 + 32)
    assert sum(saved[0].values()) <= masks + 4 * rows * 2 * 32, saved


def test_same_draws() -> None:
    """Equal expressions that draw are drawn one by one."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.randn_like(x) * x + torch.randn_like(x) * x

    x = torch.randn(4, 5).ocl()
    found = [gradients(call, nn.Identity(), x) for call in (torch.compile(model, fullgraph=True), model)]
    for made, wanted in zip(*found, strict=True):
        torch.testing.assert_close(made.cpu(), wanted.cpu(), rtol=1e-6, atol=1e-6)
