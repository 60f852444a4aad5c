# SPDX-License-Identifier: MIT
"""Functions of images [N, C, H, W]: pooling and resizing."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _layers as layers
from .._graph import IntOrPair, LayerOptions, Number, Symbol
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
    """Resizes images [N, C, H, W]: `mode` is "nearest", "nearest-exact" or "bilinear"."""
    return layers.Upsample(size, scale_factor, mode=mode, align_corners=align_corners, **common)(x)
