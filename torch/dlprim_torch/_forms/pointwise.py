# SPDX-License-Identifier: MIT
"""Activations, and sums and products of two tensors. All other pointwise operators are rows of rows.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .table import Node, form, operator_name

# Functions of one tensor that layers can apply to their results, and the arguments that are options of Activation.
ACTIVATIONS: dict[str, list[str]] = {
    "relu": [],
    "sigmoid": [],
    "tanh": [],
    "silu": [],
    "mish": [],
    "hardswish": [],
    "hardsigmoid": [],
    "hardtanh": ["min_val", "max_val"],
    "leaky_relu": ["negative_slope"],
    "softplus": ["beta", "threshold"],
    "softshrink": ["lambd"],
    "hardshrink": ["lambd"],
}


def activation(b: Builder, kind: str, options: Sequence[str]) -> Any:
    """The layer Activation of the node's argument self. Of other tensors than floats None: rows.yaml promotes."""
    given = b.arguments(b.node)
    source = given["self"]
    if not b.value(source).is_floating_point():
        return None
    found = {name: given[name] for name in options}
    if kind == "hardtanh" and list(found.values()) == [0, 6]:
        kind, found = "relu6", {}
    return b.layer("Activation", [source], {"activation": kind, **found})


@form(*(f"{name}.default" for name in ACTIVATIONS))
def of_table(b: Builder) -> Any:
    return activation(b, operator_name(b), ACTIVATIONS[operator_name(b)])


@form("gelu.default")
def gelu(b: Builder, approximate: str) -> Any:
    return activation(b, "gelu_tanh" if approximate == "tanh" else "gelu", [])


@form("elu.default")
def elu(b: Builder, scale: float, input_scale: float) -> Any:
    return activation(b, "elu", ["alpha"]) if scale == 1 and input_scale == 1 else None


def elementwise(b: Builder, self: Any, other: Any, options: dict[str, Any]) -> Any:
    both = isinstance(self, Node) and isinstance(other, Node)
    if not both or not (b.value(self).dtype == b.value(other).dtype == torch.float32):
        return None
    return b.layer("Elementwise", [self, other], options)


@form("add.Tensor")
def add(b: Builder, self: Any, other: Any, alpha: float) -> Any:
    return elementwise(b, self, other, {} if alpha == 1 else {"coef2": float(alpha)})


@form("sub.Tensor")
def sub(b: Builder, self: Any, other: Any, alpha: float) -> Any:
    return elementwise(b, self, other, {"coef2": -float(alpha)})


@form("mul.Tensor")
def mul(b: Builder, self: Any, other: Any) -> Any:
    return elementwise(b, self, other, {"operation": "prod"})
