# SPDX-License-Identifier: MIT
"""Convolutions and transposed ones, windows as columns, and gradients of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._builder import Builder
from .table import Node, form, spread


@form("convolution.default")
def convolution(b: Builder, input: Node, weight: Node, bias: Node | None) -> Any:
    kind, options = convolution_layer(b, weight)
    return b.layer(kind, [input], {**options, "bias": bias is not None}, [weight, bias])


def convolution_layer(b: Builder, weight: Node) -> tuple[str, dict[str, Any]]:
    """The type and the options that an operator's arguments say, and those of its gradient."""
    given, shape = b.arguments(b.node), b.sizes(weight)
    transposed, groups = given["transposed"], given["groups"]
    options: dict[str, Any] = {
        "channels_out": shape[1] * groups if transposed else shape[0],
        "kernel": shape[2:],
        "groups": groups,
    }
    names = {"stride": "stride", "padding": "pad", "dilation": "dilate", "output_padding": "output_pad"}
    for argument, option in names.items():
        if transposed or argument != "output_padding":
            options[option] = spread(given[argument], len(shape) - 2)
    return "TransposedConvolution" if transposed else "Convolution", options


@form("convolution_backward.default")
def convolution_backward(b: Builder, grad_output: Node, input: Node, weight: Node, output_mask: Sequence[bool]) -> Any:
    kind, options = convolution_layer(b, weight)
    made = b.gradients(kind, [input, weight], grad_output, output_mask[:2], {**options, "bias": False})
    axes = ",".join(str(d) for d in range(b.rank(input)) if d != 1)
    dtype = b.value(grad_output).dtype
    of_bias = b.pointwise(f"y0 = sum[{axes}](x0)", [grad_output], dtype, keep_dim=False) if output_mask[2] else None
    return [*made, of_bias]


@form("im2col.default")
def im2col(
    b: Builder,
    self: Node,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    return columns(b, "Unfold", self, {}, kernel_size, dilation, padding, stride)


@form("col2im.default")
def col2im(
    b: Builder,
    self: Node,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    return columns(b, "Fold", self, {"output": list(output_size)}, kernel_size, dilation, padding, stride)


def columns(b: Builder, kind: str, x: Node, options: dict[str, Any], *window: Sequence[int]) -> Any:
    """The windows of images as columns, or back. Without a batch they are a batch of one."""
    options |= {name: list(sizes) for name, sizes in zip(("kernel", "dilate", "pad", "stride"), window, strict=True)}
    sizes = b.sizes(x)
    if len(sizes) == (4 if kind == "Unfold" else 3):
        return b.layer(kind, [x], options)
    made = b.layer(kind, [b.reshape(x, sizes, [1, *sizes])], options)
    return b.reshape(made, [1, *b.sizes(b.node)], b.sizes(b.node))
