# SPDX-License-Identifier: MIT
"""Training steps against float64 on the CPU, without any fallback."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import check_networks
import pytest
import torch
from decisions import Recorder, Replay
from networks import errors, step, torchvision_models


@pytest.mark.parametrize(
    "optimizer",
    [partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4), partial(torch.optim.Adam, lr=1e-3)],
    ids=["sgd", "adam"],
)
def test_resnet18(optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    """Loss, gradients, parameters and running statistics of a ResNet-18 after a step."""
    # Gradients jump where an activation is 0; with this seed none of the last layer is within rounding of it.
    torch.manual_seed(1)
    model = torchvision_models().resnet18(num_classes=10)
    images, labels = torch.randn(4, 3, 64, 64), torch.tensor([1, 7, 3, 1])
    exact = step(copy.deepcopy(model).double(), images.double(), labels, optimizer)
    reference = errors(step(copy.deepcopy(model), images, labels, optimizer), exact)
    found = errors(step(copy.deepcopy(model).ocl(), images.ocl(), labels.ocl(), optimizer), exact)
    for name, error in found.items():
        # Adam's first step is the gradient's sign, so that its parameters say nothing where a gradient is about 0.
        adam = isinstance(optimizer(model.parameters()), torch.optim.Adam)
        if not (adam and name in dict(model.named_parameters())):
            assert error < max(1e-4, 2 * reference[name]), f"{name}: {error}, on the CPU {reference[name]}"


def test_turned_decisions() -> None:
    """A gradient that is wrong, or a decision far from marginal, is found also where decisions are matched."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2))
    images = torch.randn(2, 3, 8, 8)
    made = (model, [images], lambda model, x: model(x[0]).square().sum())
    taken = Recorder()
    found = check_networks.step(made, "ocl", torch.float32, taken)
    assert [len(masks) for masks in taken.taken] == [1, 1]
    exact = Replay(taken.taken)
    plain = check_networks.step(made, "cpu", torch.float64)
    matched = check_networks.step(made, "cpu", torch.float64, exact)
    assert exact.turned == 0
    assert all(torch.equal(plain[name], matched[name]) for name in plain)
    single = Replay(taken.taken, exact)
    check_networks.step(made, "cpu", torch.float32, single)
    assert exact.excess(single) == 0

    mask = taken.taken[0][0]
    mask.view(-1)[exact.seen[0].flatten().argmax()] = False  # the largest value, which nobody calls marginal
    exact = Replay(taken.taken)
    turned = check_networks.step(made, "cpu", torch.float64, exact)
    single = Replay(taken.taken, exact)
    check_networks.step(made, "cpu", torch.float32, single)
    assert exact.turned >= 1
    assert exact.excess(single) > 1000
    assert not check_networks.compared(found, turned, turned, "matched").passes


# Small ones of each kind.
NETWORKS = [
    "alexnet",
    "squeezenet1_1",
    "mobilenet_v3_small",
    "shufflenet_v2_x0_5",
    "efficientnet_b0",
    "transformer",
    "lstm",
    "gru",
    "vae",
    "gan",
]


@pytest.mark.parametrize("name", NETWORKS)
def test_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss and all gradients of a step against float64, as check_networks.py does it for all networks."""
    # At 64 pixels the last norms of shufflenet have means of eight numbers, and the order of sums alone decides whether
    # errors are within the bound.
    sizes = dict.fromkeys(NETWORKS, 64) | {"shufflenet_v2_x0_5": 224}
    monkeypatch.setattr(check_networks, "SIZES", sizes)
    result = check_networks.check(name, 1)
    assert result.passes, f"{result.tensor}: {result.error}, on the CPU {result.reference}, {result.how}"
