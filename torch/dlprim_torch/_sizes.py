# SPDX-License-Identifier: MIT
"""Sizes of graphs: numbers, or symbols where a size is open, such as that of a batch."""

from __future__ import annotations

from typing import Any

import torch

Sizes = list[Any]  # of int, or torch.SymInt where a size is open


def is_open(size: object) -> bool:
    """Whether a size, or a number made of sizes, is a symbol, such as that of an open batch."""
    return isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool))


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    if is_open(a) and is_open(b):
        return bool(a.node.expr == b.node.expr)
    return not is_open(a) and not is_open(b) and int(a) == int(b)


def hint(size: Any) -> int:
    """A size as it was in the example."""
    return int(size.node.hint) if is_open(size) else int(size)
