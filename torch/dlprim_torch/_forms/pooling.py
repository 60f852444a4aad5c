# SPDX-License-Identifier: MIT
"""Pooling and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._graph import Builder
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


@form("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool(
    b: Builder,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Any:
    count = pooled_dims(b)
    options: dict[str, Any] = {"mode": "max", "kernel": spread(kernel_size, count)}
    options["stride"] = spread(stride or kernel_size, count)
    options["pad"] = spread(padding, count)
    options["dilate"] = spread(dilation, count)
    options["ceil_mode"] = ceil_mode
    if b.used(1):
        options["positions"] = "image"
    return pooling(b, self, options, 2 if b.used(1) else 1)


@form("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    b: Builder,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
) -> Any:
    count = pooled_dims(b)
    options: dict[str, Any] = {"mode": "avg", "kernel": spread(kernel_size, count)}
    options["stride"] = spread(stride or kernel_size, count)
    options["pad"] = spread(padding, count)
    options["ceil_mode"] = ceil_mode
    options["count_include_pad"] = count_include_pad
    divisor = b.arguments(b.node).get("divisor_override")
    if divisor:
        options["divisor_override"] = divisor
    return pooling(b, self, options)


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
    options = {"mode": "max", "output": list(output_size)} | ({"positions": "image"} if b.used(1) else {})
    return pooling(b, self, options, 2 if b.used(1) else 1)


@form("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def max_pool_backward(
    b: Builder,
    grad_output: Node,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Node,
) -> Any:
    options = window(b, self, kernel_size, stride, padding, ceil_mode)
    options |= {"mode": "max", "dilate": spread(dilation, b.rank(self) - 2), "positions": "image"}
    return b.layer("PoolingBackward", [grad_output, indices], options)


@form("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def avg_pool_backward(
    b: Builder,
    grad_output: Node,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    options = window(b, self, kernel_size, stride, padding, ceil_mode)
    options |= {"mode": "avg", "count_include_pad": count_include_pad}
    if divisor_override is not None:
        options["divisor_override"] = divisor_override
    return b.layer("PoolingBackward", [grad_output], options)


@form("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(b: Builder, grad_output: Node, self: Node) -> Any:
    options = {"mode": "avg", "output": b.sizes(grad_output)[2:], "sizes": b.sizes(self)[2:]}
    return b.layer("PoolingBackward", [grad_output], options)


@form("adaptive_max_pool2d_backward.default", "adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(b: Builder, grad_output: Node, self: Node, indices: Node) -> Any:
    options = {"mode": "max", "output": b.sizes(grad_output)[2:], "sizes": b.sizes(self)[2:], "positions": "image"}
    return b.layer("PoolingBackward", [grad_output, indices], options)


def window(
    b: Builder, x: Node, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil_mode: bool
) -> dict[str, Any]:
    """What poolings have in common."""
    count = b.rank(x) - 2
    if b.rank(b.node) != b.rank(x) or count < 2:
        raise b.no_form("of an image without a batch has no form in a network of dlprim")
    return {
        "kernel": spread(kernel, count),
        "stride": spread(stride or kernel, count),
        "pad": spread(padding, count),
        "ceil_mode": ceil_mode,
        "sizes": b.sizes(x)[2:],
    }
