# SPDX-License-Identifier: MIT
"""Activations, and sums and products of two tensors. All other pointwise operators are rows of rows.yaml."""

from __future__ import annotations

from typing import Any

import torch

from .._builder import Builder
from .table import FORMS, Form, Node, form

# Functions of one tensor that layers can apply to their results: the operator, the activation, and its options by the
# names of arguments.
ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "relu": ("relu", {}),
    "sigmoid": ("sigmoid", {}),
    "tanh": ("tanh", {}),
    "silu": ("silu", {}),
    "mish": ("mish", {}),
    "hardswish": ("hardswish", {}),
    "hardsigmoid": ("hardsigmoid", {}),
    "hardtanh": ("hardtanh", {"min_val": "min_val", "max_val": "max_val"}),
    "leaky_relu": ("leaky_relu", {"negative_slope": "negative_slope"}),
    "softplus": ("softplus", {"beta": "beta", "threshold": "threshold"}),
    "softshrink": ("softshrink", {"lambd": "lambd"}),
    "hardshrink": ("hardshrink", {"lambd": "lambd"}),
}


def activation(b: Builder, kind: str, options: dict[str, Any]) -> Any:
    """The layer Activation of the node's argument self. Of other tensors than floats None: rows.yaml promotes."""
    given = b.arguments(b.node)
    source = given["self"]
    if not b.value(source).is_floating_point():
        return None
    found = {name: given[argument] for name, argument in options.items()}
    if kind == "hardtanh" and list(found.values()) == [0, 6]:
        kind, found = "relu6", {}
    return b.layer("Activation", [source], {"activation": kind, **found})


def activation_form(kind: str, options: dict[str, str]) -> Form:
    """The form of a row of ACTIVATIONS."""

    def made(b: Builder) -> Any:
        return activation(b, kind, options)

    return made


FORMS.update({f"{name}.default": activation_form(*row) for name, row in ACTIVATIONS.items()})


@form("gelu.default")
def gelu(b: Builder, approximate: str) -> Any:
    return activation(b, "gelu_tanh" if approximate == "tanh" else "gelu", {})


@form("elu.default")
def elu(b: Builder, scale: float, input_scale: float) -> Any:
    return activation(b, "elu", {"alpha": "alpha"}) if scale == 1 and input_scale == 1 else None


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
