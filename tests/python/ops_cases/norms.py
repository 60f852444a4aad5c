# SPDX-License-Identifier: MIT
"""Norms and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .case import IMAGES, Case, functional, labels, positive, random


def linear_cross_entropy(**kwargs: Any) -> Callable[..., Any]:
    """The loss of the product, all logits at once."""

    def run(torch: Any, x: Any, label: Any, weight: Any, bias: Any = None) -> Any:
        logits = torch.nn.functional.linear(x, weight, bias).flatten(0, -2)
        return torch.nn.functional.cross_entropy(logits, label.flatten(), **kwargs)

    return run


NORMS = [
    Case("batch_norm", IMAGES, random(4), positive(4), random(4), random(4)),
    Case("batch_norm", random(5, 4), random(4), positive(4), eps=0.1),
    Case("batch_norm", IMAGES, random(4), positive(4), random(4), random(4), training=True, momentum=0.3),
    Case("batch_norm", IMAGES, random(4), positive(4), training=True),
    Case(
        "batch_norm",
        IMAGES,
        random(4),
        positive(4),
        random(4),
        random(4),
        training=True,
        use_global_stats=True,
        like=functional("batch_norm"),
    ),
    Case("layer_norm", random(3, 4, 5), (4, 5), random(4, 5), random(4, 5)),
    Case("layer_norm", random(3, 4, 5), [5], random(5), eps=0.01),
    Case("layer_norm", random(3, 4, 5), (5,)),
    Case("rms_norm", random(3, 4, 5), (4, 5), random(4, 5), eps=0.01),
    Case("rms_norm", random(3, 4, 5), (5,), eps=1e-5),
    Case("group_norm", IMAGES, 2, random(4), random(4)),
    Case("group_norm", IMAGES, 4, eps=0.01),
    Case("softmax", random(3, 7), dim=1),
    Case("softmax", random(3, 7, 2), dim=-1),
    Case("log_softmax", random(3, 7, 2), dim=0),
    Case("cross_entropy", random(5, 7), labels(7, 5)),
    Case(
        "linear_cross_entropy",
        random(5, 3),
        labels(7, 5),
        random(7, 3),
        reduction="mean",
        like=linear_cross_entropy(),
    ),
    Case(
        "linear_cross_entropy",
        random(2, 5, 3),
        labels(7, 2, 5),
        random(7, 3),
        random(7),
        reduction="sum",
        chunk_bytes=100,
        like=linear_cross_entropy(reduction="sum"),
    ),
    Case("nll_loss", random(5, 7), labels(7, 5)),
    Case("nll_loss", random(5, 7, 2), labels(7, 5, 2), reduction="sum"),
    Case("nll_loss", random(5, 7), labels(7, 5), reduction="none"),
    Case("mse_loss", random(5, 7), random(5, 7)),
    Case("mse_loss", random(5, 7), random(5, 7), reduction="sum"),
    Case("mse_loss", random(5, 7), random(5, 7), reduction="none"),
    Case("huber_loss", random(5, 7), random(5, 7)),
    Case("huber_loss", random(5, 7), random(5, 7), reduction="sum", delta=0.4),
    Case("huber_loss", random(5, 7), random(5, 7), reduction="none", delta=2.5),
]
