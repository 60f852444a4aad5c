# SPDX-License-Identifier: MIT
"""Sums over dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from .._graph import Generic, LayerOptions, Symbol
from .._options import unless
from .._unpack import Unpack


def reduce(
    x: Symbol,
    method: str = "sum",
    dims: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    scale: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Sums over dimensions; without `dims`, over all.

    `method` is "sum", "sumsq" (of squares), "abssum" (of absolute values) or "mean". The result is multiplied by
    `scale`. With `keepdim`, reduced dimensions remain with size 1.
    """
    options = {
        "method": unless(method, "sum"),
        "dims": [dims] if isinstance(dims, int) else dims,
        "keep_dim": keepdim,
        "output_scale": unless(scale, 1.0),
    }
    prefix = method if isinstance(method, str) and method.isidentifier() else "reduce"
    return Generic("Reduction", prefix, options, common).apply(x)[0]


def sum(
    x: Symbol, dims: int | Sequence[int] | None = None, *, keepdim: bool = False, **common: Unpack[LayerOptions]
) -> Symbol:
    """The sum over dimensions; without `dims`, over all."""
    return reduce(x, "sum", dims, keepdim=keepdim, **common)


def mean(
    x: Symbol, dims: int | Sequence[int] | None = None, *, keepdim: bool = False, **common: Unpack[LayerOptions]
) -> Symbol:
    """The mean over dimensions; without `dims`, over all."""
    return reduce(x, "mean", dims, keepdim=keepdim, **common)
