# SPDX-License-Identifier: MIT
"""The functions of _table.py. Type checkers read _declared.pyi in place of this module, which the build writes."""

from __future__ import annotations

import json
import linecache
from collections.abc import Callable
from typing import Any

from .._core import Call, dtype_name, operator_declarations
from ._machinery import kept, make_call, operator
from ._signatures import Signature, definition, signature_of
from ._table import TABLE, Row

#: What tracebacks call the text of the functions.
SOURCE = "<functions of dlprim.ops>"


def call_of(row: Row, signature: Signature) -> Call | Callable[..., Call]:
    """The Call that a function runs or, if it has options, what makes it of their values."""
    names = [each.option or each.name for each in signature.settings]
    if not names:
        return make_call(row.operator, row.fixed)

    @kept
    def call(*values: Any) -> Call:
        options = {**row.fixed, **dict(zip(names, values))}
        how = {name: options.pop(name) for name in ("training", "precision", "engine") if name in options}
        return make_call(row.operator, options, **how)

    return call


def functions() -> dict[str, Callable[..., object]]:
    """The functions by name. They are compiled from text, so that Python itself checks and binds their arguments."""
    declarations = json.loads(operator_declarations())
    scope: dict[str, Any] = {"dtype_name": dtype_name, "__name__": __package__}
    text, names = "", []
    for row in TABLE:
        signature = signature_of(row, declarations[row.operator])
        names.append(signature.name)
        scope[f"{signature.name}_call"] = call_of(row, signature)
        text += definition(row, declarations[row.operator])
    linecache.cache[SOURCE] = (len(text), None, text.splitlines(keepends=True), SOURCE)  # for tracebacks
    exec(compile(text, SOURCE, "exec"), scope)
    return {name: operator(scope[name]) for name in names}


made = functions()
__all__ = sorted(made)
globals().update(made)
