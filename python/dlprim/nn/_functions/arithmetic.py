# SPDX-License-Identifier: MIT
"""Arithmetic of two tensors, or of a tensor and a number, which the operators of Symbol use."""

from __future__ import annotations

from typing import Any

from .._declared import square
from .._graph import Generic, LayerOptions, Number, Symbol, describe_value
from .._options import unless
from .._unpack import Unpack
from .arguments import as_number, is_float
from .programs import unary_program
from .special import activation as apply_activation


def add(
    a: Symbol | Number, b: Symbol | Number, *, activation: str = "identity", **common: Unpack[LayerOptions]
) -> Symbol:
    """a + b, broadcast as in numpy; one of them may be a number. `activation` is applied to the result."""
    return _binary("add", "+", a, b, common, {"activation": unless(activation, "identity")})


def sub(a: Symbol | Number, b: Symbol | Number, **common: Unpack[LayerOptions]) -> Symbol:
    """a - b, broadcast as in numpy; one of them may be a number."""
    return _binary("sub", "-", a, b, common, {"coef2": -1.0})


def mul(
    a: Symbol | Number, b: Symbol | Number, *, activation: str = "identity", **common: Unpack[LayerOptions]
) -> Symbol:
    """a * b, broadcast as in numpy; one of them may be a number. `activation` is applied to the result."""
    return _binary("mul", "*", a, b, common, {"operation": "prod", "activation": unless(activation, "identity")})


def div(a: Symbol | Number, b: Symbol | Number, **common: Unpack[LayerOptions]) -> Symbol:
    """a / b, broadcast as in numpy; one of them may be a number."""
    return _binary("div", "/", a, b, common, None)


def maximum(a: Symbol, b: Symbol, *, activation: str = "identity", **common: Unpack[LayerOptions]) -> Symbol:
    """The larger one of each pair of elements of two tensors, broadcast as in numpy."""
    options = {"operation": "max", "activation": unless(activation, "identity")}
    return Generic("Elementwise", "maximum", options, common).apply(a, b)[0]


def weighted_sum(
    a: Symbol,
    b: Symbol,
    coef1: float = 1.0,
    coef2: float = 1.0,
    *,
    activation: str = "identity",
    **common: Unpack[LayerOptions],
) -> Symbol:
    """coef1 a + coef2 b, broadcast as in numpy."""
    options = {"coef1": coef1, "coef2": coef2, "activation": unless(activation, "identity")}
    return Generic("Elementwise", "weighted_sum", options, common).apply(a, b)[0]


def pow(x: Symbol, exponent: Number, **common: Unpack[LayerOptions]) -> Symbol:
    """x to the power of a number."""
    if as_number(exponent) == 2 and is_float(x):
        return square(x, **common)
    return unary_program("pow", "y0 = pow(x0, p0)", x, common, [as_number(exponent)])


def _binary(
    prefix: str, sign: str, a: Symbol | Number, b: Symbol | Number, common: LayerOptions, options: dict[str, Any] | None
) -> Symbol:
    """Uses Elementwise if it has the operation and the tensors are floats, and otherwise an equal Pointwise program."""
    if isinstance(a, Symbol) and isinstance(b, Symbol):
        if options is not None and is_float(a):
            return Generic("Elementwise", prefix, options, common).apply(a, b)[0]
        return Generic("Pointwise", prefix, {"code": f"y0 = x0 {sign} x1"}, common).apply(a, b)[0]
    if isinstance(a, Symbol):
        x, left, right, factor = a, "x0", "{}", as_number(b)
    elif isinstance(b, Symbol):
        x, left, right, factor = b, "{}", "x0", as_number(a)
    else:
        raise TypeError(f"nn.{prefix} takes {describe_value(a)} and {describe_value(b)}; one of them must be a symbol")
    code = f"y0 = {left} {sign} {right}"
    if is_float(x) or isinstance(factor, float):
        made = unary_program(prefix, code.format("p0"), x, common, [factor])
    else:  # a literal, with which integers stay integers
        made = unary_program(prefix, code.format(f"({factor:d})"), x, common)
    act = (options or {}).get("activation")
    return made if act is None else apply_activation(made, act)
