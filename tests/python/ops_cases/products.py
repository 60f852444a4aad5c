# SPDX-License-Identifier: MIT
"""Convolutions, linear layers and products of matrices."""

from __future__ import annotations

from .case import IMAGES, Case, random

PRODUCTS = [
    Case("conv2d", IMAGES, random(6, 4, 3, 3), random(6)),
    Case("conv2d", IMAGES, random(6, 4, 3, 3), stride=2, padding=1),
    Case("conv2d", IMAGES, random(6, 4, 3, 2), random(6), stride=(2, 1), padding=(2, 1), dilation=(1, 2)),
    Case("conv2d", IMAGES, random(8, 2, 3, 3), random(8), groups=2, padding="same", dilation=2),
    Case("conv2d", IMAGES, random(6, 4, 1, 1), padding="valid"),
    Case("conv2d", IMAGES, random(4, 1, 3, 3), groups=4, padding=1),
    Case(
        "conv2d",
        IMAGES,
        random(6, 4, 3, 3),
        random(6),
        padding=[1, 2, 0, 1],
        activation="relu",
        like=lambda torch, x, w, b: torch.relu(
            torch.nn.functional.conv2d(torch.nn.functional.pad(x, (2, 1, 1, 0)), w, b)
        ),
    ),
    Case("conv_transpose2d", IMAGES, random(4, 3, 3, 3), random(3), stride=2, padding=1, output_padding=1),
    Case("conv_transpose2d", IMAGES, random(4, 3, 2, 3), groups=2, dilation=(1, 2)),
    Case(
        "conv_transpose2d",
        IMAGES,
        random(4, 3, 3, 3),
        activation="sigmoid",
        like=lambda torch, x, w: torch.sigmoid(torch.nn.functional.conv_transpose2d(x, w)),
    ),
    Case("linear", random(5, 7), random(3, 7), random(3)),
    Case("linear", random(5, 7), random(3, 7)),
    Case("linear", random(2, 5, 7), random(3, 7), random(3)),
    Case("linear", random(7), random(3, 7)),
    Case(
        "linear",
        random(5, 7),
        random(3, 7),
        random(3),
        activation="tanh",
        like=lambda torch, x, w, b: torch.tanh(torch.nn.functional.linear(x, w, b)),
    ),
    Case(
        "inner_product",
        random(3, 2, 2, 3),
        random(4, 12),
        random(4),
        activation="relu",
        like=lambda torch, x, w, b: torch.relu(torch.nn.functional.linear(x.flatten(1), w, b)),
    ),
    Case(
        "inner_product",
        random(3, 2, 2, 3),
        random(4, 12),
        like=lambda torch, x, w: torch.nn.functional.linear(x.flatten(1), w),
    ),
    Case("matmul", random(5, 4), random(4, 3)),
    Case("matmul", random(2, 1, 5, 4), random(3, 4, 3)),
    Case(
        "matmul",
        random(2, 4, 5),
        random(3, 4),
        random(3),
        transpose_a=True,
        transpose_b=True,
        alpha=0.5,
        like=lambda torch, a, b, bias: 0.5 * a.transpose(-1, -2) @ b.transpose(-1, -2) + bias,
    ),
    Case(
        "matmul_add",
        random(5, 4),
        random(4, 3),
        random(5, 3),
        alpha=0.5,
        beta=-2,
        like=lambda torch, a, b, c: torch.addmm(c, a, b, alpha=0.5, beta=-2),
    ),
    Case("matmul_add", random(5, 4), random(4, 3), random(3), like=lambda torch, a, b, c: torch.addmm(c, a, b)),
    Case(
        "matmul_add",
        random(2, 4, 5),
        random(2, 3, 4),
        random(2, 1, 3),
        transpose_a=True,
        transpose_b=True,
        like=lambda torch, a, b, c: torch.baddbmm(c, a.transpose(1, 2), b.transpose(1, 2)),
    ),
]
