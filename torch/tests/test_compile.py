# SPDX-License-Identifier: MIT
"""torch.compile(model, backend="dlprim") beside eager calls, and training steps beside float64."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from dlprim_torch import _forms, _graph, _region


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
    """What has no form runs eagerly between regions, and is named; what draws numbers draws those of eager calls."""

    def model(x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.dropout(torch.relu(x @ x.T), 0.5)
        return torch.relu(y.diagonal() - 1)

    compiled = torch.compile(model, backend="dlprim", fullgraph=True)
    x = torch.randn(5, 20).ocl()
    results = []
    for call in (compiled, model):
        torch.manual_seed(3)
        results.append(call(x).cpu())
    torch.testing.assert_close(results[0], results[1], rtol=1e-6, atol=1e-6)
    assert torch.ocl.fallbacks() == {"eager aten.diagonal.default": 1}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_drawn(dtype: torch.dtype) -> None:
    """Random numbers in a region are the bits of eager calls, step by step."""

    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = torch.empty_like(x[..., :1]).bernoulli_(0.7)
        return nn.functional.dropout(x, 0.2), kept, torch.rand_like(x), torch.randn_like(x), (x * kept).mT

    x = torch.randn(5, 40).to(dtype).ocl()
    found = []
    for call in (model, torch.compile(model, backend="dlprim", fullgraph=True)):
        torch.manual_seed(2**35 + 3)
        found.append([y.cpu() for _ in range(3) for y in call(x)])
    for wanted, made in zip(*found, strict=True):
        assert made.dtype == dtype and torch.equal(made, wanted)
    assert torch.ocl.fallbacks() == {}


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast(dtype: torch.dtype) -> None:
    """Convolutions and norms with float weights, whose gradients are those of float64 but for the type's rounding."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(256, 4))
    x = torch.randn(4, 3, 12, 12)
    exact = copy.deepcopy(model).double()
    exact(x.double()).sin().sum().backward()
    model.to("ocl")
    with torch.autocast("ocl", dtype):
        y = torch.compile(model)(x.to("ocl"))
    assert y.dtype == dtype
    y.float().sin().sum().backward()
    for (name, made), wanted in zip(model.named_parameters(), exact.parameters(), strict=True):
        assert made.grad is not None and wanted.grad is not None and made.grad.dtype == torch.float32
        off = (made.grad.cpu() - wanted.grad).abs().max() / (wanted.grad.abs().max() + 1)
        assert off < 16 * torch.finfo(dtype).eps, name
    assert not torch.ocl.fallbacks()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_one_rounding_of_a_chain(dtype: torch.dtype) -> None:
    """What only pointwise operators read is not rounded, also through views; what a product reads or returns is."""

    def model(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        product = x @ w
        # At 4096 a half has steps of 4: rounded there, the product would be lost.
        shifted = (product.view(2, 8, 8) * 1.5 + 4096).transpose(1, 2)
        near = shifted - 4096
        return near, product, near @ w, near.float() * 3

    torch.manual_seed(1)
    x, w = torch.randn(16, 8), torch.randn(8, 8) / 8
    with torch.autocast("ocl", dtype):
        near, product, second, wide = (y.cpu() for y in torch.compile(model, fullgraph=True)(x.ocl(), w.ocl()))
    wanted = (product.double().view(2, 8, 8) * 1.5).transpose(1, 2)
    eps = torch.finfo(dtype).eps
    assert (near.dtype, product.dtype, second.dtype, wide.dtype) == (dtype, dtype, dtype, torch.float32)
    assert (near - wanted).abs().max() < 2e-3 + 2 * eps
    assert (wide - 3 * wanted).abs().max() < 6e-3 + 8 * eps
    assert (second - wanted @ w.double()).abs().max() < 4e-3 + 8 * eps
    assert torch.ocl.fallbacks() == {}


def test_what_stays_rounded() -> None:
    """What depends on the type, numbers without dimensions, other devices, and results of their own."""

    def model(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scaled = n * 0.5
        large = torch.nan_to_num(x * 60000) * 0.5
        moved = (torch.arange(4, dtype=torch.float32).to(x.device) * x).cpu()
        float_ = x.float()
        return (
            large,
            scaled + 1,
            torch.where(x > 0, scaled, n),
            moved,
            float_,
            float_.half().float(),
            float_.half().float().t(),
        )

    x, n = torch.randn(4, 4).half(), torch.tensor(1.25).half()
    wanted = model(x, n)
    x, n = x.ocl(), n.ocl()
    made = torch.compile(model)(x, n)
    for one, other in zip(made, wanted, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        torch.testing.assert_close(one.cpu(), other)
    assert made[3].device.type == "cpu"
    assert len({y.data_ptr() for y in made[4:]}) == 3 and made[4].data_ptr() != x.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_precision(dtype: torch.dtype) -> None:
    """Products of 16 bits may round as those of eager calls; exported ones have the network's precision."""
    from torch.fx.experimental.proxy_tensor import make_fx

    operands = torch.ones(3, 4, dtype=dtype), torch.ones(4, 5, dtype=dtype)
    module = make_fx(lambda x, y: (torch.relu(x @ y),))(*operands)
    wanted = {torch.float32: None, torch.float16: "fp16", torch.bfloat16: "bf16"}[dtype]
    for keyed in (True, False):
        made = _graph.graph_of(module, operands, keyed=keyed).config["operators"]
        assert [entry.get("precision") for entry in made] == [wanted if keyed else None, None]


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


LAYERS: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "batch norm": (lambda: nn.BatchNorm2d(4), False),
    "batch norm without statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), False),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), False),
    "group norm": (lambda: nn.GroupNorm(2, 4), False),
    "convolution": (lambda: nn.Conv2d(4, 3, 3), False),
    "embedding": (lambda: nn.Embedding(10, 4), True),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_types(name: str, dtype: torch.dtype) -> None:
    """Results and gradients of layers whose weights have other types than float, in a region, beside eager ones."""
    make, whole = LAYERS[name]
    model = make().to(dtype).ocl()
    x = torch.randint(10, (3, 5)).ocl() if whole else torch.randn(3, 4, 6, 6).to(dtype).ocl().requires_grad_()
    weights = torch.randn(model(x).shape).to(dtype).ocl()
    taken = [*model.parameters(), *([] if whole else [x])]
    found = []
    for call in (torch.compile(model, backend="dlprim", fullgraph=True), model):
        y = call(x)
        found.append([y.detach(), *torch.autograd.grad(y, taken, weights)])
    bound = 1e-4 if dtype == torch.float32 else 4 * torch.finfo(dtype).eps
    for made, wanted in zip(*found, strict=True):
        assert made.dtype == wanted.dtype
        size = float(wanted.abs().max())
        torch.testing.assert_close(made.cpu(), wanted.cpu(), rtol=bound, atol=bound * size)
    assert torch.ocl.fallbacks() == {}


def at(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, device="ocl")


# Each with the sizes of its input.
GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "transposed convolution": (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), (2, 4, 5, 6)),
    "transposed convolution in groups": (nn.ConvTranspose1d(4, 6, 3, groups=2, bias=False), (2, 4, 9)),
    "convolution of lines": (nn.Conv1d(4, 6, 3, 2, 1), (2, 4, 9)),
    "convolution of volumes": (nn.Conv3d(2, 3, 3, padding=1), (2, 2, 4, 5, 6)),
    "batch norm by running statistics": (nn.BatchNorm2d(4).eval(), (3, 4, 5, 5)),
    "batch norm by them without weights": (nn.BatchNorm1d(4, affine=False).eval(), (3, 4)),
    "group norm": (nn.GroupNorm(2, 4), (3, 4, 5, 5)),
    "rms norm": (nn.RMSNorm(8), (3, 8)),
    "nearest": (nn.Upsample(scale_factor=2), (2, 3, 4, 5)),
    "nearest-exact": (lambda x: nn.functional.interpolate(x, (7, 9), mode="nearest-exact"), (2, 3, 4, 5)),
    "bilinear": (nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 4, 5)),
    "bilinear with corners": (nn.Upsample((7, 6), mode="bilinear", align_corners=True), (2, 3, 4, 5)),
    "trilinear": (nn.Upsample(scale_factor=2, mode="trilinear"), (2, 3, 3, 4, 5)),
    "bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), (2, 3, 4, 5)),
    "antialias": (lambda x: nn.functional.interpolate(x, (3, 4), mode="bilinear", antialias=True), (2, 3, 7, 9)),
    "reflection": (nn.ReflectionPad2d((1, 2, 2, 1)), (2, 3, 5, 6)),
    "replication": (nn.ReplicationPad1d(2), (2, 3, 5)),
    "circular": (nn.CircularPad2d(1), (2, 3, 4, 4)),
    "unfold": (nn.Unfold(3, padding=1), (2, 3, 5, 6)),
    "fold": (nn.Fold((5, 6), 3, padding=1), (2, 27, 30)),
    "grid": (
        lambda x: nn.functional.grid_sample(x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False),
        (2, 3, 4, 5),
    ),
    "mean of images by channels": (
        lambda x: nn.functional.adaptive_avg_pool2d(x.to(memory_format=torch.channels_last) * 2, 1),
        (2, 3, 4, 5),
    ),
    "other strides": (lambda x: x.contiguous().as_strided((5, 4, 6), (1, 5, 20)) * x.sum(), (2, 3, 4, 5)),
    "adaptive max pooling": (nn.AdaptiveMaxPool2d(2), (2, 3, 7, 7)),
    "glu": (nn.GLU(), (3, 8)),
    "label smoothing": (lambda x: nn.functional.cross_entropy(x, at(1, 0, 3), label_smoothing=0.1), (3, 8)),
    "weights of classes": (lambda x: nn.functional.cross_entropy(x, at(1, 0, 3), x.detach()[0].abs()), (3, 8)),
    "soft labels": (lambda x: nn.functional.cross_entropy(x, x.detach().flip(0).softmax(-1)), (3, 8)),
    "rows": (lambda x: x[at(0, 2, 2)], (3, 8)),
    "elements": (lambda x: x[:, at(0, 2, 2), at(1, 1, 1)], (3, 4, 5)),
    "elements apart": (lambda x: x[at(0, 2, 2), :, at(1, 1, 1)], (3, 4, 5)),
    "every second row": (lambda x: x[1::2] * x[:3:2], (4, 8)),
    "gather": (lambda x: x.gather(1, at(0, 1, 2, 2, 5, 5).view(3, 2)), (3, 8)),
    "scatter": (lambda x: torch.zeros_like(x).scatter(1, at(0, 1, 2, 3, 5, 4).view(3, 2), x[:, :2]), (3, 8)),
    "scatter_add": (lambda x: torch.ones_like(x).scatter_add(1, at(0, 1, 2, 2, 5, 4).view(3, 2), x[:, :2]), (3, 8)),
    "maximum": (lambda x: x.max(1)[0], (3, 8)),
    "products": (lambda x: x.cumprod(1), (3, 8)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    """Results and gradients in one region each, beside eager ones."""
    function, sizes = GRADIENTS[name]
    torch.manual_seed(0)
    if isinstance(function, nn.Module):
        function = copy.deepcopy(function).ocl()
    x = torch.randn(sizes).ocl().requires_grad_()
    taken = [x, *(function.parameters() if isinstance(function, nn.Module) else ())]
    found = []
    for call in (torch.compile(function, backend="dlprim", fullgraph=True), function):
        y = call(x)
        found.append([y.detach(), *torch.autograd.grad(y, taken, torch.sin(3 * y.detach()))])
    for made, wanted in zip(*found, strict=True):
        torch.testing.assert_close(made.cpu(), wanted.cpu(), rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))
    assert not [name for name in torch.ocl.fallbacks() if "_to_copy" not in name]


def test_strides() -> None:
    """Results have the strides of eager calls, on which views behind a break in the graph, or of callers, rely."""

    def model(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2).relu()
        torch._dynamo.graph_break()
        return y.t().view(-1)

    x = torch.randn(4, 5).ocl().t()
    torch.testing.assert_close(torch.compile(model, backend="dlprim")(x).cpu(), model(x).cpu())
    image = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last).ocl()
    twice = torch.compile(lambda x: x.relu() * 2, backend="dlprim", fullgraph=True)
    assert twice(image).is_contiguous(memory_format=torch.channels_last)
    weight = torch.ones(1, device="ocl", requires_grad=True)
    kept = torch.compile(lambda x: (x * weight).relu(), backend="dlprim", fullgraph=True)(x)
    torch.testing.assert_close(kept.t().view(-1).cpu(), x.relu().t().reshape(-1).cpu())


def failing_form(b: Any, self: Any) -> Any:
    raise KeyError("no such option")


class FailingCalls:
    """A function that can be made and not called."""

    def __init__(self, *arguments: Any) -> None:
        pass

    def set_frame(self, **frame: Any) -> None:
        pass

    def __call__(self, inputs: Any) -> Any:
        raise NotImplementedError("no engine on this device can run it")


@pytest.mark.parametrize("fails", ["form", "plan", "call"])
def test_way_back(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be planned, or not run, runs eagerly and is named."""
    if fails == "form":
        monkeypatch.setitem(_forms.FORMS, "exp.default", failing_form)
    elif fails == "plan":
        monkeypatch.setitem(_forms.FORMS, "exp.default", lambda b: b.layer("Nonsense", [b.arguments(b.node)["self"]]))
    else:
        monkeypatch.setattr(
            _region, "_state", types.SimpleNamespace(module=lambda: types.SimpleNamespace(Function=FailingCalls))
        )
    compiled = torch.compile(lambda x: x.exp() - 1, backend="dlprim", fullgraph=True)
    x = torch.randn(3, 4)
    for _ in range(2):
        torch.testing.assert_close(compiled(x.ocl()).cpu(), x.exp() - 1)
    named = {"eager aten.exp.default": 1} | ({} if fails == "form" else {"eager aten.sub.Tensor": 1})
    assert torch.ocl.fallbacks() == named


def test_short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """That memory is short is an error: eager calls need more."""

    def short(self: Any, inputs: Any) -> Any:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(FailingCalls, "__call__", short)
    monkeypatch.setattr(
        _region, "_state", types.SimpleNamespace(module=lambda: types.SimpleNamespace(Function=FailingCalls))
    )
    with pytest.raises(torch.OutOfMemoryError):
        torch.compile(torch.exp, backend="dlprim")(torch.zeros(3, device="ocl"))


def test_options() -> None:
    """An option that the backend does not have is an error."""
    compiled = torch.compile(torch.relu, backend="dlprim", options={"speed": 3})
    with pytest.raises(Exception, match='"dlprim" of torch.compile has no options, and was given speed'):
        compiled(torch.zeros(3, device="ocl"))
