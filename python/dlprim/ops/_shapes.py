# SPDX-License-Identifier: MIT
"""Operators that move data. Each makes a new tensor; for what needs no copy, Tensor has views."""

from __future__ import annotations

from collections.abc import Sequence

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import kept, make_call, operator, tensor_tuple


@kept
def concat_call(dim: int) -> Call:
    return make_call("Concat", {"dim": dim})


@operator
def concat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Concatenates tensors along a dimension (in network JSON its default is 1); a negative dim counts from the end.

    Raises InvalidArgumentError (a ValueError) if dtypes differ, or sizes of another dimension.
    """
    return concat_call(dim).one(tensor_tuple(tensors), (), out)


@kept
def slice_call(dim: int, begin: int, end: int | None) -> Call:
    return make_call("Slice", {"dim": dim, "begin": begin, "end": end})


@operator
def slice(input: Tensor, dim: int, begin: int = 0, end: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements begin to end - 1 of a dimension, as x[begin:end] in Python. Negative numbers count from the end.

    Raises InvalidArgumentError (a ValueError) if the slice is empty or exceeds the dimension.
    """
    if end is not None and end < 0:
        sizes = input.shape
        if not -len(sizes) <= dim < len(sizes):
            raise InvalidArgumentError(f"slice: dim {dim} is not a dimension of input {list(sizes)}")
        end += sizes[dim]
        if end < 0:
            raise InvalidArgumentError(f"slice: end is {-end} before the first element of dimension {dim}")
    return slice_call(dim, begin, end).one((input,), (), out)


@kept
def pad_call(pads: Sequence[int], mode: str, value: str) -> Call:
    return make_call("Pad", {"pads": pads, "mode": mode, "value": float(value)})


@operator
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0, *, out: Tensor | None = None
) -> Tensor:
    """Adds elements around a tensor, as torch.nn.functional.pad.

    pad: the numbers of elements before and after the last dimension, then those of the dimension before it, and so on.
    Negative numbers crop. mode: "constant" (value), "reflect", "replicate" or "circular".

    Raises InvalidArgumentError (a ValueError) if the mode or the input does not allow such numbers.
    """
    # As text, because 0.0 and -0.0 are equal but not the same.
    return pad_call(pad, mode, repr(float(value))).one((input,), (), out)
