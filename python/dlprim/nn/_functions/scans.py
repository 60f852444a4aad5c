# SPDX-License-Identifier: MIT
"""Running sums, products, maxima and minima along a dimension."""

from __future__ import annotations

from typing import Any

from ...summary import dtype_name
from .._graph import Generic, LayerOptions, Symbol
from .._layers.options import unless
from .._unpack import Unpack


def cumsum(
    x: Symbol,
    dim: int,
    *,
    dtype: Any = None,
    reverse: bool = False,
    exclusive: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Running sums along `dim`, as torch.cumsum: for each element the sum of the line up to it, itself included.

    With `reverse`, lines are walked from their end. With `exclusive`, an element itself does not count. `dtype` is the
    integer type in which integers are summed; without it the result has the type of x.
    """
    return _running_total("sum", "cumsum", x, dim, dtype, reverse, exclusive, common)


def cumprod(
    x: Symbol,
    dim: int,
    *,
    dtype: Any = None,
    reverse: bool = False,
    exclusive: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Running products along `dim`, as torch.cumprod. The keywords are those of `cumsum`."""
    return _running_total("prod", "cumprod", x, dim, dtype, reverse, exclusive, common)


def cummax(x: Symbol, dim: int, *, reverse: bool = False, **common: Unpack[LayerOptions]) -> tuple[Symbol, ...]:
    """Running maxima along `dim` and their int64 positions, as torch.cummax. Of equal elements the last counts.

    With `reverse`, lines are walked from their end.
    """
    return Generic("Scan", "cummax", {"method": "max", "dim": dim, "reverse": unless(reverse, False)}, common, 2).apply(
        x
    )


def cummin(x: Symbol, dim: int, *, reverse: bool = False, **common: Unpack[LayerOptions]) -> tuple[Symbol, ...]:
    """Running minima along `dim` and their int64 positions, as torch.cummin. Of equal elements the last counts.

    With `reverse`, lines are walked from their end.
    """
    return Generic("Scan", "cummin", {"method": "min", "dim": dim, "reverse": unless(reverse, False)}, common, 2).apply(
        x
    )


def logcumsumexp(x: Symbol, dim: int, *, reverse: bool = False, **common: Unpack[LayerOptions]) -> Symbol:
    """The logarithms of running sums of exp(x) along `dim`, as torch.logcumsumexp.

    With `reverse`, lines are walked from their end.
    """
    options = {"method": "logsumexp", "dim": dim, "reverse": unless(reverse, False)}
    return Generic("Scan", "logcumsumexp", options, common).apply(x)[0]


def _running_total(
    method: str, prefix: str, x: Symbol, dim: int, dtype: Any, reverse: bool, exclusive: bool, common: LayerOptions
) -> Symbol:
    options = {
        "method": unless(method, "sum"),
        "dim": dim,
        "reverse": unless(reverse, False),
        "exclusive": unless(exclusive, False),
        "dtype": None if dtype is None else dtype_name(dtype),
    }
    return Generic("Scan", prefix, options, common).apply(x)[0]
