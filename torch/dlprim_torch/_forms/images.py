# SPDX-License-Identifier: MIT
"""Images in other sizes, at other places and with borders, and the gradients of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .table import Node, form

# Images in other sizes: of "upsample_nearest2d" and so on the method of Resize.
RESIZES = {
    **{f"upsample_nearest{d}d": "nearest" for d in (1, 2, 3)},
    **{f"_upsample_nearest_exact{d}d": "nearest-exact" for d in (1, 2, 3)},
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "linear",
    "upsample_trilinear3d": "linear",
    "upsample_bicubic2d": "cubic",
    "_upsample_bilinear2d_aa": "linear",
    "_upsample_bicubic2d_aa": "cubic",
}


def resize_options(name: str, given: dict[str, Any], made: Sequence[Any]) -> dict[str, Any]:
    """Of the operator `name` and its arguments. `made`: the sizes of its result."""
    options: dict[str, Any] = {"method": RESIZES[name], "output": list(made)[2:]}
    if "align_corners" in given:
        options |= {"align_corners": given["align_corners"], "antialias": name.endswith("_aa")}
    each = [given[key] for key in ("scales", "scales_d", "scales_h", "scales_w") if given.get(key) is not None]
    scales = given.get("scale_factors") or each
    if scales:
        options["scales"] = [float(scale) for scale in scales]
    return options


@form(*(f"{name}.{overload}" for name in RESIZES for overload in ("vec", "default")))
def resize(b: Builder) -> Any:
    given, name = b.arguments(b.node), str(b.node.target).split(".")[1]
    return b.layer("Resize", [given.get("input") or given["self"]], resize_options(name, given, b.sizes(b.node)))


def absent(b: Builder, sizes: Sequence[Any], like: Node) -> str:
    """A tensor of these sizes of which nothing is read."""
    return b.pointwise("y0 = 0", [], b.value(like).dtype, shape=list(sizes))


@form(*(f"{name}_backward.default" for name in RESIZES))
def resize_backward(b: Builder, grad_output: Node, input_size: Sequence[Any]) -> Any:
    name = str(b.node.target).split(".")[1].removesuffix("_backward")
    options = resize_options(name, b.arguments(b.node), b.sizes(grad_output))
    return b.gradients("Resize", [absent(b, input_size, grad_output)], grad_output, [True], options)[0]


@form("grid_sampler_2d.default")
def grid_sampler(
    b: Builder, input: Node, grid: Node, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    return b.layer("GridSample", [input, grid], grid_options(interpolation_mode, padding_mode, align_corners))


def grid_options(interpolation_mode: int, padding_mode: int, align_corners: bool) -> dict[str, Any]:
    return {
        "mode": ("bilinear", "nearest", "bicubic")[interpolation_mode],
        "padding_mode": ("zeros", "border", "reflection")[padding_mode],
        "align_corners": align_corners,
    }


@form("grid_sampler_2d_backward.default")
def grid_sampler_backward(
    b: Builder,
    grad_output: Node,
    input: Node,
    grid: Node,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> Any:
    options = grid_options(interpolation_mode, padding_mode, align_corners)
    return b.gradients("GridSample", [input, grid], grad_output, output_mask, options)


@form("constant_pad_nd.default")
def constant_pad(b: Builder, self: Node, pad: Sequence[int], value: float) -> Any:
    return b.layer("Pad", [self], {"pads": list(pad), "value": float(value)})


@form("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def reflection_pad(b: Builder, self: Node, padding: Sequence[int]) -> Any:
    return mirrored_pad(b, self, padding, "reflect")


@form("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def replication_pad(b: Builder, self: Node, padding: Sequence[int]) -> Any:
    return mirrored_pad(b, self, padding, "replicate")


def mirrored_pad(b: Builder, x: Node, padding: Sequence[int], mode: str) -> Any:
    if b.value(x).dtype == torch.float64:
        raise b.no_form("of double has no form in a network of dlprim")
    return b.layer("Pad", [x], {"pads": list(padding), "mode": mode})


@form("reflection_pad1d_backward.default", "reflection_pad2d_backward.default", "reflection_pad3d_backward.default")
def reflection_pad_backward(b: Builder, grad_output: Node, self: Node, padding: Sequence[int]) -> Any:
    options = {"pads": list(padding), "mode": "reflect"}
    return b.gradients("Pad", [self], grad_output, [True], options)[0]


@form("replication_pad1d_backward.default", "replication_pad2d_backward.default", "replication_pad3d_backward.default")
def replication_pad_backward(b: Builder, grad_output: Node, self: Node, padding: Sequence[int]) -> Any:
    options = {"pads": list(padding), "mode": "replicate"}
    return b.gradients("Pad", [self], grad_output, [True], options)[0]
