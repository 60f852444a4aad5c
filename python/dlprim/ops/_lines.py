# SPDX-License-Identifier: MIT
"""Maxima and their positions, running results along a dimension, and the positions of what is not 0."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import DTypeLike

from .._core import Call, Tensor, dtype_name
from ._machinery import kept, make_call, operator


@kept
def arg_reduce_call(method: str, dim: int | None, keepdim: bool, values: bool) -> Call:
    return make_call("ArgReduce", {"method": method, "dim": dim, "keep_dim": keepdim, "values": values})


@operator
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The int64 positions of maxima along a dimension, as torch.argmax. Without dim, that of the flattened input.

    Of equal elements it is the first, and a NaN comes before all numbers. keepdim: the dimension stays, with size 1.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension, or there are no elements.
    """
    return arg_reduce_call("max", dim, keepdim, False).one((input,), (), out)


@operator
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The int64 positions of minima along a dimension, as torch.argmin. Without dim, that of the flattened input.

    Of equal elements it is the first, and a NaN comes before all numbers. keepdim: the dimension stays, with size 1.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension, or there are no elements.
    """
    return arg_reduce_call("min", dim, keepdim, False).one((input,), (), out)


@operator
def max(
    input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor | None] | None = None
) -> tuple[Tensor, ...]:
    """The maxima along a dimension and their int64 positions, as torch.max(input, dim).

    `argmax` describes positions and keepdim. The gradient goes to the elements at these positions.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension, or there are no elements.
    """
    return arg_reduce_call("max", dim, keepdim, True).all((input,), (), out)


@operator
def min(
    input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor | None] | None = None
) -> tuple[Tensor, ...]:
    """The minima along a dimension and their int64 positions, as torch.min(input, dim).

    `argmin` describes positions and keepdim. The gradient goes to the elements at these positions.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension, or there are no elements.
    """
    return arg_reduce_call("min", dim, keepdim, True).all((input,), (), out)


@kept
def scan_call(method: str, dim: int, reverse: bool, exclusive: bool = False, dtype: str | None = None) -> Call:
    options = {"method": method, "dim": dim, "reverse": reverse, "exclusive": exclusive, "dtype": dtype}
    return make_call("Scan", options)


@operator
def cumsum(
    input: Tensor,
    dim: int,
    *,
    dtype: DTypeLike | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Running sums along a dimension, as torch.cumsum: for each element the sum of the line up to it, itself included.

    reverse: lines are walked from their end. exclusive: an element itself does not count, so that sums begin with 0.
    dtype: the integer dtype in which integers are summed. Without it the result has the input's dtype (in PyTorch
    sums of integers are int64).

    Raises InvalidArgumentError (a ValueError) if there is no such dimension, or if the dtype does not fit.
    """
    kernel = scan_call("sum", dim, reverse, exclusive, None if dtype is None else dtype_name(dtype))
    return kernel.one((input,), (), out)


@operator
def cumprod(
    input: Tensor,
    dim: int,
    *,
    dtype: DTypeLike | None = None,
    reverse: bool = False,
    exclusive: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Running products along a dimension, as torch.cumprod. With `exclusive` they begin with 1.

    The keywords are those of `cumsum`.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension, or if the dtype does not fit.
    """
    kernel = scan_call("prod", dim, reverse, exclusive, None if dtype is None else dtype_name(dtype))
    return kernel.one((input,), (), out)


@operator
def cummax(
    input: Tensor, dim: int, *, reverse: bool = False, out: Sequence[Tensor | None] | None = None
) -> tuple[Tensor, ...]:
    """Running maxima along a dimension and their int64 positions, as torch.cummax.

    Of equal elements the position is that of the last. reverse: lines are walked from their end.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension.
    """
    return scan_call("max", dim, reverse).all((input,), (), out)


@operator
def cummin(
    input: Tensor, dim: int, *, reverse: bool = False, out: Sequence[Tensor | None] | None = None
) -> tuple[Tensor, ...]:
    """Running minima along a dimension and their int64 positions, as torch.cummin.

    Of equal elements the position is that of the last. reverse: lines are walked from their end.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension.
    """
    return scan_call("min", dim, reverse).all((input,), (), out)


@operator
def logcumsumexp(input: Tensor, dim: int, *, reverse: bool = False, out: Tensor | None = None) -> Tensor:
    """The logarithms of running sums of exp(input) along a dimension, as torch.logcumsumexp.

    reverse: lines are walked from their end. No exponential overflows.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension, or the input is not of floats.
    """
    return scan_call("logsumexp", dim, reverse).one((input,), (), out)


@kept
def nonzero_call(size: int | None, fill_value: int, flat: bool) -> Call:
    return make_call("Nonzero", {"size": size, "fill": fill_value, "flat": flat})


@operator
def nonzero(
    input: Tensor,
    *,
    size: int | None = None,
    fill_value: int = -1,
    flat: bool = False,
    out: Sequence[Tensor | None] | None = None,
) -> tuple[Tensor, ...]:
    """The positions of the elements that are not 0, as torch.nonzero_static, and how many elements these are.

    Returns (positions, count). positions: int64 of shape [size, dimensions of the input], in row-major order, with
    rows of fill_value behind the last. count: int64 of shape [1], which may be more than size. The call does not wait
    to learn the count: `positions[: count.item()]` is torch.nonzero, and waits.
    size: the number of rows; without it as many as the input has elements.
    flat: positions have shape [size] and count in the flattened input.

    Raises InvalidArgumentError (a ValueError) if size is below 0.
    """
    return nonzero_call(size, fill_value, flat).all((input,), (), out)
