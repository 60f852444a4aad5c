# SPDX-License-Identifier: MIT
"""Functions whose arguments are not their operator's options."""

from __future__ import annotations

from ..._arguments import Ints, Scale
from .. import _layers as layers
from .._declared import Activation
from .._graph import Generic, LayerOptions, Symbol
from .._options import unless
from .._unpack import Unpack
from .arguments import is_float
from .programs import unary_program


def activation(
    x: Symbol,
    function: str,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Applies a function of docs/json.md, such as ``"gelu"``, to each element. `alpha` and `beta` are parameters."""
    return Activation(function, alpha=alpha, beta=beta, **common)(x)


def gelu(x: Symbol, approximate: str = "none", **common: Unpack[LayerOptions]) -> Symbol:
    """x Phi(x), where Phi is the normal distribution function. `approximate="tanh"` approximates it by tanh."""
    return layers.GELU(approximate, **common)(x)


def neg(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """-x."""
    if is_float(x):
        return activation(x, "neg", **common)
    return unary_program("neg", "y0 = -x0", x, common)


def step(x: Symbol, threshold: float = 0.0, **common: Unpack[LayerOptions]) -> Symbol:
    """1 if x > `threshold`, else 0. It has no gradient."""
    return Generic("Threshold", "step", {"threshold": unless(threshold, 0.0)}, common).apply(x)[0]


def interpolate(
    x: Symbol,
    size: Ints | None = None,
    scale_factor: Scale | None = None,
    *,
    mode: str = "nearest",
    align_corners: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Resizes images [N, C, H, W]: `mode` is "nearest", "nearest-exact" or "bilinear". `resize` has other modes."""
    return layers.Upsample(size, scale_factor, mode=mode, align_corners=align_corners, **common)(x)
