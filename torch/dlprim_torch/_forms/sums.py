# SPDX-License-Identifier: MIT
"""Sums over dimensions, and running ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .._rows import row
from .table import Node, cast, form


@form("cumsum.default", "cumprod.default")
def scan(b: Builder, self: Node, dim: int) -> Any:
    source = cast(b, self, b.value(b.node).dtype)
    return b.layer("Scan", [source], {"method": "sum" if "cumsum" in str(b.node.target) else "prod", "dim": dim})


@form("mean.dim")
def mean(b: Builder, self: Node, dim: Sequence[int] | None, keepdim: bool, dtype: torch.dtype | None) -> Any:
    if b.value(self).dtype != torch.float32 or dtype not in (None, torch.float32):
        return None
    return b.layer(
        "Reduction", [self], {"method": "mean", "dims": list(dim or range(b.rank(self))), "keep_dim": keepdim}
    )


@form("mean.default")
def mean_of_all(b: Builder, self: Node, dtype: torch.dtype | None) -> Any:
    return mean(b, self, None, False, dtype)


@form("sum.default")
def sum_of_all(b: Builder) -> Any:
    return row(b, "dim_IntList", dim=None, keepdim=False)


@form("var.correction", "var_mean.correction")
def variance(b: Builder, self: Node, dim: Sequence[int] | None, correction: float | None, keepdim: bool) -> Any:
    axes = sorted(d % b.rank(self) for d in (dim or range(b.rank(self))))
    text = ",".join(map(str, axes))
    count = math.prod(b.option(b.sizes(self)[d]) for d in axes)
    dtype = b.value(self).dtype
    middle = b.pointwise(f"y0 = mean[{text}](x0)", [self], dtype)
    scale = 1 / max(count - (1 if correction is None else correction), 0) if count != correction else math.nan
    squares = b.pointwise(f"y0 = sum[{text}]((x0 - x1) * (x0 - x1))", [self, middle], dtype, keep_dim=keepdim)
    found = b.pointwise("y0 = x0 * p0", [squares], dtype, scalars=[scale])
    if "var_mean" not in str(b.node.target):
        return found
    kept = [1 if d in axes else size for d, size in enumerate(b.sizes(self))]
    return [found, b.reshape(middle, kept, list(b.value(b.node)[1].shape))]
