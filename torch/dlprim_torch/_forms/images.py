# SPDX-License-Identifier: MIT
"""Images in other sizes, at other places and with borders, and the gradients of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .table import Node, form, operator_name

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
    given, name = b.arguments(b.node), operator_name(b)
    return b.layer("Resize", [given.get("input") or given["self"]], resize_options(name, given, b.sizes(b.node)))


def absent(b: Builder, sizes: Sequence[Any], like: Node) -> str:
    """A tensor of these sizes of which nothing is read."""
    return b.pointwise("y0 = 0", [], b.value(like).dtype, shape=list(sizes))


@form(*(f"{name}_backward.default" for name in RESIZES))
def resize_backward(b: Builder, grad_output: Node, input_size: Sequence[Any]) -> Any:
    name = operator_name(b).removesuffix("_backward")
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


# Of "reflection_pad2d" and so on the mode of Pad.
MODES = {"reflection": "reflect", "replication": "replicate"}
PADS = {f"{name}_pad{d}d": mode for name, mode in MODES.items() for d in (1, 2, 3)}


@form(*(f"{name}.default" for name in PADS))
def pad(b: Builder, self: Node, padding: Sequence[int]) -> Any:
    if b.value(self).dtype == torch.float64:
        raise b.no_form("of double has no form in a network of dlprim")
    return b.layer("Pad", [self], {"pads": list(padding), "mode": PADS[operator_name(b)]})


@form(*(f"{name}_backward.default" for name in PADS))
def pad_backward(b: Builder, grad_output: Node, self: Node, padding: Sequence[int]) -> Any:
    mode = PADS[operator_name(b).removesuffix("_backward")]
    return b.gradients("Pad", [self], grad_output, [True], {"pads": list(padding), "mode": mode})[0]
