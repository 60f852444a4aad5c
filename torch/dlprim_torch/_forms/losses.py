# SPDX-License-Identifier: MIT
"""Softmax and losses, and their gradients."""

from __future__ import annotations

from typing import Any

from .._builder import Builder
from .table import Node, form

REDUCED = ("none", "mean", "sum")


@form("_softmax.default", "softmax.int")
def softmax(b: Builder, self: Node, dim: int) -> Any:
    return b.layer("Softmax", [self], {"axis": dim})


@form("_log_softmax.default", "log_softmax.int")
def log_softmax(b: Builder, self: Node, dim: int) -> Any:
    return b.layer("Softmax", [self], {"axis": dim, "log": True})


@form("_safe_softmax.default")
def safe_softmax(b: Builder, self: Node, dim: int, dtype: Any) -> Any:
    """Softmax whose rows of -inf alone become zeros."""
    if dtype is not None and dtype != b.value(self).dtype:
        raise b.no_form("that converts its argument has no form in a network of dlprim")
    largest = b.pointwise(f"y0 = max[{dim % b.rank(self)}](x0)", [self], dtype=b.value(self).dtype)
    weights = b.layer("Softmax", [self], {"axis": dim})
    return b.pointwise("y0 = x1 == p0 ? 0 : x0", [weights, largest], b.value(self).dtype, scalars=["-inf"])


@form("_softmax_backward_data.default", "_log_softmax_backward_data.default")
def softmax_backward(b: Builder, grad_output: Node, output: Node, dim: int) -> Any:
    options = {"axis": dim, "log": "log" in str(b.node.target)}
    return b.layer("SoftmaxBackward", [grad_output, output], options)


@form("nll_loss_forward.default", "nll_loss2d_forward.default")
def nll_loss(b: Builder, self: Node, target: Node, weight: Node | None, reduction: int, ignore_index: int) -> Any:
    options: dict[str, Any] = {"reduce": REDUCED[reduction], "ignore_index": ignore_index}
    if b.rank(self) < 2:
        raise b.no_form("of one row has no form in a network of dlprim")
    wants = b.used(1)
    if wants:
        options["return_weight"] = True
    return b.layer(
        "NLLLoss", [self, target] + ([weight] if weight is not None else []), options, results=2 if wants else 1
    )


@form("nll_loss_backward.default", "nll_loss2d_backward.default")
def nll_loss_backward(
    b: Builder,
    grad_output: Node,
    self: Node,
    target: Node,
    weight: Node | None,
    reduction: int,
    ignore_index: int,
    total_weight: Node,
) -> Any:
    if b.rank(self) < 2:
        raise b.no_form("of a single row has no form in a network of dlprim")
    dy = grad_output if reduction == 0 else b.reshape(grad_output, b.sizes(grad_output), [1])
    inputs = [dy, target, b.reshape(total_weight, b.sizes(total_weight), [1])]
    options = {"reduce": REDUCED[reduction], "ignore_index": ignore_index, "classes": b.sizes(self)[1]}
    return b.layer("NLLLossBackward", inputs + ([weight] if weight is not None else []), options)
