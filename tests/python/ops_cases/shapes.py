# SPDX-License-Identifier: MIT
"""Operators that move data."""

from __future__ import annotations

import numpy as np

from .case import Case, random, torch_function

SHAPES = [
    Case("concat", [random(2, 3), random(4, 3)]),
    Case("concat", (random(2, 3), random(2, 1), random(2, 2)), -1),
    Case("slice", random(3, 6), 1, 2, 5, like=lambda torch, x, dim, begin, end: x[:, 2:5]),
    Case("slice", random(3, 6), -1, -4, -1, like=lambda torch, x, dim, begin, end: x[:, -4:-1]),
    Case("slice", random(3, 6), 0, 1, like=lambda torch, x, dim, begin: x[1:]),
    Case("split", random(6, 4), 3, like=torch_function("chunk")),
    Case("split", random(6, 4), 2, dim=-1, like=lambda torch, x, parts: torch.chunk(x, parts, -1)),
    Case("flatten", random(2, 3, 4), like=lambda torch, x: x.flatten(1)),
    Case("reshape", random(2, 3, 4), (0, -1), like=lambda torch, x, shape: x.reshape(2, 12)),
    Case("reshape", random(2, 3, 4), [6, 4]),
    Case("squeeze", random(1, 3, 1)),
    Case("squeeze", random(1, 3, 1), 0),
    Case("squeeze", random(1, 3, 1), (0, 1)),
    Case("transpose", random(2, 3, 4), like=lambda torch, x: x.transpose(-1, -2)),
    Case("transpose", random(2, 3, 4), 0, 2),
    Case("permute", random(2, 3, 4), [2, 0, 1]),
    Case("flip", random(2, 3, 4), [0, -1]),
    Case("flip", random(2, 3, 4), 1, like=lambda torch, x, dim: x.flip(dim)),
    Case("pad", random(2, 3, 4), (1, 2)),
    Case("pad", random(2, 3, 4), [1, 2, -1, 3], value=1.5),
    *(Case("pad", random(2, 3, 4, 5), (1, 2, 2, 1), mode=mode) for mode in ("reflect", "replicate", "circular")),
    Case("cast", random(3, 4), "float16", like=lambda torch, x, _: x.half()),
    Case("cast", random(3, 4), np.int32, like=lambda torch, x, _: x.int(), differentiable=False),
]
