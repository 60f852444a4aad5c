# SPDX-License-Identifier: MIT
"""Arithmetic of two tensors that broadcast as in numpy, reductions, and pointwise programs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from numpy.typing import DTypeLike

from .._core import Call, Tensor, dtype_name
from ._machinery import Ints, Outs, kept, make_call, operator, tensor_tuple


@kept
def elementwise_call(
    operation: str, coef1: float, coef2: float, activation: str | None, engine: str | None = None
) -> Call:
    options = {"operation": operation, "coef1": coef1, "coef2": coef2, "activation": activation}
    return make_call("Elementwise", options, engine=engine)


@operator
def elementwise(
    input: Tensor,
    other: Tensor,
    *,
    operation: str = "sum",
    coef1: float = 1.0,
    coef2: float = 1.0,
    activation: str | None = None,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """activation(operation(coef1 input, coef2 other)). operation is "sum", "prod" or "max".

    Shapes broadcast as in numpy. If both are equal, "max" passes its gradient to the first. Raises InvalidArgumentError
    (a ValueError) if shapes do not broadcast, or on another operation or activation.
    """
    return elementwise_call(operation, coef1, coef2, activation, engine).one((input, other), (), out)


@operator
def add(input: Tensor, other: Tensor, *, alpha: float = 1.0, out: Tensor | None = None) -> Tensor:
    """input + alpha other; shapes broadcast as in numpy. Raises InvalidArgumentError if they do not."""
    return elementwise_call("sum", 1.0, alpha, None).one((input, other), (), out)


@operator
def sub(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input - other; shapes broadcast as in numpy. Raises InvalidArgumentError if they do not."""
    return elementwise_call("sum", 1.0, -1.0, None).one((input, other), (), out)


@operator
def mul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of each pair; shapes broadcast as in numpy. Raises InvalidArgumentError if they do not."""
    return elementwise_call("prod", 1.0, 1.0, None).one((input, other), (), out)


DIV = Call("Pointwise", '{"code": "y0 = x0 / x1"}')
MINIMUM = Call("Pointwise", '{"code": "y0 = min(x0, x1)"}')


@operator
def div(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input / other; shapes broadcast as in numpy. Raises InvalidArgumentError if they do not."""
    return DIV.one((input, other), (), out)


@operator
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger one of each pair; shapes broadcast as in numpy. If both are equal, the gradient goes to the first."""
    return elementwise_call("max", 1.0, 1.0, None).one((input, other), (), out)


@operator
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller one of each pair; shapes broadcast as in numpy. If both are equal, the gradient goes to the first."""
    return MINIMUM.one((input, other), (), out)


@kept
def reduction_call(
    method: str, dims: Ints | None, start_axis: int, keep_dim: bool, output_scale: float, engine: str | None = None
) -> Call:
    options = {
        "method": method,
        "dims": dims,
        "start_axis": start_axis,
        "keep_dim": keep_dim,
        "output_scale": output_scale,
    }
    return make_call("Reduction", options, engine=engine)


@operator
def reduction(
    input: Tensor,
    *,
    method: str = "sum",
    dims: Ints | None = None,
    start_axis: int = 0,
    keep_dim: bool = True,
    output_scale: float = 1.0,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """output_scale times a reduction over dimensions.

    method: the sum of x ("sum"), of x x ("sumsq") or of abs(x) ("abssum"), or the mean ("mean").

    dims: one or several dimensions; negative ones count from the end. Without dims, all from start_axis on are reduced.
    keep_dim: reduced dimensions remain with size 1. If no dimension remains, the result is [1].

    Raises InvalidArgumentError (a ValueError) if the input has no such dimension, or on another method.
    """
    return reduction_call(method, dims, start_axis, keep_dim, output_scale, engine).one((input,), (), out)


@operator
def sum(input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum over one or several dimensions, or over all. If no dimension remains, the result is [1].

    Raises InvalidArgumentError (a ValueError) if the input has no such dimension.
    """
    return reduction_call("sum", dim, 0, keepdim, 1.0).one((input,), (), out)


@operator
def mean(input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The mean over one or several dimensions, or over all. If no dimension remains, the result is [1].

    Raises InvalidArgumentError (a ValueError) if the input has no such dimension.
    """
    return reduction_call("mean", dim, 0, keepdim, 1.0).one((input,), (), out)


@kept
def pointwise_call(
    code: str,
    scalars: bytes,
    dtypes: str | Sequence[DTypeLike] | None,
    keep_dim: bool,
    shape: Ints | None,
    engine: str | None,
) -> Call:
    names = [dtypes] if isinstance(dtypes, str) else dtypes
    options = {
        "code": code,
        "scalars": list(array("d", scalars)),
        "dtypes": None if names is None else [dtype_name(each) for each in names],
        "keep_dim": keep_dim,
        "shape": [shape] if isinstance(shape, int) else shape,
    }
    return make_call("Pointwise", options, engine=engine)


@operator
def pointwise(
    code: str,
    inputs: Tensor | Sequence[Tensor],
    scalars: Sequence[float] = (),
    *,
    dtypes: str | Sequence[DTypeLike] | None = None,
    keep_dim: bool = True,
    shape: Ints | None = None,
    out: Outs = None,
    engine: str | None = None,
) -> tuple[Tensor, ...]:
    """Generates a kernel from a program over tensors and runs it; docs/pointwise.md describes the language.

    `total, squares = dlprim.ops.pointwise("y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0 * x0)", [x])`

    code: assignments to y0, y1, ... from x0, x1, ... (the inputs, which broadcast as in numpy) and p0, p1, ... (the
    scalars). Kernels are cached by code and scalars, so a number that changes from call to call should be an input.
    dtypes: types of the results, one for all or one for each. By default they follow from the inputs.
    keep_dim: reduced dimensions remain with size 1.
    shape: another shape that takes part in the broadcast.

    Returns a tuple of y0, y1, ... Raises InvalidArgumentError (a ValueError) if the program has a syntax error, which
    the message locates, or if shapes do not broadcast.
    """
    # As bytes, because 0.0 and -0.0 are equal but not the same.
    kernel = pointwise_call(code, array("d", scalars).tobytes(), dtypes, keep_dim, shape, engine)
    return kernel.all(tensor_tuple(inputs), (), out)
