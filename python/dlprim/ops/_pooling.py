# SPDX-License-Identifier: MIT
"""Pooling and interpolation of images of two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from .._core import Call, Tensor
from ._machinery import Ints, kept, make_call, operator


@kept
def pool_call(
    mode: str,
    kernel: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    engine: str | None,
) -> Call:
    options = {
        "mode": mode,
        "kernel": kernel,
        "stride": kernel if stride is None else stride,
        "pad": padding,
        "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad,
    }
    return make_call("Pooling2D", options, engine=engine)


@operator
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    *,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """The maximum of each window of images, as torch.nn.functional.max_pool2d.

    input: [N, C, H, W]. The result is [N, C, OH, OW] with OH = (H + top + bottom - kernel_size) / stride + 1, rounded
    down, or up with ceil_mode.
    kernel_size, stride: pixels, one number or [height, width]. The default stride is kernel_size (in network JSON it is
    1).
    padding: pixels that are ignored, one number, [height, width] or [top, left, bottom, right].

    Raises InvalidArgumentError (a ValueError) if the shape or the options are invalid.
    """
    return pool_call("max", kernel_size, stride, padding, ceil_mode, False, engine).one((input,), (), out)


@operator
def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    *,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """The mean of each window of images, as torch.nn.functional.avg_pool2d.

    input: [N, C, H, W]. The result is [N, C, OH, OW]. Sizes and the other keywords are those of `max_pool2d`.
    count_include_pad: whether the padding's zeros count in the mean (the default in network JSON is false).

    Raises InvalidArgumentError (a ValueError) if the shape or the options are invalid.
    """
    return pool_call("avg", kernel_size, stride, padding, ceil_mode, count_include_pad, engine).one((input,), (), out)


GLOBAL_MAX = Call("GlobalPooling", '{"mode": "max"}')
GLOBAL_AVG = Call("GlobalPooling", '{"mode": "avg"}')


@operator
def global_max_pool2d(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Maximum of each channel: [N, C, H, W] -> [N, C, 1, 1]. Raises InvalidArgumentError on another shape."""
    return GLOBAL_MAX.one((input,), (), out)


@operator
def global_avg_pool2d(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Mean of each channel: [N, C, H, W] -> [N, C, 1, 1]. Raises InvalidArgumentError on another shape."""
    return GLOBAL_AVG.one((input,), (), out)


Scale = Union[float, Sequence[float]]


@kept
def interpolate_call(
    size: Ints | None, scale: Scale | None, mode: str, align_corners: bool, engine: str | None
) -> Call:
    heights = size if isinstance(size, Sequence) else (size, size)
    scales = scale if isinstance(scale, Sequence) else (scale, scale)
    options = {
        "method": mode,
        "out_h": heights[0],
        "out_w": heights[-1],
        "scale_y": scales[0],
        "scale_x": scales[-1],
        "align_corners": align_corners,
    }
    return make_call("Interpolation", options, engine=engine)


@operator
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Scale | None = None,
    *,
    mode: str = "nearest",
    align_corners: bool = False,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """Resizes images, as torch.nn.functional.interpolate.

    input: [N, C, H, W]. The result is [N, C, OH, OW]. Give either size, in pixels, or scale_factor. Both are one number
    or [height, width]. With scale_factor, OH is H scale_factor, rounded down.
    mode: "nearest", "nearest-exact" or "bilinear". align_corners: with "bilinear", corner pixels keep their positions.
    `resize` has the other modes, and takes images of one to three dimensions.

    Raises InvalidArgumentError (a ValueError) unless exactly one of size and scale_factor is given, and if it is
    invalid.
    """
    return interpolate_call(size, scale_factor, mode, align_corners, engine).one((input,), (), out)
