# SPDX-License-Identifier: MIT
"""Functions of symbols: operators without parameters, losses, and the arithmetic that the operators of Symbol use.

Each function also takes the keywords of LayerOptions: name, frozen, engine, precision.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgumentError
from ..summary import dtype_name
from . import _layers as layers
from ._graph import Generic, IntOrPair, LayerOptions, Number, Symbol, describe_value
from ._layers import as_loss, target_of, unless

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


# Activations ---------------------------------------------------------------------------------------------------------


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
    if _is_float(x):
        return activation(x, "neg", **common)
    return _unary("neg", "y0 = -x0", x, common)


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


# Arithmetic of two tensors, or of a tensor and a number --------------------------------------------------------------


def add(
    a: Symbol | Number, b: Symbol | Number, *, activation: str = "identity", **common: Unpack[LayerOptions]
) -> Symbol:
    """a + b, broadcast as in numpy; one of them may be a number. `activation` is applied to the result."""
    return _binary("add", "+", a, b, common, {"activation": unless(activation, "identity")})


def sub(a: Symbol | Number, b: Symbol | Number, **common: Unpack[LayerOptions]) -> Symbol:
    """a - b, broadcast as in numpy; one of them may be a number."""
    return _binary("sub", "-", a, b, common, {"coef2": -1.0})


def mul(
    a: Symbol | Number, b: Symbol | Number, *, activation: str = "identity", **common: Unpack[LayerOptions]
) -> Symbol:
    """a * b, broadcast as in numpy; one of them may be a number. `activation` is applied to the result."""
    return _binary("mul", "*", a, b, common, {"operation": "prod", "activation": unless(activation, "identity")})


def div(a: Symbol | Number, b: Symbol | Number, **common: Unpack[LayerOptions]) -> Symbol:
    """a / b, broadcast as in numpy; one of them may be a number."""
    return _binary("div", "/", a, b, common, None)


def maximum(a: Symbol, b: Symbol, *, activation: str = "identity", **common: Unpack[LayerOptions]) -> Symbol:
    """The larger one of each pair of elements of two tensors, broadcast as in numpy."""
    options = {"operation": "max", "activation": unless(activation, "identity")}
    return Generic("Elementwise", "maximum", options, common).apply(a, b)[0]


def weighted_sum(
    a: Symbol,
    b: Symbol,
    coef1: float = 1.0,
    coef2: float = 1.0,
    *,
    activation: str = "identity",
    **common: Unpack[LayerOptions],
) -> Symbol:
    """coef1 a + coef2 b, broadcast as in numpy."""
    options = {"coef1": coef1, "coef2": coef2, "activation": unless(activation, "identity")}
    return Generic("Elementwise", "weighted_sum", options, common).apply(a, b)[0]


def pow(x: Symbol, exponent: Number, **common: Unpack[LayerOptions]) -> Symbol:
    """x to the power of a number."""
    if _number(exponent) == 2 and _is_float(x):
        return square(x, **common)
    return _unary("pow", "y0 = pow(x0, p0)", x, common, [_number(exponent)])


def matmul(
    a: Symbol,
    b: Symbol,
    bias: Symbol | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """alpha a b + bias: [..., M, K] and [..., K, N] -> [..., M, N]. Leading dimensions broadcast. bias is [N].

    With `transpose_a` or `transpose_b`, the last two dimensions of that factor are swapped first.
    """
    options = {
        "transpose_a": unless(transpose_a, False),
        "transpose_b": unless(transpose_b, False),
        "alpha": unless(alpha, 1.0),
        "bias": True if bias is not None else None,
    }
    inputs = (a, b) if bias is None else (a, b, bias)
    return Generic("MatMul", "matmul", options, common).apply(*inputs)[0]


def pointwise(
    code: str,
    *inputs: Symbol,
    scalars: Sequence[Number] = (),
    dtypes: Sequence[str] = (),
    keepdim: bool = True,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Computes an expression in one kernel: ``nn.pointwise("y0 = max(x0 * p0, x1)", a, b, scalars=[2])``.

    docs/pointwise.md describes the language. The inputs x0, x1, ... broadcast as in numpy. For programs with several
    outputs use `pointwise_all`.
    """
    made = pointwise_all(code, *inputs, scalars=scalars, dtypes=dtypes, keepdim=keepdim, **common)
    if len(made) != 1:
        raise InvalidArgumentError(f"the program makes {len(made)} outputs; nn.pointwise_all returns all of them")
    return made[0]


def pointwise_all(
    code: str,
    *inputs: Symbol,
    scalars: Sequence[Number] = (),
    dtypes: Sequence[str] = (),
    keepdim: bool = True,
    **common: Unpack[LayerOptions],
) -> tuple[Symbol, ...]:
    """The outputs y0, y1, ... of a program (docs/pointwise.md)."""
    if not isinstance(code, str):
        raise TypeError(f"nn.pointwise: the code is {describe_value(code)}; a string such as 'y0 = x0 + x1' is needed")
    options = {
        "code": code,
        "scalars": [_number(value) for value in scalars] or None,
        "dtypes": list(dtypes) or None,
        "keep_dim": unless(keepdim, True),
    }
    outputs = 1 + builtins.max((int(digits) for digits in re.findall(r"\by(\d{1,4})\s*=(?!=)", code)), default=0)
    return Generic("Pointwise", "pointwise", options, common, outputs).apply(*inputs)


# Sums ----------------------------------------------------------------------------------------------------------------


def reduce(
    x: Symbol,
    method: str = "sum",
    dims: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    scale: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Sums over dimensions; without `dims`, over all.

    `method` is "sum", "sumsq" (of squares), "abssum" (of absolute values) or "mean". The result is multiplied by
    `scale`. With `keepdim`, reduced dimensions remain with size 1.
    """
    options = {
        "method": unless(method, "sum"),
        "dims": [dims] if isinstance(dims, int) else dims,
        "keep_dim": keepdim,
        "output_scale": unless(scale, 1.0),
    }
    prefix = method if isinstance(method, str) and method.isidentifier() else "reduce"
    return Generic("Reduction", prefix, options, common).apply(x)[0]


def sum(
    x: Symbol, dims: int | Sequence[int] | None = None, *, keepdim: bool = False, **common: Unpack[LayerOptions]
) -> Symbol:
    """The sum over dimensions; without `dims`, over all."""
    return reduce(x, "sum", dims, keepdim=keepdim, **common)


def mean(
    x: Symbol, dims: int | Sequence[int] | None = None, *, keepdim: bool = False, **common: Unpack[LayerOptions]
) -> Symbol:
    """The mean over dimensions; without `dims`, over all."""
    return reduce(x, "mean", dims, keepdim=keepdim, **common)


# Images --------------------------------------------------------------------------------------------------------------


def max_pool2d(
    x: Symbol,
    kernel_size: IntOrPair,
    *,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The largest value of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size."""
    return layers.MaxPool2d(kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, **common)(x)


def avg_pool2d(
    x: Symbol,
    kernel_size: IntOrPair,
    *,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The mean of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size."""
    layer = layers.AvgPool2d(
        kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        **common,
    )
    return layer(x)


def global_avg_pool2d(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """The mean of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""
    return layers.GlobalAvgPool2d(**common)(x)


def global_max_pool2d(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """The largest value of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""
    return layers.GlobalMaxPool2d(**common)(x)


def interpolate(
    x: Symbol,
    size: IntOrPair | None = None,
    scale_factor: Number | Sequence[Number] | None = None,
    *,
    mode: str = "nearest",
    align_corners: bool = False,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """Resizes images [N, C, H, W]: `mode` is "nearest", "nearest-exact" or "bilinear"."""
    return layers.Upsample(size, scale_factor, mode=mode, align_corners=align_corners, **common)(x)


# Shapes --------------------------------------------------------------------------------------------------------------


def concat(tensors: Sequence[Symbol], dim: int = 1, **common: Unpack[LayerOptions]) -> Symbol:
    """Concatenates tensors along `dim`. Their other dimensions must agree."""
    if isinstance(tensors, Symbol):
        raise TypeError("nn.concat takes a list of tensors")
    return Generic("Concat", "concat", {"dim": unless(dim, 1)}, common).apply(*tensors)[0]


def split(x: Symbol, parts: int, dim: int = 1, **common: Unpack[LayerOptions]) -> tuple[Symbol, ...]:
    """Cuts `dim` into `parts` equal pieces."""
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise TypeError(f"nn.split: parts is {describe_value(parts)}; the number of equal pieces is needed")
    return Generic("Split", "split", {"parts": parts, "dim": unless(dim, 1)}, common, builtins.max(parts, 1)).apply(x)


def slice(x: Symbol, dim: int = 1, begin: int = 0, end: int | None = None, **common: Unpack[LayerOptions]) -> Symbol:
    """Elements from `begin` to `end` - 1 of `dim`. ``x[:, 1:3]`` is another way to write it.

    Negative numbers count from the end. Without `end`, the slice goes to the end of the dimension.
    """
    if end is not None and _integer(end) < 0 and -x.ndim <= dim < x.ndim:
        end += x.shape[dim]  # in JSON -1 is the end itself
    return Generic("Slice", "slice", {"dim": unless(dim, 1), "begin": unless(begin, 0), "end": end}, common).apply(x)[0]


def getitem(x: Symbol, key: Any) -> Symbol:
    """x[key]: integers, ranges of step 1, ``...`` and ``None``."""
    keys = list(key) if isinstance(key, tuple) else [key]
    given = [k for k in keys if k is not None and k is not Ellipsis]
    if len(given) > x.ndim:
        raise InvalidArgumentError(f"{len(given)} indices are given for a tensor of shape {x.shape}")
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    if any(k is Ellipsis for k in keys[at + 1 :]):
        raise InvalidArgumentError("an index holds '...' twice")
    keys[at : at + 1] = [builtins.slice(None)] * (x.ndim - len(given))
    y, dim = x, 0
    sizes: list[int] = []  # of the result; -1 means the batch
    for k in keys:
        if k is None:
            sizes.append(1)
            continue
        if isinstance(k, builtins.slice):
            y = _range(y, dim, k)
            whole_batch = dim == 0 and y.shape[0] == x.shape[0]
            sizes.append(-1 if whole_batch else y.shape[dim])
        else:
            index = _integer(k)
            if not -x.shape[dim] <= index < x.shape[dim]:
                raise InvalidArgumentError(f"index {index} is none of dimension {dim} of a tensor of shape {x.shape}")
            y = slice(y, dim, index % x.shape[dim], index % x.shape[dim] + 1)
        dim += 1
    return y if len(sizes) == x.ndim and None not in keys else reshape(y, sizes)


def _range(x: Symbol, dim: int, k: builtins.slice) -> Symbol:
    if k.step not in (None, 1):
        raise InvalidArgumentError(f"an index has step {k.step}; slices of symbolic tensors have step 1")
    size = x.shape[dim]
    begin = 0 if k.start is None else _integer(k.start)
    end = None if k.stop is None else _integer(k.stop)
    begin, stop, _ = builtins.slice(begin, end).indices(size)
    if begin >= stop:
        raise InvalidArgumentError(
            f"the range {k.start}:{k.stop} of dimension {dim} of a tensor of shape {x.shape} is empty"
        )
    if begin == 0 and stop == size:
        return x
    return slice(x, dim, begin, None if end is None else stop)


def flatten(x: Symbol, **common: Unpack[LayerOptions]) -> Symbol:
    """[N, ...] -> [N, features]."""
    return layers.Flatten(**common)(x)


def reshape(x: Symbol, shape: Sequence[int], **common: Unpack[LayerOptions]) -> Symbol:
    """The same elements in another shape. 0 keeps the input's size, and one entry may be -1, which is deduced."""
    return layers.Reshape(shape, **common)(x)


def squeeze(x: Symbol, dims: int | Sequence[int] | None = None, **common: Unpack[LayerOptions]) -> Symbol:
    """Drops dimensions of size 1: those in `dims`, or without `dims` all."""
    options = {"dims": [dims] if isinstance(dims, int) else dims}
    return Generic("Squeeze", "squeeze", options, common).apply(x)[0]


def unsqueeze(x: Symbol, dim: int, **common: Unpack[LayerOptions]) -> Symbol:
    """Adds a dimension of size 1 at `dim`."""
    if not -x.ndim - 1 <= _integer(dim) <= x.ndim:
        raise InvalidArgumentError(
            f"nn.unsqueeze: dim {dim} does not exist in what a tensor of shape {x.shape} becomes"
        )
    sizes = [-1, *x.shape[1:]] if x.ndim else []
    sizes.insert(dim if dim >= 0 else dim + x.ndim + 1, 1)
    return reshape(x, sizes, **common)


def transpose(x: Symbol, dim0: int = -2, dim1: int = -1, **common: Unpack[LayerOptions]) -> Symbol:
    """Swaps two dimensions."""
    options = {"dim0": unless(dim0, -2), "dim1": unless(dim1, -1)}
    return Generic("Transpose", "transpose", options, common).apply(x)[0]


def permute(x: Symbol, dims: Sequence[int], **common: Unpack[LayerOptions]) -> Symbol:
    """Permutes dimensions: dimension i of the result is dimension `dims[i]` of x."""
    return Generic("Transpose", "permute", {"dims": dims}, common).apply(x)[0]


def pad(
    x: Symbol, pads: Sequence[int], *, mode: str = "constant", value: float = 0.0, **common: Unpack[LayerOptions]
) -> Symbol:
    """Adds elements at the borders: `pads` in front and behind, from the last dimension backward; negative ones crop.

    `mode` is "constant" (of `value`), "reflect", "replicate" or "circular".
    """
    return layers.Pad(pads, mode=mode, value=value, **common)(x)


def cast(x: Symbol, dtype: Any, **common: Unpack[LayerOptions]) -> Symbol:
    """Converts the values to another type: ``"float32"``, ``"float16"``, ..., or a numpy dtype."""
    return Generic("Cast", "cast", {"dtype": dtype_name(dtype)}, common).apply(x)[0]


def parameter(
    shape: int | Sequence[int],
    *,
    dtype: Any = "float32",
    trainable: bool = True,
    value: float = 0.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """A tensor that belongs to the network. Its elements start as `value`. `trainable=False` makes it a constant."""
    return layers.Parameter(shape, dtype=dtype, trainable=trainable, value=value, **common)()


# Attention -----------------------------------------------------------------------------------------------------------


def attention(
    query: Symbol,
    key: Symbol,
    value: Symbol,
    mask: Symbol | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
    stream: int | None = None,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """softmax(scale query key^T + mask) value: [..., L, E], [..., S, E] and [..., S, V] -> [..., L, V].

    The default `scale` is 1 / sqrt(E). A float mask is added. A bool mask is True for the positions that take part.
    With `is_causal`, position i attends only to positions up to i. With `enable_gqa`, several heads of queries share
    one head of keys and values. `dropout_p` is the share of weights that is dropped in training.
    """
    options = {
        "scale": scale,
        "is_causal": unless(is_causal, False),
        "enable_gqa": unless(enable_gqa, False),
        "dropout_p": unless(dropout_p, 0.0),
        "stream": stream,
    }
    inputs = (query, key, value) if mask is None else (query, key, value, mask)
    return Generic("Attention", "attention", options, common).apply(*inputs)[0]


# Losses --------------------------------------------------------------------------------------------------------------


def softmax_with_loss(
    logits: Symbol, label: str | Symbol = "label", *, weight: float = 1.0, **common: Unpack[LayerOptions]
) -> Symbol:
    """The mean over the batch of -log softmax(logits)[label]: logits [N, C] and labels [N] -> [1].

    `label` is the symbol of the labels, which are integers from 0 to C - 1, or the name of an int32 input that the
    model adds. `weight` is the factor of this loss in the gradients.
    """
    return layers.SoftmaxWithLoss(label, weight=weight, **common)(logits)


def nll_loss(
    log_probabilities: Symbol,
    label: str | Symbol = "label",
    *,
    reduce: str = "mean",
    weight: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """-log_probabilities[label] for log probabilities [N, C, ...] and labels [N, ...].

    The result is the mean or the sum, [1], or with reduce "none" the values themselves, [N, ...]. `label` is the symbol
    of the labels, or the name of an int32 input that the model adds.
    """
    shape = _shape(log_probabilities)
    labels = target_of(label, (*shape[:1], *shape[2:]), "int32")
    layer = Generic("NLLLoss", "loss", {"reduce": unless(reduce, "mean")}, common)
    return as_loss(layer.apply(log_probabilities, labels)[0], weight)


def mse_loss(
    x: Symbol,
    target: str | Symbol = "target",
    *,
    reduce: str = "mean",
    weight: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """(x - target)^2. The result is the mean or the sum over the elements, [1], or with reduce "none" of x's shape.

    `target` is a symbol of x's shape, or the name of an input that the model adds.
    """
    layer = Generic("MSELoss", "loss", {"reduce": unless(reduce, "mean")}, common)
    return as_loss(layer.apply(x, target_of(target, _shape(x), getattr(x, "dtype", "float32")))[0], weight)


def loss(x: Symbol, weight: float = 1.0) -> Symbol:
    """Marks any tensor as a loss. In training, its gradient starts as `weight` at each element."""
    if not isinstance(x, Symbol):
        raise TypeError(f"nn.loss is called with {describe_value(x)}; a symbolic tensor is needed")
    return as_loss(x, weight)


# What the functions share --------------------------------------------------------------------------------------------


def _shape(x: Symbol) -> tuple[int, ...]:
    return x.shape if isinstance(x, Symbol) else ()  # if it is no symbol, apply() raises the error


def _is_float(x: Symbol) -> bool:
    return not isinstance(x, Symbol) or x.dtype in ("float32", "float16", "bfloat16", "float64")


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"an index is {describe_value(value)}; integers, ranges, '...' and None are possible")
    return int(value.__index__())


def _number(value: Any) -> Number:
    if isinstance(value, (int, float)):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return _number(value.item())
    raise TypeError(
        f"a symbolic tensor cannot be combined with {describe_value(value)}; symbols and numbers can, and "
        "nn.parameter makes a tensor that belongs to the network"
    )


def _unary(prefix: str, code: str, x: Symbol, common: LayerOptions, scalars: Sequence[Number] = ()) -> Symbol:
    options = {"code": code, "scalars": list(scalars) or None}
    return Generic("Pointwise", prefix, options, common).apply(x)[0]


def _binary(
    prefix: str, sign: str, a: Symbol | Number, b: Symbol | Number, common: LayerOptions, options: dict[str, Any] | None
) -> Symbol:
    """Uses Elementwise if it has the operation and the tensors are floats, and otherwise an equal Pointwise program."""
    if isinstance(a, Symbol) and isinstance(b, Symbol):
        if options is not None and _is_float(a):
            return Generic("Elementwise", prefix, options, common).apply(a, b)[0]
        return Generic("Pointwise", prefix, {"code": f"y0 = x0 {sign} x1"}, common).apply(a, b)[0]
    if isinstance(a, Symbol):
        x, left, right, number = a, "x0", "{}", _number(b)
    elif isinstance(b, Symbol):
        x, left, right, number = b, "{}", "x0", _number(a)
    else:
        raise TypeError(f"nn.{prefix} takes {describe_value(a)} and {describe_value(b)}; one of them must be a symbol")
    code = f"y0 = {left} {sign} {right}"
    if _is_float(x) or isinstance(number, float):
        made = _unary(prefix, code.format("p0"), x, common, [number])
    else:  # a literal, with which integers stay integers
        made = _unary(prefix, code.format(f"({number:d})"), x, common)
    act = (options or {}).get("activation")
    return made if act is None else activation(made, act)


__all__ = [
    "abs", "activation", "add", "attention", "avg_pool2d", "cast", "celu", "concat", "div", "dropout", "elu", "exp",
    "flatten", "gelu", "global_avg_pool2d", "global_max_pool2d", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "interpolate", "leaky_relu", "log", "log_softmax", "logsigmoid", "loss", "matmul", "max_pool2d", "maximum", "mean",
    "mish", "mse_loss", "mul", "neg", "nll_loss", "pad", "parameter", "permute", "pointwise", "pointwise_all", "pow",
    "reduce", "relu", "relu6", "reshape", "selu", "sigmoid", "silu", "slice", "softmax", "softmax_with_loss",
    "softplus", "softshrink", "softsign", "split", "sqrt", "square", "squeeze", "step", "sub", "sum", "tanh",
    "tanhshrink", "threshold", "transpose", "unsqueeze", "weighted_sum",
]  # fmt: skip
