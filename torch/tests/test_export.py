# SPDX-License-Identifier: MIT
"""Exported networks, run by the command dlprim_run, against PyTorch on the CPU."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy
import pytest
import torch
from networks import torchvision_models
from torch import nn
from torch.nn import functional as F

import dlprim_torch

BOUND = 1e-4  # of a tensor's scale


class Exported:
    """A network in a folder, and what dlprim_run makes of it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.net, self.weights = folder / "net.json", folder / "net.h5"
        self.folder = folder
        self.tool = pathlib.Path(os.environ.get("DLPRIM_TOOLS", "")) / "dlprim_run"
        if not self.tool.exists():
            pytest.skip("DLPRIM_TOOLS names no folder with dlprim_run")

    def export(self, model: nn.Module, inputs: Any, **options: Any) -> dict[str, Any]:
        """Exports a model and returns its JSON."""
        dlprim_torch.export(model, inputs, self.net, self.weights, **options)
        return json.loads(self.net.read_text())  # type: ignore[no-any-return]

    def run(self, feeds: dict[str, torch.Tensor], *options: str) -> dict[str, torch.Tensor]:
        """The outputs that dlprim_run writes."""
        source, made = self.folder / "in.h5", self.folder / "out.h5"
        with h5py.File(source, "w") as file:
            for name, tensor in feeds.items():
                file[name] = tensor.numpy()
        command = [self.tool, self.net, "-d", "cpu", "--weights", self.weights, "--inputs", source, "--outputs", made]
        done = subprocess.run([*map(str, command), *options], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        with h5py.File(made) as file:
            return {name: torch.from_numpy(numpy.array(file[name])) for name in file}

    def check(
        self, model: nn.Module, *inputs: torch.Tensor, others: Sequence[int] = (), **options: Any
    ) -> dict[str, Any]:
        """Compares a model with its network, also for other sizes of batches. Returns the network."""
        config = self.export(model, inputs, **options)
        names = [entry["name"] for entry in config["inputs"]]
        for batch in (inputs[0].shape[0], *others):
            given = [torch.cat([x] * batch)[:batch] for x in inputs]
            with torch.no_grad():
                wanted = torch.utils._pytree.tree_leaves(model(*given))
            found = self.run(dict(zip(names, given, strict=True)))
            for name, exact in zip(config["outputs"], wanted, strict=True):
                assert found[name].shape == exact.shape
                assert relative(found[name], exact) < BOUND, name
        return config


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest difference, over the largest magnitude."""
    return ((found.double() - exact.double()).abs().max() / exact.double().abs().max().clamp(min=1e-30)).item()


@pytest.fixture
def exported(tmp_path: pathlib.Path) -> Exported:
    """A network in a fresh folder."""
    return Exported(tmp_path)


class Encoder(nn.Module):
    """Embeddings and PyTorch's own transformer layers, as in BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.places = nn.Parameter(torch.randn(1, 12, 32))
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
        self.first = nn.Parameter(torch.randn(1, 1, 32))

    def forward(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.words(tokens) + self.places
        hidden = torch.cat([self.first.expand(tokens.shape[0], -1, -1), hidden], 1)
        hidden = self.layers(hidden)
        return {"states": hidden, "pooled": hidden[:, 0].tanh()}


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, 4, 8).transpose(1, 2) for t in self.qkv(self.norm(x)).split(width, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return x


class Decoder(nn.Module):
    """A small GPT-2, whose last product shares the table of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 50, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(hidden)))  # type: ignore[no-any-return]


def small_cnn(dropout: float = 0.3) -> nn.Sequential:
    """Convolutions, norms, pooling and activations."""
    norm = nn.BatchNorm2d(8)
    nn.init.normal_(norm.running_mean)  # type: ignore[arg-type]
    nn.init.uniform_(norm.running_var, 0.5, 2)  # type: ignore[arg-type]
    nn.init.uniform_(norm.weight)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), norm, nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=2),
        nn.GroupNorm(2, 8), nn.SiLU(), nn.Dropout(dropout), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
        nn.LogSoftmax(1),
    )  # fmt: skip


@pytest.mark.parametrize("batch", [1, 3])
def test_cnn(exported: Exported, batch: int) -> None:
    """A small network in evaluation mode, with any batch: parameters keep their names."""
    config = exported.check(small_cnn().eval(), torch.randn(batch, 3, 16, 16), others=[2, 5])
    assert config["operators"][0]["params"] == ["0.weight", "0.bias"]
    assert config["inputs"][0]["shape"] == [batch, 3, 16, 16]
    assert "Dropout" not in {entry["type"] for entry in config["operators"]}


def test_encoder(exported: Exported) -> None:
    """BERT's layers. Outputs are called as the model calls them."""
    config = exported.check(Encoder().eval(), torch.randint(0, 50, (2, 12)), others=[1, 3])
    assert config["outputs"] == ["states", "pooled"]
    types = [entry["type"] for entry in config["operators"]]
    assert types.count("Attention") == 2
    # Of each layer's many views one copy is left for query, key and value together, and one for what attention gives.
    assert types.count("Transpose") == 4


def test_decoder(exported: Exported) -> None:
    """GPT-2's layers. Tied weights are one dataset."""
    exported.check(Decoder().eval(), torch.randint(0, 50, (2, 12)), others=[1, 3])
    with h5py.File(exported.weights) as file:
        assert "words.weight" in file
        assert "head.weight" not in file


def test_resnet18(exported: Exported) -> None:
    """A network of torchvision."""
    exported.check(torchvision_models().resnet18(num_classes=10).eval(), torch.randn(2, 3, 64, 64), others=[1])


class Expressions(nn.Module):
    """Operators that are rows of rows.yaml, of several types, with reductions and numbers."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> list[torch.Tensor]:
        return [
            torch.where(x > 0, x * 2.5 + 1, torch.exp(x).clamp(max=0.75)),
            (x.abs() + 1).log2().sum(-1),
            x.amax((1, 2), keepdim=True) - x.norm(dim=1, keepdim=True),
            torch.div(n, 3, rounding_mode="floor") + n % 4,
            (n > 2) & (n.sum(1, keepdim=True) != 5),
            x.var(1) + torch.erf(x).mean(1) + x.masked_fill(x < 0, -1.0).prod(1),
            n.float().sqrt() * x[:, 0, :5],
        ]


def test_expressions(exported: Exported) -> None:
    """What eager calls compute by rows, networks compute by the same rows."""
    exported.check(Expressions(), torch.randn(3, 4, 5), torch.randint(0, 9, (3, 5)), others=[2])


class Places(nn.Module):
    """Operators that move elements."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        a, b = x.chunk(2, 1)
        index = torch.tensor([2, 0, 1])
        return [
            torch.stack([a, b], -1).flatten(1),
            x[:, :, 1::2].roll((1, -2), (1, 2)),
            x[:, index, index],
            x[:, index].flip(2).unsqueeze(1).squeeze(1),
            torch.cat([x, torch.zeros(x.shape[0], 1, 6)], 1),
            F.pad(x, (1, 2, 0, 1), value=3.0).transpose(1, 2),
            x.unbind(1)[2].repeat(1, 2),
            F.pixel_shuffle(x.view(-1, 4, 2, 3), 2),
            x.topk(3, dim=2).values + x.cumsum(2)[..., :3],
            (x @ x.transpose(1, 2)) + x.new_ones(4),
        ]


class Layers(nn.Module):
    """Modules, each applied to the same images."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.InstanceNorm2d(6, affine=True), nn.GroupNorm(3, 6), nn.BatchNorm2d(6), nn.LocalResponseNorm(3),
                nn.RMSNorm(8), nn.BatchNorm2d(6, track_running_stats=False), nn.Conv2d(6, 4, 3, 2, 1, 2, 2, bias=False),
                nn.ConvTranspose2d(6, 9, 3, 2, 1, 1, 3), nn.AvgPool2d(3, 2, 1, True, False), nn.MaxPool2d(3, 2, 1, 2),
                nn.AdaptiveMaxPool2d(3), nn.AdaptiveAvgPool2d((3, 2)), nn.LPPool2d(2, 3), nn.Upsample(scale_factor=2),
                nn.Upsample(size=(9, 7), mode="bicubic"), nn.ReflectionPad2d(2), nn.CircularPad2d(1), nn.Unfold(3),
                nn.ChannelShuffle(2), nn.GLU(1), nn.PReLU(6), nn.ELU(0.5), nn.SELU(), nn.Softplus(2), nn.Mish(),
                nn.Hardswish(), nn.LeakyReLU(0.3), nn.ReLU6(),
                nn.LogSigmoid(), nn.Softshrink(), nn.Threshold(0.1, 2.0), nn.Softmin(1),
            ]
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer in self.layers]


def test_layers(exported: Exported) -> None:
    """Modules of torch.nn, on the device "ocl" as on the CPU."""
    config = exported.check(Layers().eval(), torch.randn(2, 6, 8, 8), others=[1])
    other = exported.export(Layers().eval().to("ocl"), torch.randn(2, 6, 8, 8, device="ocl"))
    assert [entry["type"] for entry in other["operators"]] == [entry["type"] for entry in config["operators"]]


class Recurrent(nn.Module):
    """PyTorch's recurrent modules."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(32, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found, (hidden, cells) = self.lstm(x)
        result: torch.Tensor = self.gru(found)[0] + hidden.sum() * cells.mean()
        return result


def test_recurrent(exported: Exported) -> None:
    """LSTM and GRU are one layer each."""
    config = exported.check(Recurrent(), torch.randn(3, 5, 8), others=[1])
    assert {"LSTM", "GRU"} <= {entry["type"] for entry in config["operators"]}


class Views(nn.Module):
    """Chains of views, read by layers that care for their order and by some that do not."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.convolution = nn.Linear(6, 10), nn.Conv2d(2, 4, 1)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        batch = x.shape[0]
        q, k, v = x.reshape(batch, 4, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        rows = x.view(batch, 4, 4, 6).permute(2, 0, 1, 3)
        windows = x.view(batch, 2, 2, 2, 12).permute(0, 1, 3, 2, 4).reshape(-1, 4, 12)
        return [
            q @ k.transpose(-1, -2) @ v,
            self.linear(rows),
            self.linear(rows.reshape(-1, 6)).view(4, batch, 4, 10).permute(1, 2, 0, 3),
            self.linear(rows[1]),
            self.convolution(x.view(batch, 4, 12, 2).permute(0, 3, 2, 1)),
            windows.view(batch, 2, 2, 2, 12).transpose(2, 3).reshape(batch, 4, 24),
            windows.sum(2),
            x.transpose(1, 2)[:, 5],
            x.transpose(1, 2).reshape(batch, 4, 24) + x,
            x.view(batch, 8, 12)[:, 3].view(batch, 3, 4).mT,
            x[:, 2].view(batch, 2, 12).permute(2, 1, 0),
        ]


def test_views(exported: Exported) -> None:
    """What is left of chains of views shows the same elements."""
    exported.check(Views(), torch.randn(3, 4, 24), others=[1, 2])


def test_places(exported: Exported) -> None:
    """Slices, gathers, joins and views."""
    exported.check(Places(), torch.randn(3, 4, 6), others=[1])


class Losses(nn.Module):
    """A model that returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_cnn(dropout=0)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.net(images)
        return {"scores": scores, "loss": F.nll_loss(scores, labels)}


def test_training_step(exported: Exported) -> None:
    """Loss, gradients and running statistics of a model that was exported in training mode."""
    model = Losses().train()
    images, labels = torch.randn(4, 3, 16, 16), torch.tensor([1, 3, 0, 1])
    exported.export(model, (images, labels))
    gradients = exported.folder / "g.h5"
    found = exported.run({"images": images, "labels": labels}, "--train", "--grads", str(gradients))
    wanted = model(images, labels)
    wanted["loss"].backward()
    assert relative(found["loss"].flatten(), wanted["loss"].detach().flatten()) < BOUND
    for name in ("net.1.running_mean", "net.1.running_var"):
        assert relative(found[name], model.get_buffer(name)) < BOUND
    with h5py.File(gradients) as file:
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            # The first bias stands in front of a norm: its gradient is 0 but for rounding.
            if name != "net.0.bias":
                assert relative(torch.from_numpy(numpy.array(file[name])), parameter.grad) < BOUND, name


def test_dropout(exported: Exported) -> None:
    """Dropout is there in training mode: it scales what it keeps."""
    model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.25)).train()
    x = torch.randn(50, 8)
    exported.export(model, x)
    found, whole = exported.run({"input": x}, "--train")["output"], model.eval()(x).detach()
    kept = found != 0
    assert 0.7 < kept.float().mean() < 0.8
    assert relative(found[kept], whole[kept] / 0.75) < BOUND


def test_train(exported: Exported) -> None:
    """dlprim_train learns with an exported network, whose batch it chooses."""
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2)
    )
    exported.export(model.train(), torch.randn(2, 1, 8, 8), loss="cross_entropy")
    labels = torch.arange(200) % 2
    images = torch.randn(200, 1, 8, 8) + labels.view(-1, 1, 1, 1)
    numpy.save(exported.folder / "x.npy", images.numpy())
    numpy.save(exported.folder / "y.npy", labels.int().numpy())
    files = {"inputs": "x.npy", "labels": "y.npy"}
    config: dict[str, Any] = {
        "net": "net.json",
        "weights": "net.h5",
        "data": {"type": "npy", "train": files, "test": files},
    }
    config |= {"batch": 20, "epochs": 3, "solver": {"type": "adam", "learning_rate": 0.01}}
    (exported.folder / "train.json").write_text(json.dumps(config))
    command = [exported.tool.with_name("dlprim_train"), exported.folder / "train.json", "-d", "cpu"]
    done = subprocess.run([*map(str, command), "--out", str(exported.folder / "run")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with h5py.File(exported.folder / "run" / "model.h5") as file:
        trained = {name: torch.from_numpy(numpy.array(file[name])) for name in model.state_dict() if name in file}
    model.load_state_dict(trained, strict=False)
    assert (model.eval()(images).argmax(1) == labels).float().mean() > 0.9


class Function(nn.Module):
    """A function as a model of one or two inputs."""

    def __init__(self, function: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class Pair(Function):
    """A function of two tensors."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:  # type: ignore[override]
        return self.function(x, y)


NUMBERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "quotient": lambda x: x / x.shape[0],
    "sum": lambda x: x + x.size(0),
    "product": lambda x: x.sum(0) * x.size(0),
    "bound": lambda x: x.clamp(max=x.shape[0]),
    "power": lambda x: x ** x.shape[0],
    "root": lambda x: x * x.shape[0] ** -0.5,
    "tensor": lambda x: x + torch.tensor(x.shape[0]),
    "full": lambda x: torch.full((2,), x.shape[0]) + x[:, :2],
    "divergence": lambda x: F.kl_div(x, x + 1, reduction="batchmean"),
    "slice": lambda x: x[:, : x.shape[0]],
    "element": lambda x: x[:, x.shape[0] - 1],
    "repeat": lambda x: x.repeat(1, x.shape[0]),
    "roll": lambda x: x.roll(x.shape[0], 1),
    "factor": lambda x: torch.add(x, x, alpha=x.shape[0]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_batch_as_number(exported: Exported, name: str) -> None:
    """The size of an open batch is no number of the network; a fixed one is."""
    with pytest.raises(NotImplementedError, match="uses the batch size as a number.*dynamic_batch=False"):
        exported.export(Function(NUMBERS[name]), torch.rand(3, 5))
    exported.check(Function(NUMBERS[name]), torch.rand(3, 5), dynamic_batch=False)


def test_batch_as_size(exported: Exported) -> None:
    """Where it is a size it stays open."""

    def sizes(x: torch.Tensor) -> list[torch.Tensor]:
        batch = x.shape[0]
        return [x + torch.arange(batch).view(-1, 1), x + torch.full((batch, 1), 1.5), x[:, :1].repeat(1, batch)]

    exported.check(Function(sizes), torch.randn(3, 5), others=[1, 5])


def test_whole_sums(exported: Exported) -> None:
    """Sums of whole numbers cast before they add, as PyTorch's do."""
    exported.check(
        Function(lambda x: [x.sum(1, dtype=torch.int64), x.sum(dtype=torch.int32), x.prod(1, dtype=torch.int64)]),
        3 * torch.randn(4, 5),
    )


class Names(nn.Module):
    """Outputs that are called as the graph calls other tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        first, second = self.a(x), self.b(x)
        return {"linear_1": first, "linear": second, "mean": x.sum(1), "sum": x.mean(1), "mul": (x * 2).exp()}


def test_names(exported: Exported) -> None:
    """Outputs are called as the model calls them, whatever tensors inside the graph are called."""
    config = exported.check(Names(), torch.randn(3, 4))
    assert config["outputs"] == ["linear_1", "linear", "mean", "sum", "mul"]
    moved: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda x: x.reshape(-1, 2, 2, 2).transpose(1, 2),
        lambda x: x.view(-1, 2, 4)[:, 1],
        lambda x: torch.einsum("ni,nj->nij", x, x).mT,
    ]
    for function in moved:
        assert exported.check(Function(function), torch.randn(3, 8))["outputs"] == ["output"]
    with pytest.raises(ValueError, match="both called x"):
        exported.export(Function(lambda x: {"x": x * 2}), torch.randn(3, 4))


def test_losses(exported: Exported) -> None:
    """Added losses are those of PyTorch, for outputs of several dimensions, too."""
    x, y = torch.randn(3, 4, 2), torch.randint(0, 4, (3, 2))
    for batch in (3, 1):
        exported.export(Function(torch.tanh), x[:batch], loss="mse")
        found = exported.run({"x": x, "label": x})["loss"].flatten()
        assert relative(found, F.mse_loss(x.tanh(), x).flatten()) < BOUND
        exported.export(Function(torch.tanh), x[:batch], loss="cross_entropy")
        found = exported.run({"x": x, "label": y.int()})["loss"].flatten()
        assert relative(found, F.cross_entropy(x.tanh(), y).flatten()) < BOUND
    with pytest.raises(ValueError, match="called loss"):
        exported.export(Function(lambda x: {"y": x + 1, "loss": x.sum()}), x, loss="mse")
    with pytest.raises(ValueError, match="of \\[N, C"):
        exported.export(Function(lambda x: x.sum((1, 2))), x, loss="cross_entropy")


def test_types(exported: Exported) -> None:
    """Joins of several types have that of PyTorch's result."""

    def joins(x: torch.Tensor, n: torch.Tensor) -> list[torch.Tensor]:
        return [
            torch.cat([x, n, x.double()], 1),
            torch.stack([n, x], 1),
            torch.slice_scatter(x, n, 1, 0, 4),
            torch.select_scatter(x, n[:, 0], 1, 2),
        ]

    exported.check(Pair(joins), torch.randn(3, 4), torch.randint(0, 9, (3, 4)), others=[2])


def test_one_image(exported: Exported) -> None:
    """Pooling of images without a batch, whose channels are then what is open."""

    def pools(x: torch.Tensor) -> list[torch.Tensor]:
        wide = x.flatten(1)
        return [
            F.max_pool2d(x, 2),
            F.avg_pool2d(x, 3, 2),
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_max_pool2d(x, 3, return_indices=True)[1],
            F.max_pool1d(wide, 2),
            F.avg_pool1d(wide, 2),
            F.adaptive_avg_pool1d(wide, 5),
        ]

    exported.check(Function(pools), torch.randn(3, 8, 8), others=[2])


def test_gram(exported: Exported) -> None:
    """Products of the batch with itself."""
    exported.check(Function(lambda x: [x @ x.t(), F.linear(x, x)]), torch.randn(3, 4), others=[1, 5])


REFUSED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole numbers": lambda x: x.int() @ torch.arange(20, dtype=torch.int32).view(4, 5),
    "one row": lambda x: F.cross_entropy(x.sum(0), torch.tensor(2)),
    "without dimensions": lambda x: x.sum().softmax(0) + x.sum().flip(0) + x.sum().var(0),
    "double": lambda x: F.pad(x.double(), (1, 1), mode="reflect"),
    "complex number": lambda x: (x * 1j).abs(),
    "end of the batch": lambda x: x[-1],
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(exported: Exported, why: str) -> None:
    """What layers would refuse is refused by the export."""
    with pytest.raises(NotImplementedError, match=why):
        exported.export(Function(REFUSED[why]), torch.randn(3, 4))


def test_projected_lstm(exported: Exported) -> None:
    """LSTM with proj_size has no layer."""
    with pytest.raises(NotImplementedError, match="proj_size"):
        exported.export(nn.LSTM(4, 5, proj_size=2, batch_first=True), torch.randn(3, 6, 4))


class Missing(nn.Module):
    """A model with an operator that networks lack."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sizes: torch.Tensor = torch.linalg.svdvals(self.layer(x))
        return sizes.sum()


def test_errors(exported: Exported) -> None:
    """One sentence that says what is wrong, and where."""
    with pytest.raises(NotImplementedError) as error:
        exported.export(Missing(), torch.randn(3, 4))
    assert "svd" in str(error.value)
    assert "test_export.py line" in str(error.value)
    assert str(error.value).count("\n") == 0
    with pytest.raises(ValueError, match="cross_entropy, mse, not 'hinge'"):
        exported.export(nn.Linear(2, 2), torch.randn(3, 2), loss="hinge")
    with pytest.raises(NotImplementedError, match="writes its input x"):
        exported.export(Function(lambda x: x.add_(1)), torch.randn(3, 2))
    with pytest.raises(ValueError, match="at least one tensor"):
        exported.export(nn.Linear(2, 2), ())
    mask = torch.randn(4, 4)
    for model, example in (
        (nn.Conv2d(3, 4, 3), torch.randn(3, 8, 8)),
        (nn.GRU(4, 5), torch.randn(3, 2, 4)),
        (Pair(lambda x, y: F.scaled_dot_product_attention(x, x, x, y)), (torch.randn(4, 2, 4, 8), mask)),
    ):
        with pytest.raises(ValueError, match=r"^The model does not take .*dynamic_batch=False.*\.$"):
            exported.export(model, example)
    assert not exported.net.exists()
