# SPDX-License-Identifier: MIT
"""Activations whose arguments are not their operator's options; _table.py has the others."""

from __future__ import annotations

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import kept, make_call, operator

GELU = {
    "none": make_call("Activation", {"activation": "gelu"}),
    "tanh": make_call("Activation", {"activation": "gelu_tanh"}),
}


@operator
def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """x Phi(x), where Phi is the normal distribution function, computed by erf.

    With approximate="tanh" it is approximated by tanh. Raises ValueError on another approximation, and
    InvalidArgumentError if the dtype is not a float type.
    """
    kernel = GELU.get(approximate)
    if kernel is None:
        raise InvalidArgumentError(f"gelu: approximate '{approximate}' is not one of 'none', 'tanh'")
    return kernel.one((input,), (), out)


@kept
def prelu_call(count: int) -> Call:
    return make_call("PReLU", {"num_parameters": count})


@operator
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x if x > 0, else weight x.

    input: [N, C, ...]. weight: [1] or [C]. Raises InvalidArgumentError (a ValueError) on other shapes.
    """
    shape = weight.shape
    return prelu_call(shape[0] if shape else 1).one((input,), (weight,), out)
