# SPDX-License-Identifier: MIT
"""Layers that apply a function to each element, softmax along a dimension, and dropout."""

from __future__ import annotations

from ...errors import InvalidArgumentError
from .._graph import LayerOptions, SingleLayer
from .._unpack import Unpack
from .options import unless


class Activation(SingleLayer):
    """Applies a function of docs/json.md, such as ``"gelu"``, to each element. `alpha` and `beta` are parameters."""

    type = "Activation"

    def __init__(
        self, function: str, *, alpha: float | None = None, beta: float | None = None, **common: Unpack[LayerOptions]
    ) -> None:
        super().__init__({"activation": function, "alpha": alpha, "beta": beta}, common)
        self.prefix = function if isinstance(function, str) and function else self.prefix


class ReLU(Activation):
    """max(x, 0)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("relu", **common)


class ReLU6(Activation):
    """min(max(x, 0), 6)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("relu6", **common)


class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("sigmoid", **common)


class Tanh(Activation):
    """tanh(x)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("tanh", **common)


class GELU(Activation):
    """x Phi(x), where Phi is the normal distribution function. `approximate="tanh"` approximates it by tanh."""

    def __init__(self, approximate: str = "none", **common: Unpack[LayerOptions]) -> None:
        if approximate not in ("none", "tanh"):
            raise InvalidArgumentError(f"GELU: approximate is '{approximate}'; it is 'none' or 'tanh'")
        super().__init__("gelu" if approximate == "none" else "gelu_tanh", **common)


class SiLU(Activation):
    """x sigmoid(x)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("silu", **common)


class Hardswish(Activation):
    """x min(max(x + 3, 0), 6) / 6."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("hardswish", **common)


class Hardsigmoid(Activation):
    """min(max(x / 6 + 0.5, 0), 1)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("hardsigmoid", **common)


class LeakyReLU(Activation):
    """x if x > 0, else negative_slope x."""

    def __init__(self, negative_slope: float = 0.01, **common: Unpack[LayerOptions]) -> None:
        super().__init__("leaky_relu", alpha=negative_slope, **common)


class ELU(Activation):
    """x if x > 0, else alpha (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, **common: Unpack[LayerOptions]) -> None:
        super().__init__("elu", alpha=alpha, **common)


class Softplus(Activation):
    """log(1 + exp(beta x)) / beta; x if beta x is above `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0, **common: Unpack[LayerOptions]) -> None:
        super().__init__("softplus", alpha=beta, beta=threshold, **common)


class Mish(Activation):
    """x tanh(softplus(x))."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("mish", **common)


class Hardtanh(SingleLayer):
    """min(max(x, min_val), max_val)."""

    type = "Hardtanh"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"min_val": unless(min_val, -1.0), "max_val": unless(max_val, 1.0)}, common)


class PReLU(SingleLayer):
    """x if x > 0, else weight x. Parameter: weight [num_parameters], 1 or the number of channels."""

    type = "PReLU"
    prefix = "prelu"

    def __init__(self, num_parameters: int = 1, init: float = 0.25, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"num_parameters": unless(num_parameters, 1), "init": unless(init, 0.25)}, common)


class Softmax(SingleLayer):
    """exp(x) / sum(exp(x)) along `dim`."""

    type = "Softmax"

    def __init__(self, dim: int = 1, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"dim": unless(dim, 1)}, common)


class LogSoftmax(SingleLayer):
    """The logarithm of softmax along `dim`."""

    type = "Softmax"

    def __init__(self, dim: int = 1, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"log": True, "dim": unless(dim, 1)}, common)


class Dropout(SingleLayer):
    """In training, sets a share `p` of the elements to 0 and divides the others by 1 - p. Otherwise it changes nothing.

    `stream`, from 0 to 2^24 - 1, selects the random numbers: two layers with the same stream drop the same elements.
    """

    type = "Dropout"

    def __init__(self, p: float = 0.5, *, stream: int | None = None, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"p": unless(p, 0.5), "stream": stream}, common)
