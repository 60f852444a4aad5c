# SPDX-License-Identifier: MIT
"""The functions of _operators/table.py, made at import. Type checkers read _declared.pyi, which the build writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .._arguments import kept_sizes
from .._core import Call, dtype_name, operator_declarations
from .._operators import define
from .._operators.signatures import Signature, eager_function, signature_of
from .._operators.table import OF_OPS, Row
from . import _derived
from ._machinery import kept, make_call, operator


def call_of(row: Row, signature: Signature) -> Call | Callable[..., Call]:
    """The Call that a function runs or, if it has options, what makes it of their values."""
    names = [each.option or each.name for each in signature.settings]
    count = len(signature.params)
    if not names and not count:
        return make_call(row.operator, row.fixed)

    @kept
    def call(*values: Any) -> Call:
        options = {**row.fixed, **dict(zip(names, values[count:]))}
        if row.derive:
            options.update(getattr(_derived, row.derive)(signature.name, options, *values[:count]))
        how = {name: options.pop(name) for name in ("training", "precision", "engine") if name in options}
        return make_call(row.operator, options, **how)

    return call


def functions() -> dict[str, Callable[..., object]]:
    """The functions by name. They are compiled from text, so that Python itself checks and binds their arguments."""
    declarations = json.loads(operator_declarations())
    scope: dict[str, Any] = {
        "dtype_name": dtype_name,
        "kept_sizes": kept_sizes,
        "present": _derived.present,
        "__name__": __package__,
    }
    text, names = "", []
    for row in OF_OPS:
        signature = signature_of(row, declarations[row.operator])
        names.append(signature.name)
        scope[f"{signature.name}_call"] = call_of(row, signature)
        text += eager_function(row, declarations[row.operator])
    define(text, "<functions of dlprim.ops>", scope)
    return {name: operator(scope[name]) for name in names}


made = functions()
__all__ = sorted(made)
globals().update(made)
