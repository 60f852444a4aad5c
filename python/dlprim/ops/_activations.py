# SPDX-License-Identifier: MIT
"""Functions of one tensor, element by element.

Each takes a tensor of any shape and a float dtype, and returns a tensor of the same shape and dtype.
"""

from __future__ import annotations

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import kept, make_call, operator


@kept
def activation_call(name: str, alpha: float | None, beta: float | None) -> Call:
    return make_call("Activation", {"activation": name, "alpha": alpha, "beta": beta})


@operator
def activation(
    input: Tensor,
    activation: str,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The activation with that name, for example "relu". docs/json.md lists them, with the meaning of alpha and beta.

    Raises InvalidArgumentError (a ValueError) on another name.
    """
    return activation_call(activation, alpha, beta).one((input,), (), out)


IDENTITY = activation_call("identity", None, None)


@operator
def identity(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the input. Raises InvalidArgumentError if the dtype is not a float type."""
    return IDENTITY.one((input,), (), out)


RELU = activation_call("relu", None, None)


@operator
def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """max(x, 0). Raises InvalidArgumentError if the dtype is not a float type."""
    return RELU.one((input,), (), out)


RELU6 = activation_call("relu6", None, None)


@operator
def relu6(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """min(max(x, 0), 6). Raises InvalidArgumentError if the dtype is not a float type."""
    return RELU6.one((input,), (), out)


SIGMOID = activation_call("sigmoid", None, None)


@operator
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x)). Raises InvalidArgumentError if the dtype is not a float type."""
    return SIGMOID.one((input,), (), out)


TANH = activation_call("tanh", None, None)


@operator
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent. Raises InvalidArgumentError if the dtype is not a float type."""
    return TANH.one((input,), (), out)


SILU = activation_call("silu", None, None)


@operator
def silu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x sigmoid(x). Raises InvalidArgumentError if the dtype is not a float type."""
    return SILU.one((input,), (), out)


HARDSWISH = activation_call("hardswish", None, None)


@operator
def hardswish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x min(max(x + 3, 0), 6) / 6. Raises InvalidArgumentError if the dtype is not a float type."""
    return HARDSWISH.one((input,), (), out)


HARDSIGMOID = activation_call("hardsigmoid", None, None)


@operator
def hardsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """min(max(x / 6 + 0.5, 0), 1). Raises InvalidArgumentError if the dtype is not a float type."""
    return HARDSIGMOID.one((input,), (), out)


SELU = activation_call("selu", None, None)


@operator
def selu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1.0507... times elu(x) with alpha 1.6732... Raises InvalidArgumentError if the dtype is not a float type."""
    return SELU.one((input,), (), out)


SOFTSIGN = activation_call("softsign", None, None)


@operator
def softsign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x / (1 + abs(x)). Raises InvalidArgumentError if the dtype is not a float type."""
    return SOFTSIGN.one((input,), (), out)


MISH = activation_call("mish", None, None)


@operator
def mish(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x tanh(softplus(x)). Raises InvalidArgumentError if the dtype is not a float type."""
    return MISH.one((input,), (), out)


LOGSIGMOID = activation_call("logsigmoid", None, None)


@operator
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(sigmoid(x)). Raises InvalidArgumentError if the dtype is not a float type."""
    return LOGSIGMOID.one((input,), (), out)


TANHSHRINK = activation_call("tanhshrink", None, None)


@operator
def tanhshrink(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x - tanh(x). Raises InvalidArgumentError if the dtype is not a float type."""
    return TANHSHRINK.one((input,), (), out)


EXP = activation_call("exp", None, None)


@operator
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power of x. Raises InvalidArgumentError if the dtype is not a float type."""
    return EXP.one((input,), (), out)


LOG = activation_call("log", None, None)


@operator
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm; NaN for negative numbers. Raises InvalidArgumentError if the dtype is not a float type."""
    return LOG.one((input,), (), out)


SQRT = activation_call("sqrt", None, None)


@operator
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root; NaN for negative numbers. Raises InvalidArgumentError if the dtype is not a float type."""
    return SQRT.one((input,), (), out)


SQUARE = activation_call("square", None, None)


@operator
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x x. Raises InvalidArgumentError if the dtype is not a float type."""
    return SQUARE.one((input,), (), out)


NEG = activation_call("neg", None, None)


@operator
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x. Raises InvalidArgumentError if the dtype is not a float type."""
    return NEG.one((input,), (), out)


ABS = Call("Abs")


@operator
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""
    return ABS.one((input,), (), out)


GELU = {"none": activation_call("gelu", None, None), "tanh": activation_call("gelu_tanh", None, None)}


@operator
def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """x Phi(x), where Phi is the normal distribution function, computed by erf.

    With approximate="tanh" it is approximated by tanh. Raises ValueError on another approximation, and
    InvalidArgumentError if the dtype is not a float type.
    """
    kernel = GELU.get(approximate)
    if kernel is None:
        raise InvalidArgumentError(f"gelu: approximate '{approximate}' is not one of 'none', 'tanh'")
    return kernel.one((input,), (), out)


@operator
def leaky_relu(input: Tensor, *, negative_slope: float = 0.01, out: Tensor | None = None) -> Tensor:
    """x if x > 0, else negative_slope x."""
    return activation_call("leaky_relu", negative_slope, None).one((input,), (), out)


@operator
def elu(input: Tensor, *, alpha: float = 1.0, out: Tensor | None = None) -> Tensor:
    """x if x > 0, else alpha (exp(x) - 1)."""
    return activation_call("elu", alpha, None).one((input,), (), out)


@operator
def celu(input: Tensor, *, alpha: float = 1.0, out: Tensor | None = None) -> Tensor:
    """x if x > 0, else alpha (exp(x / alpha) - 1)."""
    return activation_call("celu", alpha, None).one((input,), (), out)


@operator
def softplus(input: Tensor, *, beta: float = 1.0, threshold: float = 20.0, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta x)) / beta; x where beta x is above the threshold."""
    return activation_call("softplus", beta, threshold).one((input,), (), out)


@operator
def softshrink(input: Tensor, *, lambd: float = 0.5, out: Tensor | None = None) -> Tensor:
    """x - lambd if x > lambd, x + lambd if x < -lambd, else 0."""
    return activation_call("softshrink", lambd, None).one((input,), (), out)


@operator
def hardshrink(input: Tensor, *, lambd: float = 0.5, out: Tensor | None = None) -> Tensor:
    """x if abs(x) > lambd, else 0."""
    return activation_call("hardshrink", lambd, None).one((input,), (), out)


@operator
def threshold(input: Tensor, threshold: float, value: float, *, out: Tensor | None = None) -> Tensor:
    """x if x > threshold, else value, as torch.nn.functional.threshold. `binarize` is Threshold of network JSON."""
    return activation_call("threshold", threshold, value).one((input,), (), out)


@kept
def hardtanh_call(min_val: float, max_val: float) -> Call:
    return make_call("Hardtanh", {"min_val": min_val, "max_val": max_val})


@operator
def hardtanh(input: Tensor, *, min_val: float = -1.0, max_val: float = 1.0, out: Tensor | None = None) -> Tensor:
    """min(max(x, min_val), max_val)."""
    return hardtanh_call(min_val, max_val).one((input,), (), out)


@kept
def binarize_call(threshold: float) -> Call:
    return make_call("Threshold", {"threshold": threshold})


@operator
def binarize(input: Tensor, *, threshold: float = 0.0, out: Tensor | None = None) -> Tensor:
    """1 if x > threshold, else 0: the operator Threshold of network JSON. Its gradient is 0."""
    return binarize_call(threshold).one((input,), (), out)


@kept
def prelu_call(count: int) -> Call:
    return make_call("PReLU", {"num_parameters": count})


@operator
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x if x > 0, else weight x.

    input: [N, C, ...]. weight: [1] or [C]. Raises InvalidArgumentError (a ValueError) on other shapes.
    """
    shape = weight.shape
    return prelu_call(shape[0] if shape else 1).one((input,), (weight,), out)


@kept
def dropout_call(p: float, training: bool, stream: int | None) -> Call:
    return make_call("Dropout", {"p": p, "stream": stream}, training=training)


@operator
def dropout(
    input: Tensor,
    p: float = 0.5,
    *,
    training: bool = True,
    seed: int = 1,
    step: int = 0,
    stream: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """In training, sets each element to 0 with probability p and divides the others by 1 - p. Otherwise makes a copy.

    seed, step: integers from 0 to 2^64 - 1.
    stream: an integer from 0 to 2^24 - 1.
    Equal seed, step and stream drop the same elements on every device. `grad` needs those of the forward call.

    Raises InvalidArgumentError (a ValueError) if p is not in [0, 1].
    """
    return dropout_call(p, training, stream).one((input,), (), out, seed, step)
