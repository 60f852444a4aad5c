# SPDX-License-Identifier: MIT
"""Running results along a dimension."""

from __future__ import annotations

from .case import Case, apart, labels, positive, random

SCANS = [
    Case("cumsum", random(3, 6), 1),
    Case("cumsum", random(3, 6), 0, reverse=True, like=lambda torch, x, dim: x.flip(dim).cumsum(dim).flip(dim)),
    Case("cumsum", random(3, 6), 1, exclusive=True, like=lambda torch, x, dim: x.cumsum(dim) - x),
    Case("cumsum", labels(9, 3, 6), -1, differentiable=False),
    Case(
        "cumsum",
        labels(9, 3, 6),
        -1,
        dtype="int32",
        like=lambda torch, x, dim: x.cumsum(dim, dtype=torch.int32),
        differentiable=False,
    ),
    Case("cumprod", positive(3, 6), 1),
    Case("cumprod", positive(3, 6), 0, exclusive=True, like=lambda torch, x, dim: x.cumprod(dim) / x),
    Case("cumprod", positive(3, 6), 1, reverse=True, like=lambda torch, x, dim: x.flip(dim).cumprod(dim).flip(dim)),
    Case("cummax", apart(3, 6, 2), 1),
    Case("cummin", apart(3, 6, 2), -2),
    Case(
        "cummin",
        apart(3, 6),
        1,
        reverse=True,
        like=lambda torch, x, dim: (
            torch.cummin(x.flip(dim), dim)[0].flip(dim),
            5 - torch.cummin(x.flip(dim), dim)[1].flip(dim),
        ),
    ),
    Case("logcumsumexp", random(3, 6), 0),
    Case(
        "logcumsumexp",
        random(3, 6),
        1,
        reverse=True,
        like=lambda torch, x, dim: x.flip(dim).logcumsumexp(dim).flip(dim),
    ),
]
