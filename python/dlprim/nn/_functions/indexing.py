# SPDX-License-Identifier: MIT
"""Functions of indices and order: parts of tensors that other tensors name, and the largest elements."""

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
