# SPDX-License-Identifier: MIT
"""What all forms share: the table, and casts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .._builder import Builder

Node = torch.fx.Node


Form = Callable[..., Any]


# By "name.overload", or by "name" for all overloads.
FORMS: dict[str, Form] = {}


def form(*names: str) -> Callable[[Form], Form]:
    """Puts a function into the table."""

    def register(function: Form) -> Form:
        FORMS.update(dict.fromkeys(names, function))
        return function

    return register


def operator_name(b: Builder) -> str:
    """The operator of the node that is being visited, without its overload: "flip"."""
    return str(b.node.target).split(".")[1]


def cast(b: Builder, x: Node, wanted: torch.dtype) -> Any:
    """A tensor in another type."""
    return x if b.value(x).dtype == wanted else b.layer("Cast", [x], {"dtype": b.dtype(wanted)})


def widened(b: Builder, x: Node) -> str:
    """A tensor of 16 bits as floats; others stay."""
    dtype = b.value(x).dtype
    return str(cast(b, x, torch.float32)) if dtype in (torch.float16, torch.bfloat16) else b.tensor(x)


def rounded(b: Builder, made: str, like: Node) -> str:
    """What was made of widened tensors in the type of one of them."""
    dtype = b.value(like).dtype
    return str(b.layer("Cast", [made], {"dtype": b.dtype(dtype)})) if dtype in (torch.float16, torch.bfloat16) else made


def only_floats(b: Builder, *tensors: Node | None) -> None:
    """Refuses other tensors, of which the layer computes no products."""
    if not all(b.value(x).is_floating_point() for x in tensors if x is not None):
        raise b.no_form("of whole numbers has no form in a network of dlprim")


def spread(values: Sequence[int], count: int) -> list[int]:
    """One number for each dimension of images."""
    return list(values) * (count if len(values) == 1 else 1)
