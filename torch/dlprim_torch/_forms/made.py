# SPDX-License-Identifier: MIT
"""Tensors that the graph makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .._sizes import is_open
from .table import form


@form("full.default")
def full(b: Builder, size: Sequence[Any], fill_value: float) -> Any:
    ones, dtype = [1] * len(size), b.value(b.node).dtype
    return b.expand(b.constant(torch.full(ones, fill_value, dtype=dtype)), ones, list(size), dtype)


@form("full_like.default")
def full_like(b: Builder, fill_value: float) -> Any:
    return full(b, b.sizes(b.node), fill_value)


@form(
    "zeros.default",
    "zeros_like.default",
    "new_zeros.default",
    "empty.memory_format",
    "new_empty.default",
    "new_empty_strided.default",
    "empty_permuted.default",
)
def zeros(b: Builder) -> Any:
    return full(b, b.sizes(b.node), 0)


@form("ones.default", "ones_like.default", "new_ones.default")
def ones(b: Builder) -> Any:
    return full(b, b.sizes(b.node), 1)


@form("scalar_tensor.default")
def scalar_tensor(b: Builder, s: float) -> Any:
    return b.constant(torch.tensor(s, dtype=b.value(b.node).dtype))


@form("arange.start_step", "arange.start", "arange.default")
def arange(b: Builder, end: Any) -> Any:
    given, dtype = b.arguments(b.node), b.value(b.node).dtype
    start, step = given.get("start", 0), given.get("step", 1)
    if is_open(end) and start == 0 and step == 1:
        return b.pointwise("y0 = index(0)", [b.batch(end, 1, 0)], dtype)
    return b.constant(torch.arange(*map(b.option, (start, end, step)), dtype=dtype))
