# SPDX-License-Identifier: MIT
"""Networks of torchvision, and how a training step on the device is compared with the CPU."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from types import ModuleType

import torch


def torchvision_models() -> ModuleType:
    """torchvision.models, also where torchvision's own C++ part does not load."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
    from torchvision_net import torchvision

    return torchvision.models  # type: ignore[no-any-return]


def step(
    model: torch.nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    optimizer: Callable[..., torch.optim.Optimizer] | None = None,
) -> dict[str, torch.Tensor]:
    """One training step: loss and gradients, and with an optimizer the parameters and buffers behind it, on the CPU."""
    model.train()
    used = optimizer(model.parameters()) if optimizer else None
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    results = {"loss": loss.detach().cpu()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            results["gradient of " + name] = parameter.grad.cpu()
    if used:
        used.step()
        results |= {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    return results


def errors(actual: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]) -> dict[str, float]:
    """The largest difference of each tensor, over the largest magnitude of the exact one.

    A gradient that is 0 but for rounding, as a bias in front of a norm has it, has no magnitude to compare with: there
    a difference counts if float32 could tell it from the largest gradient, and then over 1e-10 of that one.
    """
    largest = max(tensor.abs().max().double().item() for tensor in exact.values() if tensor.numel())
    found = {}
    for name, tensor in exact.items():
        size = tensor.abs().max().double().item()
        difference = (actual[name].double() - tensor.double()).abs().max().item()
        if size <= 1e-10 * largest and difference <= 2**-24 * largest:
            found[name] = 0.0
        else:
            found[name] = difference / (max(size, 1e-10 * largest) or 1.0)
    return found
