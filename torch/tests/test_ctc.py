# SPDX-License-Identifier: MIT
"""The loss of connectionist temporal classification against the CPU, forward and backward."""

from __future__ import annotations

import pytest
import torch
from test_kernels import compare
from torch.nn import functional as F

LENGTHS = [([9, 6, 7], [4, 0, 2]), ([9, 9, 9], [3, 3, 3]), ([5, 9, 8], [0, 1, 4])]


def steps_of(samples: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers of 9 steps and 6 labels."""
    return torch.randn(9, samples, 6, dtype=dtype)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("steps", "labels"), LENGTHS)
def test_loss(steps: list[int], labels: list[int], reduction: str) -> None:
    """Labels as rows and one behind the other, repeated ones among them, and another blank."""
    targets = torch.randint(1, 6, (3, 5))
    targets[0, 1] = targets[0, 0]
    flat = torch.cat([row[:n] for row, n in zip(targets, labels, strict=True)])
    for given in (targets, flat):
        compare(lambda x, t: F.ctc_loss(x.log_softmax(2), t, steps, labels, reduction=reduction), steps_of(3), given)
    compare(lambda x, t: F.ctc_loss(x.log_softmax(2), t - 1, steps, labels, 5, reduction), steps_of(3), targets)


def test_infinite_losses() -> None:
    """More labels than steps, and no steps, with zero_infinity; doubles; a single sample; lengths as tensors."""
    targets = torch.randint(1, 6, (4, 5))
    for reduction in ("none", "mean"):
        compare(
            lambda x, t, how=reduction: F.ctc_loss(
                x.log_softmax(2), t, [3, 9, 0, 9], [5, 2, 0, 0], reduction=how, zero_infinity=True
            ),
            steps_of(4, torch.float64),
            targets,
        )
    targets = targets[:2]
    compare(
        lambda x, t: F.ctc_loss(x.detach().log_softmax(2), t, [3, 9], [5, 2], reduction="none"), steps_of(2), targets
    )
    compare(
        lambda x, t: F.ctc_loss(x[:, 0].log_softmax(1), t[0, :3], torch.tensor(9), torch.tensor(3)),
        steps_of(1),
        targets,
    )
    lengths = torch.tensor([9, 8]), torch.tensor([5, 2])
    compare(lambda x, t, a, b: F.ctc_loss(x.log_softmax(2), t, a, b), steps_of(2), targets, *lengths)
