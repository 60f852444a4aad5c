# SPDX-License-Identifier: MIT
"""What functions of symbols ask of their arguments."""

from __future__ import annotations

from typing import Any

from .._graph import Number, Symbol, describe_value


def shape_of(x: Symbol) -> tuple[int, ...]:
    """The shape of a symbol; of anything else (), since apply() raises the error."""
    return x.shape if isinstance(x, Symbol) else ()


def is_float(x: Symbol) -> bool:
    """Whether a symbol holds floats of any width."""
    return not isinstance(x, Symbol) or x.dtype in ("float32", "float16", "bfloat16", "float64")


def as_index(value: Any) -> int:
    """An index as an int; raises TypeError for what is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"an index is {describe_value(value)}; integers, ranges, '...' and None are possible")
    return int(value.__index__())


def as_number(value: Any) -> Number:
    """A Python number, or the only element of an array; raises TypeError for anything else."""
    if isinstance(value, (int, float)):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return as_number(value.item())
    raise TypeError(
        f"a symbolic tensor cannot be combined with {describe_value(value)}; symbols and numbers can, and "
        "nn.parameter makes a tensor that belongs to the network"
    )
