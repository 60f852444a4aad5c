# SPDX-License-Identifier: MIT
"""The functions and layers of _operators/table.py, made at import. Type checkers read _declared.pyi of the build."""

from __future__ import annotations

import json
from typing import Any

from .._arguments import kept_sizes, torch_order
from .._core import operator_declarations
from .._operators import define
from .._operators.signatures import name_of, symbolic
from .._operators.table import LAYERS, OF_NN
from ..summary import dtype_name
from . import _bases
from ._graph import Generic
from ._options import unless


def functions_and_layers() -> dict[str, Any]:
    """The functions and layers by name."""
    scope: dict[str, Any] = {
        **{row.base: getattr(_bases, row.base) for _, row in LAYERS},
        "Generic": Generic,
        "dtype_name": dtype_name,
        "kept_sizes": kept_sizes,
        "torch_order": torch_order,
        "unless": unless,
        "__name__": __package__,
    }
    text = "\n".join(symbolic(OF_NN, LAYERS, json.loads(operator_declarations())))
    define(text, "<functions and layers of dlprim.nn>", scope)
    return {name: scope[name] for name in [*map(name_of, OF_NN), *(name for name, _ in LAYERS)]}


made = functions_and_layers()
__all__ = sorted(made)
globals().update(made)
