# SPDX-License-Identifier: MIT
"""Layers of images without parameters: pooling and resizing.

Those whose name ends in 2d, and Upsample, take [N, C, H, W]. The others take [N, C, ...] with one to three dimensions
of images, and sizes that are one number for all of these or a list with an entry for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from ...errors import InvalidArgumentError
from .._graph import IntOrPair, LayerOptions, Number, SingleLayer
from .._unpack import Unpack
from .options import pair, unless

#: One size of a result, or a list of them. None keeps the input's size.
OutputSize = Union[int, Sequence[Union[int, None]]]


class _Pool2d(SingleLayer):
    type = "Pooling"


class MaxPool2d(_Pool2d):
    """The largest value of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        *,
        ceil_mode: bool = False,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "mode": "max",
                "kernel": kernel_size,
                "stride": kernel_size if stride is None else stride,
                "pad": unless(padding, 0),
                "ceil_mode": unless(ceil_mode, False),
            },
            common,
        )


class AvgPool2d(_Pool2d):
    """The mean of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size.

    With `count_include_pad` (default: true, as in PyTorch), the padding's zeros count in the mean.
    """

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "mode": "avg",
                "kernel": kernel_size,
                "stride": kernel_size if stride is None else stride,
                "pad": unless(padding, 0),
                "ceil_mode": unless(ceil_mode, False),
                "count_include_pad": unless(count_include_pad, False),
            },
            common,
        )


class GlobalAvgPool2d(SingleLayer):
    """The mean of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""

    type = "Pooling"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"mode": "avg", "global": True}, common)


class GlobalMaxPool2d(SingleLayer):
    """The largest value of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""

    type = "Pooling"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"mode": "max", "global": True}, common)


class Upsample(SingleLayer):
    """Resizes images [N, C, H, W] to `size`, or by `scale_factor`: a number or (height, width).

    With a factor, sizes are rounded down. `mode` is "nearest", "nearest-exact" or "bilinear".
    """

    type = "Interpolation"

    def __init__(
        self,
        size: IntOrPair | None = None,
        scale_factor: Number | Sequence[Number] | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
        **common: Unpack[LayerOptions],
    ) -> None:
        if (size is None) == (scale_factor is None):
            raise InvalidArgumentError("Upsample takes either size or scale_factor")
        options: dict[str, Any] = {"method": mode, "align_corners": unless(align_corners, False)}
        if size is not None:
            options["out_h"], options["out_w"] = pair(size, "Upsample: size")
        else:
            options["scale_y"], options["scale_x"] = pair(scale_factor, "Upsample: scale_factor")
        super().__init__(options, common)


def max_pool_options(
    kernel_size: IntOrPair, stride: IntOrPair | None, padding: IntOrPair, dilation: IntOrPair, ceil_mode: bool
) -> dict[str, Any]:
    return {
        "mode": "max",
        "kernel": kernel_size,
        "stride": kernel_size if stride is None else stride,
        "pad": unless(padding, 0),
        "dilate": unless(dilation, 1),
        "ceil_mode": unless(ceil_mode, False),
    }


class MaxPoolNd(SingleLayer):
    """The largest value of each window: [N, C, ...] -> [N, C, ...], with one to three dimensions of images.

    The default stride is the window's size. `padding` may also be a list of those in front of all dimensions and then
    those behind them. `dilation` is the step between elements of a window.
    """

    type = "Pooling"

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
        *,
        ceil_mode: bool = False,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(max_pool_options(kernel_size, stride, padding, dilation, ceil_mode), common)


class AvgPoolNd(SingleLayer):
    """The mean of each window: [N, C, ...] -> [N, C, ...], with one to three dimensions of images.

    The default stride is the window's size, and `padding` is that of MaxPoolNd. With `count_include_pad`, the padding's
    zeros count in the mean. `divisor_override` divides sums in place of the number of elements.
    """

    type = "Pooling"

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "mode": "avg",
                "kernel": kernel_size,
                "stride": kernel_size if stride is None else stride,
                "pad": unless(padding, 0),
                "ceil_mode": unless(ceil_mode, False),
                "count_include_pad": unless(count_include_pad, False),
                "divisor_override": divisor_override,
            },
            common,
        )


def adaptive_options(mode: str, output_size: OutputSize) -> dict[str, Any]:
    sizes = output_size if isinstance(output_size, Sequence) else [output_size]
    return {"mode": mode, "output": [-1 if size is None else size for size in sizes]}


class AdaptiveAvgPool(SingleLayer):
    """Means of windows that share images evenly, as PyTorch's AdaptiveAvgPool1d, 2d and 3d.

    [N, C, ...] -> [N, C, *output_size], with one to three dimensions of images. `output_size` is one size, or one for
    each dimension; None keeps the input's.
    """

    type = "Pooling"

    def __init__(self, output_size: OutputSize, **common: Unpack[LayerOptions]) -> None:
        super().__init__(adaptive_options("avg", output_size), common)


class AdaptiveMaxPool(SingleLayer):
    """Maxima of windows that share images evenly, as PyTorch's AdaptiveMaxPool1d, 2d and 3d.

    [N, C, ...] -> [N, C, *output_size], with one to three dimensions of images. `output_size` is one size, or one for
    each dimension; None keeps the input's.
    """

    type = "Pooling"

    def __init__(self, output_size: OutputSize, **common: Unpack[LayerOptions]) -> None:
        super().__init__(adaptive_options("max", output_size), common)
