# SPDX-License-Identifier: MIT
"""torch.compile(model, backend="dlprim") beside eager calls, and training steps beside float64."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Every test compiles anew, and counts its own fallbacks."""
    torch.compiler.reset()
    torch.ocl.reset_fallbacks()
    yield
    torch.compiler.reset()


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 5))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2, groups=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )


class Words(nn.Module):
    """A block of a GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.norm, self.into, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 50)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        parts = [z.unflatten(-1, (4, 8)).transpose(1, 2) for z in self.into(self.norm(y)).split(32, -1)]
        attended = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return torch.as_tensor(self.out(y + attended.transpose(1, 2).flatten(2)).flatten(0, 1))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], torch.Tensor], int]] = {
    "perceptron": (perceptron, lambda batch: torch.randn(batch, 20), 1),
    "images": (images, lambda batch: torch.randn(batch, 3, 16, 16), 1),
    "words": (Words, lambda batch: torch.randint(50, (batch, 16)), 16),
}


def launches(work: Callable[[], Any]) -> int:
    before = torch.ocl.counters()["launches"]
    work()
    return torch.ocl.counters()["launches"] - before


def step(model: nn.Module, call: Callable[..., torch.Tensor], x: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
    """Loss, gradients and buffers of a training step."""
    model.zero_grad()
    loss = nn.functional.cross_entropy(call(x), labels)
    loss.backward()  # type: ignore[no-untyped-call]
    found = {name: parameter.grad for name, parameter in model.named_parameters()} | dict(model.named_buffers())
    return {"loss": loss.detach().cpu().double()} | {
        name: value.detach().cpu().double().clone() for name, value in found.items() if value is not None
    }


@pytest.mark.parametrize("name", MODELS)
def test_inference(name: str) -> None:
    """The results of eager calls, by fewer launches and without fallback; also for other batches."""
    make, inputs, _ = MODELS[name]
    model = make().ocl().eval()
    compiled = torch.compile(model, backend="dlprim", fullgraph=True)
    with torch.no_grad():
        for batch in (4, 9, 6, 4):
            x = inputs(batch).ocl()
            torch.testing.assert_close(compiled(x).cpu(), model(x).cpu(), rtol=1e-5, atol=1e-5)
        assert launches(lambda: compiled(x)) <= launches(lambda: model(x))
    assert torch.ocl.fallbacks() == {}


@pytest.mark.parametrize("name", MODELS)
def test_training(name: str) -> None:
    """Loss, gradients and running statistics of steps, against float64 on the CPU; also for another batch."""
    make, inputs, rows = MODELS[name]
    cpu = make()
    exact, ocl = copy.deepcopy(cpu).double(), copy.deepcopy(cpu).ocl()
    compiled = torch.compile(ocl, backend="dlprim", fullgraph=True)
    for batch in (4, 6):
        x, labels = inputs(batch), torch.randint(5, (batch * rows,))
        wanted = step(exact, exact, x.double() if x.is_floating_point() else x, labels)
        reference = step(cpu, cpu, x, labels)
        found = step(ocl, compiled, x.ocl(), labels.ocl())
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            size = max(float(value.abs().max()), 1e-30)
            error = float((found[key] - value).abs().max()) / size
            bound = max(1e-4, 2 * float((reference[key] - value).abs().max()) / size)
            assert error < bound, f"{key} of batch {batch}: {error}"
    assert torch.ocl.fallbacks() == {}


def test_changed_weights() -> None:
    """Packed weights follow what is written to parameters."""
    model = perceptron().ocl().eval()
    compiled = torch.compile(model, backend="dlprim")
    x = torch.randn(4, 20).ocl()
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x).cpu(), model(x).cpu(), rtol=1e-5, atol=1e-5)
            for parameter in model.parameters():
                parameter.add_(0.125)


def test_eager_between() -> None:
    """What draws numbers runs eagerly between regions, with the numbers of eager calls, and is named."""
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 5)).ocl()
    compiled = torch.compile(model, backend="dlprim", fullgraph=True)
    x = torch.randn(4, 20).ocl()
    results = []
    for call in (compiled, model):
        torch.manual_seed(3)
        results.append((call(x).detach().cpu(), launches(lambda call=call: call(x).sum().backward())))  # type: ignore[misc]
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-6, atol=1e-6)
    assert torch.ocl.fallbacks() == {"eager aten.native_dropout.default": 1}


def test_views_and_changed_inputs() -> None:
    """Strided inputs, outputs that are views or inputs, and inputs that the model writes."""

    def model(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y += x.T
        z = torch.relu(y) * 2
        return z.T, z[:2], x, z, y.sum()

    compiled = torch.compile(model, backend="dlprim", fullgraph=True)
    base, target = torch.randn(6, 4), torch.randn(2, 3)
    pairs = []
    for call in (compiled, model):
        x, y = base.ocl()[::2, ::2], target.clone().ocl()
        pairs.append(([t.cpu() for t in call(x, y)], y.cpu()))
    torch.testing.assert_close(pairs[0], pairs[1])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_within(reduction: str) -> None:
    """A loss in the graph has PyTorch's dimensions, none, and views of it one more."""
    labels = torch.tensor([0, 3, 1]).to("ocl")

    def loss(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(x, labels, reduction=reduction)

    x = torch.randn(3, 4).to("ocl").requires_grad_()
    loss(x).backward()  # type: ignore[no-untyped-call]
    wanted = x.grad
    for call, dims in ((loss, 0), (lambda x: loss(x)[None], 1)):
        x.grad = None
        made = torch.compile(call, backend="dlprim", fullgraph=True)(x)
        assert made.dim() == dims
        made.sum().backward()
        torch.testing.assert_close(x.grad, wanted)


def test_broken_graphs() -> None:
    """A model that Dynamo cuts in two."""

    def model(x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x)
        if x.sum() > 0:
            x = x * 2
        return x + 1

    compiled = torch.compile(model, backend="dlprim")
    for sign in (1, -1):
        x = sign * torch.rand(5)
        torch.testing.assert_close(compiled(x.ocl()).cpu(), model(x))


def test_options() -> None:
    """An option that the backend does not have is an error."""
    compiled = torch.compile(torch.relu, backend="dlprim", options={"speed": 3})
    with pytest.raises(Exception, match='"dlprim" of torch.compile has no options, and was given speed'):
        compiled(torch.zeros(3, device="ocl"))
