# SPDX-License-Identifier: MIT
"""Networks written with dlprim.nn, trained for some steps beside the same network in PyTorch.

Both start from the same weights; losses, gradients and the weights after the steps agree.
"""

from __future__ import annotations

from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import nn

RATE = 0.05


class Trained:
    """A model of dlprim and a module of PyTorch that take the same steps."""

    def __init__(self, context: dlprim.Context, model: Any, module: Any, names: dict[str, str] | None = None) -> None:
        self.net = model.build(context, mode="training")
        self.module = module.train()
        self.matches = dlprim.weights.load(self.net, module, names)
        self.solver = dlprim.Solver(self.net, "sgd", learning_rate=RATE)

    def step(self, torch: Any, loss_of: Any, **arrays: np.ndarray) -> float:
        """One step of both; checks that losses and gradients agree, and returns the loss."""
        for name, array in arrays.items():
            self.net.set_input(name, array)
        self.solver.step()  # forward, backward and the update
        loss = float(self.net.output("loss").numpy()[0])

        self.module.zero_grad()
        expected = loss_of(self.module, **{name: torch.from_numpy(array) for name, array in arrays.items()})
        expected.backward()
        assert loss == pytest.approx(expected.item(), rel=2e-5)
        own = dict(self.module.named_parameters())
        checked = 0
        for m in self.matches:
            if self.net.is_trainable(m.param):
                ours, theirs = self.net.gradient(m.param).numpy(), own[m.source].grad.numpy()
                scale = np.abs(theirs).max()
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-4 * scale + 1e-7, err_msg=f"gradient of {m}")
                checked += 1
        assert checked == len(own)

        with torch.no_grad():
            for parameter in own.values():
                parameter -= RATE * parameter.grad
        return loss

    def check_weights(self) -> None:
        state = self.module.state_dict()
        for m in self.matches:
            theirs = state[m.source].numpy()
            np.testing.assert_allclose(self.net.param(m.param).numpy(), theirs, rtol=1e-3, atol=1e-4, err_msg=str(m))


def cross_entropy(module: Any, data: Any, label: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(module(data), label.long())


def images(shape: tuple[int, ...], classes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    label = rng.integers(0, classes, shape[0]).astype(np.int32)
    return {"data": rng.standard_normal(shape).astype(np.float32), "label": label}


def test_lenet_as_a_list(context: dlprim.Context, torch: Any) -> None:
    model = nn.Sequential(
        [
            nn.Input("data", (8, 1, 28, 28)),
            nn.Conv2d(6, 5, padding=2, activation="relu"),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 5),
            nn.relu,
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(120),
            nn.ReLU(),
            nn.Linear(84, activation="relu"),
            nn.Linear(10, name="logits"),
            nn.SoftmaxWithLoss(),
        ],
        name="LeNet",
    )
    assert model.to_dict()["outputs"] == ["logits", "loss"]
    torch.manual_seed(1)
    t = torch.nn
    module = t.Sequential(
        t.Conv2d(1, 6, 5, padding=2), t.ReLU(), t.MaxPool2d(2), t.Conv2d(6, 16, 5), t.ReLU(), t.MaxPool2d(2),
        t.Flatten(), t.Linear(400, 120), t.ReLU(), t.Linear(120, 84), t.ReLU(), t.Linear(84, 10),
    )  # fmt: skip
    both = Trained(context, model, module)
    batch = images((8, 1, 28, 28), 10)
    losses = [both.step(torch, cross_entropy, **batch) for _ in range(4)]
    assert losses[-1] < losses[0]
    both.check_weights()


def residual(x: nn.Symbol, channels: int, stride: int) -> nn.Symbol:
    y = nn.Conv2d(channels, 3, stride=stride, padding=1, bias=False)(x)
    y = nn.relu(nn.BatchNorm()(y))
    y = nn.BatchNorm()(nn.Conv2d(channels, 3, padding=1, bias=False)(y))
    if stride != 1:
        x = nn.BatchNorm()(nn.Conv2d(channels, 1, stride=stride, bias=False)(x))
    return nn.relu(y + x)


def torch_residual_net(torch: Any) -> Any:
    t = torch.nn

    class Block(t.Module):  # type: ignore[name-defined, misc]
        def __init__(self, inputs: int, channels: int, stride: int) -> None:
            super().__init__()
            self.conv1 = t.Conv2d(inputs, channels, 3, stride, 1, bias=False)
            self.bn1 = t.BatchNorm2d(channels)
            self.conv2 = t.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn2 = t.BatchNorm2d(channels)
            self.down = None
            if stride != 1:
                self.down = t.Sequential(t.Conv2d(inputs, channels, 1, stride, bias=False), t.BatchNorm2d(channels))

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            return torch.relu(y + (self.down(x) if self.down is not None else x))

    return t.Sequential(
        t.Conv2d(3, 8, 3, 1, 1, bias=False), t.BatchNorm2d(8), t.ReLU(), Block(8, 8, 1), Block(8, 16, 2),
        t.AdaptiveAvgPool2d(1), t.Flatten(), t.Linear(16, 5),
    )  # fmt: skip


def test_residual_net_of_functions(context: dlprim.Context, torch: Any) -> None:
    x = nn.Input("data", (6, 3, 16, 16))
    y = nn.relu(nn.BatchNorm()(nn.Conv2d(8, 3, padding=1, bias=False)(x)))
    y = residual(residual(y, 8, 1), 16, 2)
    assert y.shape == (6, 16, 8, 8)
    logits = nn.Linear(5)(nn.flatten(nn.global_avg_pool2d(y)))
    model = nn.Model(x, {"logits": logits, "loss": nn.softmax_with_loss(logits)})

    torch.manual_seed(2)
    both = Trained(context, model, torch_residual_net(torch))
    assert all(name.endswith("num_batches_tracked") for name in both.matches.ignored)
    batch = images((6, 3, 16, 16), 5)
    losses = [both.step(torch, cross_entropy, **batch) for _ in range(4)]
    assert losses[-1] < losses[0]
    both.check_weights()  # running statistics, too


def test_lstm_classifier(context: dlprim.Context, torch: Any) -> None:
    words = nn.Input("data", (4, 7), "int32")
    y, _, _ = nn.LSTM(12, num_layers=2, batch_first=True)(nn.Embedding(20, 6)(words))
    logits = nn.Linear(3)(y[:, -1])
    model = nn.Model(words, {"logits": logits, "loss": nn.softmax_with_loss(logits)})
    t = torch.nn

    class Classifier(t.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = t.Embedding(20, 6)
            self.lstm = t.LSTM(6, 12, 2, batch_first=True)
            self.linear = t.Linear(12, 3)

        def forward(self, x: Any) -> Any:
            return self.linear(self.lstm(self.embedding(x.long()))[0][:, -1])

    torch.manual_seed(3)
    both = Trained(context, model, Classifier())
    rng = np.random.default_rng(3)
    batch = {"data": rng.integers(0, 20, (4, 7)).astype(np.int32), "label": np.array([0, 2, 1, 1], np.int32)}
    losses = [both.step(torch, cross_entropy, **batch) for _ in range(4)]
    assert losses[-1] < losses[0]
    both.check_weights()


def heads_of(x: nn.Symbol, heads: int) -> nn.Symbol:
    """[N, T, E] -> [N, heads, T, E / heads]."""
    return nn.permute(nn.reshape(x, (0, 0, heads, x.shape[2] // heads)), (0, 2, 1, 3))


def transformer_block(x: nn.Symbol, heads: int) -> nn.Symbol:
    features = x.shape[-1]
    z = nn.LayerNorm()(x)
    q, k, v = (heads_of(nn.Linear(features)(z), heads) for _ in range(3))
    z = nn.permute(nn.attention(q, k, v, is_causal=True), (0, 2, 1, 3))
    x = x + nn.Linear(features)(nn.reshape(z, (0, 0, features)))
    return x + nn.Linear(features)(nn.gelu(nn.Linear(4 * features)(nn.LayerNorm()(x))))


def torch_transformer(torch: Any) -> Any:
    t, f = torch.nn, torch.nn.functional

    class Transformer(t.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = t.LayerNorm(8)
            self.q, self.k, self.v, self.out = (t.Linear(8, 8) for _ in range(4))
            self.norm2 = t.LayerNorm(8)
            self.up, self.down = t.Linear(8, 32), t.Linear(32, 8)
            self.head = t.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            def heads(y: Any) -> Any:
                return y.reshape(3, 5, 2, 4).transpose(1, 2)

            z = self.norm1(x)
            z = f.scaled_dot_product_attention(heads(self.q(z)), heads(self.k(z)), heads(self.v(z)), is_causal=True)
            x = x + self.out(z.transpose(1, 2).reshape(3, 5, 8))
            x = x + self.down(f.gelu(self.up(self.norm2(x))))
            return self.head(x.mean(1))

    return Transformer()


def test_transformer_block(context: dlprim.Context, torch: Any) -> None:
    x = nn.Input("data", (3, 5, 8))
    logits = nn.Linear(3)(nn.mean(transformer_block(x, heads=2), 1))
    model = nn.Model(x, {"logits": logits, "loss": nn.softmax_with_loss(logits)})
    torch.manual_seed(4)
    both = Trained(context, model, torch_transformer(torch))
    batch = images((3, 5, 8), 3)
    losses = [both.step(torch, cross_entropy, **batch) for _ in range(4)]
    assert losses[-1] < losses[0]
    both.check_weights()


def test_shared_parameters_get_the_sum_of_their_gradients(context: dlprim.Context, torch: Any) -> None:
    """A twin network: both pictures go through the same layers."""
    a, b = nn.Input("a", (5, 6)), nn.Input("b", (5, 6))
    hidden, out = nn.Linear(8, activation="tanh"), nn.Linear(4)
    distance = out(hidden(a)) - out(hidden(b))
    model = nn.Model([a, b], {"loss": nn.loss(nn.mean(distance * distance, keepdim=True), weight=1.0)})
    names = [op.get("params") for op in model.to_dict()["operators"] if op["type"] == "InnerProduct"]
    assert names == [None, None, ["linear_1.0", "linear_1.1"], ["linear_2.0", "linear_2.1"]]

    t = torch.nn
    torch.manual_seed(5)
    module = t.Sequential(t.Linear(6, 8), t.Tanh(), t.Linear(8, 4))
    both = Trained(context, model, module)

    def loss_of(module: Any, a: Any, b: Any) -> Any:
        return ((module(a) - module(b)) ** 2).mean()

    rng = np.random.default_rng(5)
    batch = {name: rng.standard_normal((5, 6)).astype(np.float32) for name in ("a", "b")}
    for name, array in batch.items():
        both.net.set_input(name, array)
    both.net.forward()
    both.net.backward()
    net_loss = both.net.output("loss")
    assert net_loss.shape in ((1, 1), (1,))
    expected = loss_of(module, **{name: torch.from_numpy(array) for name, array in batch.items()})
    expected.backward()
    assert float(net_loss.numpy().ravel()[0]) == pytest.approx(expected.item(), rel=1e-5)
    own = dict(module.named_parameters())
    for m in both.matches:
        np.testing.assert_allclose(both.net.gradient(m.param).numpy(), own[m.source].grad.numpy(), atol=1e-6)
