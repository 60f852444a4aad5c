# SPDX-License-Identifier: MIT
"""Activations."""

from __future__ import annotations

from dlprim._operators import signatures, table

from .case import Case, apart, positive, random

VALUES = apart(3, 4, 5)

#: Functions whose cases stand below: their arguments have no defaults, or PyTorch's function has another name.
OTHERWISE = {"activation", "binarize", "dropout", "identity"}
NAMES = [signatures.name_of(row) for row in table.ACTIVATIONS if "=required" not in row.signature]

ACTIVATIONS = [
    *(Case(name, positive(3, 4) if name in ("log", "sqrt") else VALUES) for name in NAMES if name not in OTHERWISE),
    Case("gelu", VALUES),
    Case("identity", VALUES, like=lambda torch, x: x * 1),
    Case("gelu", VALUES, approximate="tanh"),
    Case("leaky_relu", VALUES, negative_slope=0.3),
    Case("elu", VALUES, alpha=0.7),
    Case("celu", VALUES, alpha=0.7),
    Case("softplus", VALUES, beta=2.0, threshold=1.5),
    Case("softshrink", VALUES, lambd=0.9),
    Case("hardshrink", VALUES, lambd=0.9),
    Case("threshold", VALUES, 0.6, -2.0),
    Case("hardtanh", VALUES, min_val=-0.4, max_val=1.3),
    Case("activation", VALUES, "softplus", alpha=2.0, like=lambda torch, x, _: torch.nn.functional.softplus(x, 2.0)),
    Case("binarize", VALUES, threshold=0.3, like=lambda torch, x: (x > 0.3).float() + 0 * x),
    Case("prelu", VALUES, random(4)),
    Case("prelu", VALUES, random(1)),
    Case("dropout", VALUES, training=False),
]
