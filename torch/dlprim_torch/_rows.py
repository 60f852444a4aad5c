# SPDX-License-Identifier: MIT
"""Pointwise operators and reductions of a graph as the expressions of rows.yaml, which eager calls use, too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from . import _state
from ._builder import Builder
from ._sizes import hint


def row(b: Builder, overload: str | None = None, **others: Any) -> Any:
    """What rows.yaml makes of the node that is being visited; None where it has no row.

    `overload` takes the place of the node's, and `others` join its arguments.
    """
    node = b.node
    stands: dict[int, torch.fx.Node | str] = {}
    keep: list[torch.Tensor] = []

    def stand_in(given: Any) -> Any:
        if isinstance(given, (list, tuple)):
            return [stand_in(item) for item in given]
        if not isinstance(given, torch.fx.Node):
            return b.closed(given)
        kind = wanted if given is given_self and wanted is not None else b.value(given).dtype
        tensor = torch.empty([1] * b.rank(given), dtype=kind, device="meta")
        keep.append(tensor)
        cast = kind != b.value(given).dtype
        stands[id(tensor)] = b.layer("Cast", [given], {"dtype": b.dtype(kind)}) if cast else given
        return tensor

    schema = node.target._schema  # type: ignore[union-attr]
    known = {**b.arguments(node), **others}
    given_self, wanted = known.get("self"), known.get("dtype")
    if (
        schema.name not in ("aten::sum", "aten::prod", "aten::nansum")
        or not b.value(known["self"]).is_floating_point()
        or (wanted is not None and wanted.is_floating_point)
    ):
        wanted = None  # only floats that become whole numbers are cast before they are added
    arguments = {name: stand_in(value) for name, value in known.items()}
    results = b.value(node) if isinstance(b.value(node), (tuple, list)) else [b.value(node)]
    numel = math.prod(hint(size) for size in results[0].shape)
    name = schema.name.removeprefix("aten::")
    programs = _state.module().row_programs(name, overload or schema.overload_name, numel, **arguments)
    if not programs:
        return None
    first, *second = programs
    if not second:
        return program_layer(b, first, stands, results)
    after, between = second
    stands[id(between)] = program_layer(b, first, stands, [between])
    return program_layer(b, after, stands, results)


def program_layer(
    b: Builder, program: dict[str, Any], stands: dict[int, torch.fx.Node | str], results: Sequence[Any]
) -> Any:
    """A row's program as a Pointwise operator with results of these types."""
    sources = [stands[id(tensor)] for tensor in program["inputs"]]
    options = {"code": program["code"]}
    if program["scalars"]:
        options["scalars"] = program["scalars"]
    if not program["keep_dim"] and "[" in program["code"]:
        options["keep_dim"] = False
    types = [result.dtype for result in results]
    if any(tensor.dtype != torch.float32 for tensor in program["inputs"]) or any(t != torch.float32 for t in types):
        options["dtypes"] = [b.dtype(dtype) for dtype in types]
    return b.layer("Pointwise", sources, options, results=len(results))
