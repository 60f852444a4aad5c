# SPDX-License-Identifier: MIT
"""Pooling and interpolation."""

from __future__ import annotations

from .case import IMAGES, Case, apart

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
