# SPDX-License-Identifier: MIT
"""Activations."""

from __future__ import annotations

from .case import Case, apart, positive, random, torch_function

VALUES = apart(3, 4, 5)

ACTIVATIONS = [
    *(
        Case(name, VALUES)
        for name in (
            "relu",
            "relu6",
            "sigmoid",
            "tanh",
            "silu",
            "hardswish",
            "hardsigmoid",
            "selu",
            "softsign",
            "mish",
            "logsigmoid",
            "tanhshrink",
            "gelu",
            "leaky_relu",
            "elu",
            "celu",
            "softplus",
            "softshrink",
            "hardshrink",
            "hardtanh",
        )
    ),
    *(Case(name, VALUES, like=torch_function(name)) for name in ("exp", "square", "neg", "abs")),
    *(Case(name, positive(3, 4), like=torch_function(name)) for name in ("log", "sqrt")),
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
