# SPDX-License-Identifier: MIT
"""Pooling and interpolation, and what takes images of one to three dimensions."""

from __future__ import annotations

import numpy as np

from .case import IMAGES, Case, apart, functional, random

SERIES, VOLUMES = random(2, 4, 11), random(2, 4, 5, 6, 7)

POOLING = [
    Case("max_pool2d", apart(2, 3, 8, 9), 3),
    Case("max_pool2d", apart(2, 3, 8, 9), (3, 2), stride=2, padding=(1, 0), ceil_mode=True),
    Case("avg_pool2d", IMAGES, 2),
    Case("avg_pool2d", IMAGES, [3, 2], stride=[2, 1], padding=1),
    Case("avg_pool2d", IMAGES, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    Case("global_max_pool2d", apart(2, 3, 4, 5), like=lambda torch, x: x.amax((2, 3), keepdim=True)),
    Case("global_avg_pool2d", IMAGES, like=lambda torch, x: x.mean((2, 3), keepdim=True)),
    Case("interpolate", IMAGES, 12),
    Case("interpolate", IMAGES, (5, 17), mode="nearest-exact"),
    Case("interpolate", IMAGES, scale_factor=1.7, mode="bilinear"),
    Case("interpolate", IMAGES, scale_factor=(2.0, 0.5), mode="bilinear"),
    Case("interpolate", IMAGES, [5, 17], mode="bilinear", align_corners=True),
]

# Places of which some lie outside of images.
COLUMNS = random(2, 12, 16)
PLACES = random(2, 3, 5, 2) * np.float32(0.6)
# A list of pads in front of all dimensions and then behind them.
FRONT_AND_BEHIND = [1, 0, 2, 2]

IMAGES_ND = [
    Case(
        "conv_nd",
        SERIES,
        random(6, 4, 3),
        random(6),
        stride=2,
        padding=1,
        like=functional("conv1d", stride=2, padding=1),
    ),
    Case(
        "conv_nd",
        SERIES,
        random(6, 2, 4),
        groups=2,
        padding="same",
        like=lambda torch, x, w: torch.nn.functional.conv1d(torch.nn.functional.pad(x, (1, 2)), w, groups=2),
    ),
    Case("conv_nd", SERIES, random(6, 4, 3), padding="valid", dilation=2, like=functional("conv1d", dilation=2)),
    Case("conv_nd", IMAGES, random(6, 4, 3, 2), random(6), padding=[1, 0], like=functional("conv2d", padding=[1, 0])),
    Case(
        "conv_nd",
        IMAGES,
        random(6, 4, 3, 3),
        padding=FRONT_AND_BEHIND,
        like=lambda torch, x, w: torch.nn.functional.conv2d(torch.nn.functional.pad(x, (0, 2, 1, 2)), w),
    ),
    Case(
        "conv_nd",
        VOLUMES,
        random(3, 4, 2, 3, 3),
        random(3),
        stride=(1, 2, 1),
        padding=1,
        like=functional("conv3d", stride=(1, 2, 1), padding=1),
    ),
    Case(
        "conv_transpose_nd",
        SERIES,
        random(4, 3, 3),
        random(3),
        stride=2,
        output_padding=1,
        like=functional("conv_transpose1d", stride=2, output_padding=1),
    ),
    Case(
        "conv_transpose_nd",
        VOLUMES,
        random(4, 3, 3, 2, 2),
        groups=2,
        padding=[1, 0, 1],
        dilation=2,
        like=functional("conv_transpose3d", groups=2, padding=[1, 0, 1], dilation=2),
    ),
    Case("max_pool_nd", apart(2, 3, 11), 3, padding=1, like=functional("max_pool1d", padding=1)),
    Case(
        "max_pool_nd",
        apart(2, 3, 5, 6, 7),
        [2, 3, 2],
        stride=2,
        dilation=[1, 1, 2],
        ceil_mode=True,
        like=lambda torch, x, size: torch.nn.functional.max_pool3d(x, size, 2, 0, (1, 1, 2), ceil_mode=True),
    ),
    Case(
        "max_pool_nd_with_indices",
        apart(2, 3, 8, 9),
        3,
        stride=2,
        padding=1,
        like=lambda torch, x, size: torch.nn.functional.max_pool2d(x, size, 2, 1, return_indices=True),
    ),
    Case("avg_pool_nd", SERIES, 3, stride=2, padding=1, like=functional("avg_pool1d", stride=2, padding=1)),
    Case(
        "avg_pool_nd",
        VOLUMES,
        (2, 3, 2),
        padding=1,
        ceil_mode=True,
        count_include_pad=False,
        like=functional("avg_pool3d", padding=1, ceil_mode=True, count_include_pad=False),
    ),
    Case("avg_pool_nd", IMAGES, 2, divisor_override=3, like=functional("avg_pool2d", divisor_override=3)),
    Case("adaptive_avg_pool", SERIES, 4, like=functional("adaptive_avg_pool1d")),
    Case("adaptive_avg_pool", IMAGES, (None, 3), like=functional("adaptive_avg_pool2d")),
    Case("adaptive_avg_pool", VOLUMES, [2, 3, 4], like=functional("adaptive_avg_pool3d")),
    Case("adaptive_max_pool", apart(2, 3, 8, 9), [3, None], like=functional("adaptive_max_pool2d")),
    Case(
        "adaptive_max_pool_with_indices",
        apart(2, 3, 5, 6, 7),
        2,
        like=functional("adaptive_max_pool3d", return_indices=True),
    ),
    Case("resize", SERIES, 17, mode="linear", like=functional("interpolate", mode="linear")),
    Case("resize", SERIES, scale_factor=0.4, like=functional("interpolate", scale_factor=0.4)),
    Case("resize", IMAGES, (5, 17), mode="cubic", like=functional("interpolate", mode="bicubic")),
    Case(
        "resize",
        IMAGES,
        [5, 3],
        mode="linear",
        antialias=True,
        like=functional("interpolate", mode="bilinear", antialias=True),
    ),
    Case(
        "resize",
        VOLUMES,
        scale_factor=(2.0, 1.5, 0.7),
        mode="linear",
        align_corners=True,
        like=functional("interpolate", scale_factor=(2.0, 1.5, 0.7), mode="trilinear", align_corners=True),
    ),
    Case("resize", VOLUMES, 4, mode="nearest-exact", like=functional("interpolate", mode="nearest-exact")),
    Case("unfold", IMAGES, 3),
    Case("unfold", IMAGES, (2, 3), (2, 1), (1, 2), (1, 3)),
    Case("fold", COLUMNS, (5, 6), (2, 3)),
    Case("fold", random(2, 12, 12), (5, 6), (2, 3), (2, 1), (1, 2), (2, 2)),
    *(
        Case("grid_sample", IMAGES, PLACES, mode, padding_mode, corners, like=functional("grid_sample"))
        for mode, padding_mode, corners in (
            ("bilinear", "zeros", False),
            ("bilinear", "reflection", True),
            ("nearest", "border", False),
            ("bicubic", "zeros", True),
        )
    ),
]
