# SPDX-License-Identifier: MIT
"""Functions of indices and order: parts of tensors that other tensors name, the largest elements, and positions."""

from __future__ import annotations

from .._graph import Generic, LayerOptions, Symbol
from .._layers.options import unless
from .._unpack import Unpack


def gather(x: Symbol, dim: int, index: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """Elements at positions along `dim`, as torch.gather. `index` is int32 or int64; below 0 it counts from the end."""
    return Generic("Gather", "gather", {"mode": "elements", "dim": dim}, common).apply(x, index)[0]


def index_select(x: Symbol, dim: int, index: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """Rows of `dim`, as torch.index_select. The dimensions of `index` take the place of `dim`."""
    return Generic("Gather", "index_select", {"dim": dim}, common).apply(x, index)[0]


def gather_nd(x: Symbol, index: Symbol, *, batch_dims: int = 0, **common: Unpack[LayerOptions]) -> Symbol:
    """Slices at the tuples in the last dimension of `index`. The first `batch_dims` dimensions are common to both."""
    options = {"mode": "tuples", "batch_dims": unless(batch_dims, 0)}
    return Generic("Gather", "gather_nd", options, common).apply(x, index)[0]


def scatter(
    x: Symbol, dim: int, index: Symbol, src: Symbol, *, reduction: str = "none", **common: Unpack[LayerOptions]
) -> Symbol:
    """x with elements of `src` at positions along `dim`, as torch.scatter.

    `reduction` is "none" (of several elements for one place the last counts), "add", "mul", "max" or "min".
    """
    options = {"mode": "elements", "dim": dim, "reduction": unless(reduction, "none")}
    return Generic("Scatter", "scatter", options, common).apply(x, index, src)[0]


def scatter_nd(
    x: Symbol,
    index: Symbol,
    src: Symbol,
    *,
    batch_dims: int = 0,
    reduction: str = "none",
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The same of slices at the tuples in the last dimension of `index`."""
    options = {"mode": "tuples", "batch_dims": unless(batch_dims, 0), "reduction": unless(reduction, "none")}
    return Generic("Scatter", "scatter_nd", options, common).apply(x, index, src)[0]


def topk(
    x: Symbol, k: int, dim: int = -1, *, largest: bool = True, **common: Unpack[LayerOptions]
) -> tuple[Symbol, ...]:
    """The largest or smallest `k` elements along `dim`, in order, and their positions, as torch.topk."""
    options = {"k": k, "dim": unless(dim, -1), "largest": unless(largest, True)}
    return Generic("TopK", "topk", options, common, 2).apply(x)


def sort(x: Symbol, dim: int = -1, *, descending: bool = False, **common: Unpack[LayerOptions]) -> tuple[Symbol, ...]:
    """Sorted elements along `dim` and their positions, as torch.sort with stable=True."""
    options = {"dim": unless(dim, -1), "descending": unless(descending, False)}
    return Generic("Sort", "sort", options, common, 2).apply(x)


def argmax(x: Symbol, dim: int | None = None, *, keepdim: bool = False, **common: Unpack[LayerOptions]) -> Symbol:
    """The int64 positions of maxima along `dim`, as torch.argmax. Without `dim`, that of the flattened x.

    Of equal elements it is the first, and a NaN comes before all numbers. With `keepdim`, `dim` remains with size 1.
    """
    return _extremes("max", "argmax", x, dim, keepdim, False, common)[0]


def argmin(x: Symbol, dim: int | None = None, *, keepdim: bool = False, **common: Unpack[LayerOptions]) -> Symbol:
    """The int64 positions of minima along `dim`, as torch.argmin. Without `dim`, that of the flattened x.

    Of equal elements it is the first, and a NaN comes before all numbers. With `keepdim`, `dim` remains with size 1.
    """
    return _extremes("min", "argmin", x, dim, keepdim, False, common)[0]


def max(x: Symbol, dim: int, *, keepdim: bool = False, **common: Unpack[LayerOptions]) -> tuple[Symbol, ...]:
    """The maxima along `dim` and their int64 positions, as torch.max(x, dim). `argmax` describes positions."""
    return _extremes("max", "max", x, dim, keepdim, True, common)


def min(x: Symbol, dim: int, *, keepdim: bool = False, **common: Unpack[LayerOptions]) -> tuple[Symbol, ...]:
    """The minima along `dim` and their int64 positions, as torch.min(x, dim). `argmin` describes positions."""
    return _extremes("min", "min", x, dim, keepdim, True, common)


def _extremes(
    method: str, prefix: str, x: Symbol, dim: int | None, keepdim: bool, values: bool, common: LayerOptions
) -> tuple[Symbol, ...]:
    options = {
        "method": unless(method, "max"),
        "dim": dim,
        "keep_dim": unless(keepdim, False),
        "values": unless(values, True),
    }
    return Generic("ArgReduce", prefix, options, common, 2 if values else 1).apply(x)


def nonzero(
    x: Symbol, *, size: int | None = None, fill_value: int = -1, flat: bool = False, **common: Unpack[LayerOptions]
) -> tuple[Symbol, ...]:
    """The int64 positions [size, dimensions] of the elements that are not 0, in row-major order, and their number [1].

    Rows of `fill_value` stand behind the last position. Without `size`, there are as many rows as elements. With
    `flat`, positions have shape [size] and count in the flattened x.
    """
    options = {"size": size, "fill": unless(fill_value, -1), "flat": unless(flat, False)}
    return Generic("Nonzero", "nonzero", options, common, 2).apply(x)
