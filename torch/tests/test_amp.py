# SPDX-License-Identifier: MIT
"""torch.autocast("ocl") and torch.amp.GradScaler."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype: torch.dtype) -> None:
    """Products are computed in the lower type, and what needs float is in float."""
    x, w = torch.randn(4, 5, device="ocl"), torch.randn(3, 5, device="ocl", requires_grad=True)
    with torch.autocast("ocl", dtype=dtype):
        y = F.linear(x, w)
        z = F.log_softmax(y, 1)
        assert y.dtype == dtype and z.dtype == torch.float32
        with pytest.raises(RuntimeError, match="unsafe under autocast"):
            F.binary_cross_entropy(torch.rand(2, device="ocl"), torch.ones(2, device="ocl"))
    z.sum().backward()
    assert w.grad is not None and w.grad.dtype == torch.float32
    assert torch.get_autocast_dtype("ocl") in (torch.float16, torch.bfloat16)


def test_grad_scaler() -> None:
    """Steps with an infinity are left out, and the scale follows."""
    w = torch.ones(3, device="ocl", requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("ocl", init_scale=8.0, growth_interval=2)
    scales = []
    for factor in (1.0, float("inf"), 1.0, 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((w * torch.tensor([factor, 1, 2], device="ocl")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8, 4, 4, 8, 8]
    assert w.tolist() == [1 - 4, 1 - 4, 1 - 8]


def test_training_in_half() -> None:
    """A network learns under autocast with a scaled loss."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4)
    ).ocl()
    images, labels = torch.randn(16, 1, 8, 8, device="ocl"), torch.arange(16).remainder(4).ocl()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("ocl")
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        with torch.autocast("ocl", dtype=torch.float16):
            loss = F.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_convolution_keeps_float_weights() -> None:
    """Only the image is cast, and the gradient of the weight is float without rounding to half."""
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(8, 8, 3, padding=1)
    image = torch.randn(2, 8, 6, 6).half().float()
    ours = torch.nn.Conv2d(8, 8, 3, padding=1).ocl()
    ours.load_state_dict(layer.state_dict())
    with torch.autocast("ocl", dtype=torch.float16):
        result = ours(image.ocl())
    assert result.dtype == torch.float16
    result.float().square().sum().backward()
    expected = layer(image)
    expected.square().sum().backward()
    assert ours.weight.grad is not None and ours.weight.grad.dtype == torch.float32
    torch.testing.assert_close(result.float().cpu(), expected, rtol=5e-3, atol=5e-3)
    torch.testing.assert_close(ours.weight.grad.cpu(), layer.weight.grad, rtol=2e-2, atol=2e-1)
