# SPDX-License-Identifier: MIT
"""Random numbers. Graphs of torch.compile draw those of eager calls (Builder.keyed)."""

from __future__ import annotations

from typing import Any

import torch

from .._builder import Builder
from .table import Node, form


@form("native_dropout.default")
def dropout(b: Builder, input: Node, p: float, train: bool | None) -> Any:
    if b.keyed:
        return keyed_dropout(b, input, p if train is not False else 0)
    return [b.layer("Dropout", [input], {"p": float(p)}) if train is not False else b.tensor(input), None]


def keyed_dropout(b: Builder, x: Node, p: float) -> Any:
    """The result and the mask of an eager call, which draws where there is something to choose."""
    dtypes = [b.dtype(b.value(x).dtype), "bool"]
    if p in (0, 1):
        return b.layer("Pointwise", [x], {"code": f"y0 = x0 * {1 - p}; y1 = {1 - p}", "dtypes": dtypes}, results=2)
    code = "y1 = uniform(x1, x2, 0) >= p0; y0 = y1 ? x0 * p1 : 0"
    options = {"code": code, "scalars": [float(p), 1 / (1 - p)], "dtypes": dtypes}
    return b.layer("Pointwise", [x, *b.draw()], options, results=2)


@form("dropout.default")
def whole_dropout(b: Builder, input: Node, p: float, train: bool) -> Any:
    return dropout(b, input, p, train)[0]


@form("bernoulli.p")
def bernoulli(b: Builder, self: Node, p: float) -> Any:
    return drawn(b, "uniform(x0, x1, 0) < p0", [float(p)])


@form("rand_like.default")
def rand_like(b: Builder) -> Any:
    return drawn(b, "uniform(x0, x1, 0)")


@form("randn_like.default")
def randn_like(b: Builder) -> Any:
    return drawn(b, "normal(x0, x1, 0)")


def drawn(b: Builder, number: str, scalars: list[float] | None = None) -> Any:
    """A tensor of the node's sizes, as an eager call fills it."""
    dtype = b.value(b.node).dtype
    if not b.keyed or dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise b.no_form()
    return b.pointwise(f"y0 = {number}", b.draw(), dtype, shape=b.sizes(b.node), scalars=scalars or [])
