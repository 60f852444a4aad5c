# SPDX-License-Identifier: MIT
"""Functions of each element, softmax along a dimension, and dropout."""

from __future__ import annotations

from .. import _layers as layers
from .._graph import Generic, LayerOptions, Symbol
from .._layers.options import unless
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
    return layers.Activation(function, alpha=alpha, beta=beta, **common)(x)


def relu(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """max(x, 0)."""
    return activation(x, "relu", **common)


def relu6(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """min(max(x, 0), 6)."""
    return activation(x, "relu6", **common)


def sigmoid(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """1 / (1 + exp(-x))."""
    return activation(x, "sigmoid", **common)


def tanh(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """tanh(x)."""
    return activation(x, "tanh", **common)


def gelu(x: Symbol, approximate: str = "none", **common: Unpack[LayerOptions]) -> Symbol:
    """x Phi(x), where Phi is the normal distribution function. `approximate="tanh"` approximates it by tanh."""
    return layers.GELU(approximate, **common)(x)


def silu(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """x sigmoid(x)."""
    return activation(x, "silu", **common)


def hardswish(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """x min(max(x + 3, 0), 6) / 6."""
    return activation(x, "hardswish", **common)


def hardsigmoid(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """min(max(x / 6 + 0.5, 0), 1)."""
    return activation(x, "hardsigmoid", **common)


def hardtanh(x: Symbol, min_val: float = -1.0, max_val: float = 1.0, **common: Unpack[LayerOptions]) -> Symbol:
    """min(max(x, min_val), max_val)."""
    return layers.Hardtanh(min_val, max_val, **common)(x)


def leaky_relu(x: Symbol, negative_slope: float = 0.01, **common: Unpack[LayerOptions]) -> Symbol:
    """x if x > 0, else negative_slope x."""
    return layers.LeakyReLU(negative_slope, **common)(x)


def elu(x: Symbol, alpha: float = 1.0, **common: Unpack[LayerOptions]) -> Symbol:
    """x if x > 0, else alpha (exp(x) - 1)."""
    return layers.ELU(alpha, **common)(x)


def selu(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """1.0507... times elu(x) with alpha 1.6732..."""
    return activation(x, "selu", **common)


def celu(x: Symbol, alpha: float = 1.0, **common: Unpack[LayerOptions]) -> Symbol:
    """x if x > 0, else alpha (exp(x / alpha) - 1)."""
    return activation(x, "celu", alpha=alpha, **common)


def softplus(x: Symbol, beta: float = 1.0, threshold: float = 20.0, **common: Unpack[LayerOptions]) -> Symbol:
    """log(1 + exp(beta x)) / beta; x if beta x is above `threshold`."""
    return layers.Softplus(beta, threshold, **common)(x)


def softsign(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """x / (1 + abs(x))."""
    return activation(x, "softsign", **common)


def mish(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """x tanh(softplus(x))."""
    return activation(x, "mish", **common)


def logsigmoid(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """log(sigmoid(x))."""
    return activation(x, "logsigmoid", **common)


def tanhshrink(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """x - tanh(x)."""
    return activation(x, "tanhshrink", **common)


def softshrink(x: Symbol, lambd: float = 0.5, **common: Unpack[LayerOptions]) -> Symbol:
    """x - lambd if x > lambd, x + lambd if x < -lambd, else 0."""
    return activation(x, "softshrink", alpha=lambd, **common)


def hardshrink(x: Symbol, lambd: float = 0.5, **common: Unpack[LayerOptions]) -> Symbol:
    """x if abs(x) > lambd, else 0."""
    return activation(x, "hardshrink", alpha=lambd, **common)


def threshold(x: Symbol, threshold: float, value: float, **common: Unpack[LayerOptions]) -> Symbol:
    """x if x > `threshold`, else `value`, as in PyTorch. nn.step returns 1 and 0."""
    return activation(x, "threshold", alpha=threshold, beta=value, **common)


def exp(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """exp(x)."""
    return activation(x, "exp", **common)


def log(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """The natural logarithm."""
    return activation(x, "log", **common)


def sqrt(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """The square root."""
    return activation(x, "sqrt", **common)


def square(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """x * x."""
    return activation(x, "square", **common)


def neg(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """-x."""
    if is_float(x):
        return activation(x, "neg", **common)
    return unary_program("neg", "y0 = -x0", x, common)


def abs(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """The absolute value."""
    return Generic("Abs", "abs", {}, common).apply(x)[0]


def step(x: Symbol, threshold: float = 0.0, **common: Unpack[LayerOptions]) -> Symbol:
    """1 if x > `threshold`, else 0. It has no gradient."""
    return Generic("Threshold", "step", {"threshold": unless(threshold, 0.0)}, common).apply(x)[0]


def softmax(x: Symbol, dim: int = 1, **common: Unpack[LayerOptions]) -> Symbol:
    """exp(x) / sum(exp(x)) along `dim`."""
    return layers.Softmax(dim, **common)(x)


def log_softmax(x: Symbol, dim: int = 1, **common: Unpack[LayerOptions]) -> Symbol:
    """The logarithm of softmax along `dim`."""
    return layers.LogSoftmax(dim, **common)(x)


def dropout(x: Symbol, p: float = 0.5, *, stream: int | None = None, **common: Unpack[LayerOptions]) -> Symbol:
    """In training, sets a share `p` of the elements to 0 and divides the others by 1 - p. Otherwise returns x."""
    return layers.Dropout(p, stream=stream, **common)(x)
