# SPDX-License-Identifier: MIT
"""Pooling and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .table import Node, form, spread


def pooled_dims(b: Builder) -> int:
    """How many dimensions of images the node's operator pools: 2 of avg_pool2d."""
    return int(str(b.node.target).partition("_pool")[2][0])


def pooling(b: Builder, input: Node, options: dict[str, Any], results: int = 1) -> Any:
    """The layer Pooling. Images without a batch are a batch of one."""
    if b.rank(input) == pooled_dims(b) + 2:
        return b.layer("Pooling", [input], options, results=results)
    made = b.layer("Pooling", [b.reshape(input, b.sizes(input), [1, *b.sizes(input)])], options, results=results)
    value = b.value(b.node)
    after = list((value if isinstance(value, torch.Tensor) else value[0]).shape)
    names = [b.reshape(name, [1, *after], after) for name in (made if results > 1 else [made])]
    return names if results > 1 else names[0]


def window(b: Builder, mode: str) -> dict[str, Any]:
    """The options that an operator's arguments say, and those of its gradient."""
    given, count = b.arguments(b.node), pooled_dims(b)
    options = {
        "mode": mode,
        "kernel": spread(given["kernel_size"], count),
        "stride": spread(given["stride"] or given["kernel_size"], count),
        "pad": spread(given["padding"], count),
        "ceil_mode": given["ceil_mode"],
    }
    if mode == "max":
        return options | {"dilate": spread(given["dilation"], count)}
    divisor = given.get("divisor_override")
    return (
        options | {"count_include_pad": given["count_include_pad"]} | ({"divisor_override": divisor} if divisor else {})
    )


def with_positions(b: Builder, x: Node, options: dict[str, Any]) -> Any:
    """Maxima, and where they were if somebody reads that."""
    return pooling(b, x, options | {"positions": "image"}, 2) if b.used(1) else pooling(b, x, options)


@form("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool(b: Builder, self: Node) -> Any:
    return with_positions(b, self, window(b, "max"))


@form("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(b: Builder, self: Node) -> Any:
    return pooling(b, self, window(b, "avg"))


@form(
    "_adaptive_avg_pool2d.default",
    "_adaptive_avg_pool3d.default",
    "adaptive_avg_pool2d.default",
    "adaptive_avg_pool3d.default",
)
@form("adaptive_avg_pool1d.default")
def adaptive_pool(b: Builder, self: Node, output_size: Sequence[int]) -> Any:
    if all(size == 1 for size in output_size):
        return pooling(b, self, {"mode": "avg", "global": True})
    return pooling(b, self, {"mode": "avg", "output": list(output_size)})


@form("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(b: Builder, self: Node, output_size: Sequence[int]) -> Any:
    return with_positions(b, self, {"mode": "max", "output": list(output_size)})


def pooling_backward(b: Builder, dy: Node, x: Node, options: dict[str, Any], indices: Node | None = None) -> Any:
    """The gradient of x, of which the sizes alone count. `indices`: where maxima were."""
    if b.rank(x) != pooled_dims(b) + 2:
        raise b.no_form("of an image without a batch has no form in a network of dlprim")
    options["sizes"] = b.sizes(x)[2:]
    if indices is None:
        return b.layer("PoolingBackward", [dy], options)
    return b.layer("PoolingBackward", [dy, indices], options | {"positions": "image"})


@form("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def max_pool_backward(b: Builder, grad_output: Node, self: Node, indices: Node) -> Any:
    return pooling_backward(b, grad_output, self, window(b, "max"), indices)


@form("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def avg_pool_backward(b: Builder, grad_output: Node, self: Node) -> Any:
    return pooling_backward(b, grad_output, self, window(b, "avg"))


@form("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(b: Builder, grad_output: Node, self: Node) -> Any:
    return pooling_backward(b, grad_output, self, {"mode": "avg", "output": b.sizes(grad_output)[2:]})


@form("adaptive_max_pool2d_backward.default", "adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(b: Builder, grad_output: Node, self: Node, indices: Node) -> Any:
    return pooling_backward(b, grad_output, self, {"mode": "max", "output": b.sizes(grad_output)[2:]}, indices)
