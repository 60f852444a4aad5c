# SPDX-License-Identifier: MIT
"""Elementwise operators, reductions and programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .case import Case, apart, positive, random


def gated(name: str, second: bool, dim: int = -1) -> Callable[..., Any]:
    """A function of one half times the other."""

    def run(torch: Any, x: Any, *_: Any) -> Any:
        value, gate = x.chunk(2, dim) if second else reversed(x.chunk(2, dim))
        return value * getattr(torch.nn.functional, name)(gate)

    return run


ELEMENTWISE = [
    Case("add", random(3, 4), random(3, 4)),
    Case("add", random(3, 1, 4), random(2, 1), alpha=0.5),
    *(Case(name, random(3, 4), positive(4)) for name in ("sub", "mul", "div")),
    *(Case(name, apart(3, 4), random(4)) for name in ("maximum", "minimum")),
    Case(
        "elementwise",
        random(3, 4),
        random(3, 4),
        operation="prod",
        coef1=2.0,
        coef2=0.5,
        activation="sigmoid",
        like=lambda torch, a, b: torch.sigmoid(a * b),
    ),
    Case(
        "elementwise",
        random(3, 4),
        random(3, 4),
        coef1=2.0,
        coef2=-0.5,
        like=lambda torch, a, b: 2 * a - 0.5 * b,
    ),
    Case("gated_activation", random(3, 8), like=gated("silu", False)),
    Case("gated_activation", random(3, 6, 2), "gelu", gate="second", dim=1, like=gated("gelu", True, 1)),
    Case("sum", random(3, 4, 5), like=lambda torch, x: x.sum()[None]),
    Case("sum", random(3, 4, 5), (0, -1), keepdim=True, like=lambda torch, x, dim: x.sum(dim, keepdim=True)),
    Case("mean", random(3, 4, 5), 1),
    Case("mean", random(3, 4, 5), [0, 1]),
    Case("reduction", random(3, 4), method="sumsq", dims=-1, like=lambda torch, x: (x * x).sum(-1, keepdim=True)),
    Case(
        "reduction",
        random(3, 4, 5),
        method="abssum",
        start_axis=1,
        keep_dim=False,
        output_scale=0.25,
        like=lambda torch, x: 0.25 * x.abs().sum((1, 2)),
    ),
    Case(
        "pointwise",
        "y0 = sum[0,2](x0); y1 = x0 * x1 + p0",
        [random(3, 4, 5), random(5)],
        [0.5],
        like=lambda torch, _, x, p: (x[0].sum((0, 2), keepdim=True), x[0] * x[1] + p[0]),
    ),
    Case(
        "pointwise",
        "y0 = max[1](x0)",
        apart(3, 4),
        keep_dim=False,
        like=lambda torch, _, x: x.amax(1),
    ),
    Case(
        "pointwise",
        "y0 = x0 * index(0)",
        random(1, 4),
        shape=(3, 1),
        like=lambda torch, _, x: x * torch.arange(3.0)[:, None],
    ),
]
