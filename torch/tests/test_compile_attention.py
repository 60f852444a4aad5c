# SPDX-License-Identifier: MIT
"""Blocks of transformers by torch.compile: one forward and one backward function each, with the numbers of eager calls.

On CPUs PyTorch makes products of attention; test_as_on_gpus() runs this file where it is one operator.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dlprim_torch import _regions

WIDTH, HEADS, LENGTH = 32, 4, 12
FUSED = "wide_vectors=0" in os.environ.get("DLPRIM_TRAITS", "")


class Block(nn.Module):
    """A block of GPT-2, of BERT (its norms behind the sums) or, with fewer keys than queries, of Llama."""

    def __init__(self, dropout: float = 0, groups: int = HEADS, norm_first: bool = True, **attention: Any) -> None:
        super().__init__()
        self.groups, self.norm_first, self.options, self.p = groups, norm_first, attention, dropout
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.into = nn.Linear(WIDTH, WIDTH + 2 * groups * WIDTH // HEADS)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.inner, self.outer = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        heads = self.into(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
        parts = heads.split([HEADS, self.groups, self.groups], 1)
        options = self.options | {"enable_gqa": True} if self.groups < HEADS else self.options
        y = F.scaled_dot_product_attention(*parts, mask, self.p if self.training else 0.0, **options)
        return torch.as_tensor(self.dropout(self.out(y.transpose(1, 2).flatten(2))))

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.dropout(self.outer(F.gelu(self.inner(x), approximate="tanh"))))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if self.norm_first:
            x = x + self.attend(self.norms[0](x), mask)
            return torch.as_tensor(x + self.feed(self.norms[1](x)))
        x = self.norms[0](x + self.attend(x, mask))
        return torch.as_tensor(self.norms[1](x + self.feed(x)))


class Images(nn.Module):
    """A block of ViT, by PyTorch's module."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(WIDTH), nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        y = self.norm(x)
        return torch.as_tensor(x + self.attention(y, y, y, need_weights=False)[0])


def padding() -> torch.Tensor:
    """Which words are there: of the second text not all."""
    there = torch.ones(3, 1, 1, LENGTH, dtype=torch.bool)
    there[1, ..., 7:] = False
    return there


BLOCKS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor | None]] = {
    "gpt2": (lambda: Block(is_causal=True), None),
    "gpt2 with dropout": (lambda: Block(0.3, is_causal=True), None),
    "bert": (lambda: Block(norm_first=False), padding()),
    "bert with dropout": (lambda: Block(0.3, norm_first=False), torch.where(padding(), 0.0, -1e9)),
    "vit": (Images, None),
    "grouped": (lambda: Block(groups=2, is_causal=True), None),
    "grouped with dropout": (lambda: Block(0.3, groups=2), padding()),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two functions, whose results and gradients are those of eager calls, with the same elements dropped."""
    torch.compiler.reset()
    torch.ocl.reset_fallbacks()
    torch.manual_seed(0)
    make, given = BLOCKS[name]
    model = make().to(dtype).ocl()
    mask = None if given is None else (given if given.dtype == torch.bool else given.to(dtype)).ocl()
    x = torch.randn(3, LENGTH, WIDTH).to(dtype).ocl().requires_grad_()
    regions: list[set[str]] = []

    class Counted(_regions.Region):
        def __init__(self, module: torch.fx.GraphModule, *others: Any) -> None:
            super().__init__(module, *others)
            regions.append({str(node.target) for node in module.graph.nodes})

    monkeypatch.setattr(_regions, "Region", Counted)
    found = []
    for call in (model, torch.compile(model, backend="dlprim", fullgraph=True)):
        torch.ocl.manual_seed(2**40 + 5)
        for _ in range(2):  # other numbers are drawn in the second step
            model.zero_grad()
            x.grad = None
            y = call(x, mask)
            y.backward(torch.sin(y.detach()))
        found.append([y.detach(), x.grad, *(parameter.grad for parameter in model.parameters())])
    bound = 1e-5 if dtype == torch.float32 else 2e-2
    for wanted, made in zip(*found, strict=True):
        assert made.dtype == wanted.dtype == dtype
        torch.testing.assert_close(made.cpu(), wanted.cpu(), rtol=bound, atol=bound * float(wanted.abs().max()) + 1e-6)
    assert len(regions) == 2 and torch.ocl.fallbacks() == {}
    assert all(any("fused_attention" in target for target in region) == FUSED for region in regions)


def test_several_that_draw() -> None:
    """Where what draws stands on both sides of an operator without a form, it draws in the order of eager calls."""

    def model(x: torch.Tensor) -> torch.Tensor:
        y = F.dropout(x, 0.5) * 2
        z = F.dropout(y.diagonal(0, -2, -1).exp(), 0.5)
        return z + F.scaled_dot_product_attention(x, x, x, dropout_p=0.3).mean()

    x = torch.randn(1, 4, 8, 16).ocl()
    for last in (model, lambda x: model(x) + torch.randint_like(x[..., 0], 5)):
        found = []
        for call in (last, torch.compile(last, backend="dlprim")):
            torch.ocl.manual_seed(7)
            found.append([call(x).cpu() for _ in range(3)])
        torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(FUSED, reason="it is")
def test_as_on_gpus() -> None:
    """The same where attention is one operator, as on GPUs."""
    environment = os.environ | {"DLPRIM_TRAITS": "wide_vectors=0"}
    root = pathlib.Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "pytest", "-c", str(root / "torch/pyproject.toml"), "-q", __file__]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]
