# SPDX-License-Identifier: MIT
"""Expressions in the language of docs/pointwise.md."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...errors import InvalidArgumentError
from .._graph import Generic, LayerOptions, Number, Symbol, describe_value
from .._options import unless
from .._unpack import Unpack
from .arguments import as_number


def pointwise(
    code: str,
    *inputs: Symbol,
    scalars: Sequence[Number] = (),
    dtypes: Sequence[str] = (),
    keepdim: bool = True,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Computes an expression in one kernel: ``nn.pointwise("y0 = max(x0 * p0, x1)", a, b, scalars=[2])``.

    docs/pointwise.md describes the language. The inputs x0, x1, ... broadcast as in numpy. For programs with several
    outputs use `pointwise_all`.
    """
    made = pointwise_all(code, *inputs, scalars=scalars, dtypes=dtypes, keepdim=keepdim, **common)
    if len(made) != 1:
        raise InvalidArgumentError(f"the program makes {len(made)} outputs; nn.pointwise_all returns all of them")
    return made[0]


def pointwise_all(
    code: str,
    *inputs: Symbol,
    scalars: Sequence[Number] = (),
    dtypes: Sequence[str] = (),
    keepdim: bool = True,
    **common: Unpack[LayerOptions],
) -> tuple[Symbol, ...]:
    """The outputs y0, y1, ... of a program (docs/pointwise.md)."""
    if not isinstance(code, str):
        raise TypeError(f"nn.pointwise: the code is {describe_value(code)}; a string such as 'y0 = x0 + x1' is needed")
    options = {
        "code": code,
        "scalars": [as_number(value) for value in scalars] or None,
        "dtypes": list(dtypes) or None,
        "keep_dim": unless(keepdim, True),
    }
    outputs = 1 + max((int(digits) for digits in re.findall(r"\by(\d{1,4})\s*=(?!=)", code)), default=0)
    return Generic("Pointwise", "pointwise", options, common, outputs).apply(*inputs)


def unary_program(prefix: str, code: str, x: Symbol, common: LayerOptions, scalars: Sequence[Number] = ()) -> Symbol:
    """Applies the program `code`, which makes y0 of x0 and of the scalars p0, p1, ..., to one tensor."""
    options = {"code": code, "scalars": list(scalars) or None}
    return Generic("Pointwise", prefix, options, common).apply(x)[0]
