# SPDX-License-Identifier: MIT
"""Functions of images: pooling, resizing and sampling.

Functions whose name ends in 2d, and interpolate, take [N, C, H, W]. The others but grid_sample take [N, C, ...] with
one to three dimensions of images, and sizes that are one number for all of these or a list with an entry for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import _layers as layers
from .._graph import Generic, IntOrPair, LayerOptions, Number, Symbol
from .._layers.images import OutputSize, adaptive_options, max_pool_options
from .._layers.options import unless
from .._unpack import Unpack


def max_pool2d(
    x: Symbol,
    kernel_size: IntOrPair,
    *,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The largest value of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size."""
    return layers.MaxPool2d(kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, **common)(x)


def avg_pool2d(
    x: Symbol,
    kernel_size: IntOrPair,
    *,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The mean of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size."""
    layer = layers.AvgPool2d(
        kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        **common,
    )
    return layer(x)


def global_avg_pool2d(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """The mean of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""
    return layers.GlobalAvgPool2d(**common)(x)


def global_max_pool2d(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """The largest value of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""
    return layers.GlobalMaxPool2d(**common)(x)


def interpolate(
    x: Symbol,
    size: IntOrPair | None = None,
    scale_factor: Number | Sequence[Number] | None = None,
    *,
    mode: str = "nearest",
    align_corners: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Resizes images [N, C, H, W]: `mode` is "nearest", "nearest-exact" or "bilinear". `resize` has other modes."""
    return layers.Upsample(size, scale_factor, mode=mode, align_corners=align_corners, **common)(x)


def max_pool_nd(
    x: Symbol,
    kernel_size: IntOrPair,
    *,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The largest value of each window: [N, C, ...] -> [N, C, ...]. The default stride is the window's size.

    `padding` may also be a list of those in front of all dimensions and then those behind them.
    """
    layer = layers.MaxPoolNd(
        kernel_size, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode, **common
    )
    return layer(x)


def max_pool_nd_with_indices(
    x: Symbol,
    kernel_size: IntOrPair,
    *,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    dilation: IntOrPair = 1,
    ceil_mode: bool = False,
    **common: Unpack[LayerOptions],
) -> tuple[Symbol, ...]:
    """The results of `max_pool_nd` and their int64 positions, which count in the flattened image of each channel."""
    options = {**max_pool_options(kernel_size, stride, padding, dilation, ceil_mode), "positions": "image"}
    return Generic("Pooling", "max_pool_nd_with_indices", options, common, 2).apply(x)


def avg_pool_nd(
    x: Symbol,
    kernel_size: IntOrPair,
    *,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The mean of each window: [N, C, ...] -> [N, C, ...]. The default stride is the window's size.

    `padding` is that of `max_pool_nd`. `divisor_override` divides sums in place of the number of elements.
    """
    layer = layers.AvgPoolNd(
        kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
        **common,
    )
    return layer(x)


def adaptive_avg_pool(x: Symbol, output_size: OutputSize, **common: Unpack[LayerOptions]) -> Symbol:
    """Means of windows that share images evenly: [N, C, ...] -> [N, C, *output_size]. None keeps the input's size."""
    return layers.AdaptiveAvgPool(output_size, **common)(x)


def adaptive_max_pool(x: Symbol, output_size: OutputSize, **common: Unpack[LayerOptions]) -> Symbol:
    """Maxima of windows that share images evenly: [N, C, ...] -> [N, C, *output_size]. None keeps the input's size."""
    return layers.AdaptiveMaxPool(output_size, **common)(x)


def adaptive_max_pool_with_indices(
    x: Symbol, output_size: OutputSize, **common: Unpack[LayerOptions]
) -> tuple[Symbol, ...]:
    """The results of `adaptive_max_pool` and their positions, which are those of `max_pool_nd_with_indices`."""
    options = {**adaptive_options("max", output_size), "positions": "image"}
    return Generic("Pooling", "adaptive_max_pool_with_indices", options, common, 2).apply(x)


def resize(
    x: Symbol,
    size: IntOrPair | None = None,
    scale_factor: Number | Sequence[Number] | None = None,
    *,
    mode: str = "nearest",
    align_corners: bool = False,
    antialias: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Resizes images: [N, C, ...] -> [N, C, *size]. With `scale_factor` alone, sizes are rounded down.

    If both are given, positions come from `scale_factor`. `mode` is "nearest", "nearest-exact", "linear" (which
    PyTorch calls bilinear or trilinear in more dimensions) or "cubic" (bicubic). With "linear" and "cubic",
    `align_corners` keeps the positions of corner elements, and `antialias` filters images that shrink.
    """
    options = {
        "method": unless(mode, "nearest"),
        "output": size,
        "scales": scale_factor,
        "align_corners": unless(align_corners, False),
        "antialias": unless(antialias, False),
    }
    return Generic("Resize", "resize", options, common).apply(x)[0]


def grid_sample(
    x: Symbol,
    grid: Symbol,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Samples images at the places in a grid: [N, C, H, W] and [N, H', W', 2] -> [N, C, H', W'].

    Places are x and y from -1 to 1: the outer edges of corner pixels, or with `align_corners` their centers. `mode` is
    "bilinear", "nearest" or "bicubic". Outside of images is what `padding_mode` says: "zeros", "border" (the nearest
    pixel) or "reflection".
    """
    options = {
        "mode": unless(mode, "bilinear"),
        "padding_mode": unless(padding_mode, "zeros"),
        "align_corners": unless(align_corners, False),
    }
    return Generic("GridSample", "grid_sample", options, common).apply(x, grid)[0]
