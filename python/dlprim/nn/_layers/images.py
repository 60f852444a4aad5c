# SPDX-License-Identifier: MIT
"""Layers of images [N, C, H, W] without parameters: pooling and resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError
from .._graph import IntOrPair, LayerOptions, Number, SingleLayer
from .._unpack import Unpack
from .options import pair, unless


class _Pool2d(SingleLayer):
    type = "Pooling2D"


class MaxPool2d(_Pool2d):
    """The largest value of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        *,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
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
        *,
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

    type = "GlobalPooling"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"mode": "avg"}, common)


class GlobalMaxPool2d(SingleLayer):
    """The largest value of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""

    type = "GlobalPooling"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"mode": "max"}, common)


class Upsample(SingleLayer):
    """Resizes images [N, C, H, W] to `size`, or by `scale_factor`: a number or (height, width).

    With a factor, sizes are rounded down. `mode` is "nearest", "nearest-exact" or "bilinear".
    """

    type = "Interpolation"

    def __init__(
        self,
        size: IntOrPair | None = None,
        scale_factor: Number | Sequence[Number] | None = None,
        *,
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
