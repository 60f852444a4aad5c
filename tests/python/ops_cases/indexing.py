# SPDX-License-Identifier: MIT
"""Operators that read or write at indices, and order."""

from __future__ import annotations

from .case import Case, apart, labels, random, torch_function

INDEXING = [
    Case("gather", random(4, 6), 1, labels(6, 4, 9)),
    Case("index_select", random(4, 6, 2), 1, labels(6, 5)),
    Case("gather_nd", random(4, 4, 3), labels(4, 5, 2), like=lambda torch, x, i: x[tuple(i.unbind(-1))]),
    Case("scatter", random(4, 6), 1, labels(6, 4, 1), random(4, 1)),
    Case(
        "scatter",
        random(4, 6),
        1,
        labels(6, 4, 9),
        random(4, 9),
        reduction="add",
        like=torch_function("scatter_add"),
    ),
    Case(
        "scatter_nd",
        random(4, 4, 3),
        labels(4, 5, 2),
        random(5, 3),
        reduction="add",
        like=lambda torch, x, i, u: x.index_put(tuple(i.unbind(-1)), u, accumulate=True),
    ),
    Case("topk", apart(3, 9), 4),
    Case("topk", apart(3, 9), 2, 0, False),
    Case("sort", apart(5, 7), 0, descending=True),
    *(
        Case(name, apart(5, 7), *args, differentiable=False)
        for name in ("argmax", "argmin")
        for args in ((None, True), (0,), (-1, True))
    ),
    *(
        Case(name, apart(5, 7, 2), *args)
        for name in ("max", "min")
        for args in ((1,), (-1, True))
    ),
    Case(
        "nonzero",
        labels(2, 4, 5),
        like=lambda torch, x: (torch.nonzero_static(x, size=20), (x != 0).sum().reshape(1)),
        differentiable=False,
    ),
    Case(
        "nonzero",
        labels(2, 4, 5),
        size=3,
        like=lambda torch, x: (torch.nonzero_static(x, size=3), (x != 0).sum().reshape(1)),
        differentiable=False,
    ),
    Case(
        "nonzero",
        labels(2, 4, 5),
        size=25,
        fill_value=7,
        flat=True,
        like=lambda torch, x: (
            torch.nonzero_static(x.flatten(), size=25, fill_value=7).flatten(),
            (x != 0).sum().reshape(1),
        ),
        differentiable=False,
    ),
    Case("embedding", labels(6, 2, 3), random(6, 4)),
    Case("embedding", labels(6, 20), random(6, 4), padding_idx=-2),
]
