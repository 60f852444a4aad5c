# SPDX-License-Identifier: MIT
"""Pointwise programs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from numpy.typing import DTypeLike

from .._core import Call, Tensor, dtype_name
from ._machinery import Ints, Outs, kept, make_call, operator, tensor_tuple


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
