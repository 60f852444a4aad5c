# SPDX-License-Identifier: MIT
"""Functions of symbols: operators without parameters, losses, and the arithmetic that the operators of Symbol use.

Each function also takes the keywords of LayerOptions: name, frozen, engine, precision.
"""

from __future__ import annotations

from .activations import (
    abs,
    activation,
    celu,
    dropout,
    elu,
    exp,
    gelu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log,
    log_softmax,
    logsigmoid,
    mish,
    neg,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softshrink,
    softsign,
    sqrt,
    square,
    step,
    tanh,
    tanhshrink,
    threshold,
)
from .arithmetic import add, div, maximum, mul, pow, sub, weighted_sum
from .images import avg_pool2d, global_avg_pool2d, global_max_pool2d, interpolate, max_pool2d
from .indexing import gather, gather_nd, index_select, scatter, scatter_nd, sort, topk
from .losses import loss, mse_loss, nll_loss, softmax_with_loss
from .products import attention, matmul
from .programs import pointwise, pointwise_all
from .reductions import mean, reduce, sum
from .shapes import cast, concat, flatten, pad, parameter, permute, reshape, slice, split, squeeze, transpose, unsqueeze
from .shapes import getitem as getitem

__all__ = [
    "abs", "activation", "add", "attention", "avg_pool2d", "cast", "celu", "concat", "div", "dropout", "elu", "exp",
    "flatten", "gather", "gather_nd", "gelu", "global_avg_pool2d", "global_max_pool2d", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "index_select", "interpolate", "leaky_relu", "log", "log_softmax", "logsigmoid",
    "loss", "matmul", "max_pool2d", "maximum", "mean", "mish", "mse_loss", "mul", "neg", "nll_loss", "pad",
    "parameter", "permute", "pointwise", "pointwise_all", "pow", "reduce", "relu", "relu6", "reshape", "scatter",
    "scatter_nd", "selu", "sigmoid", "silu", "slice", "softmax", "softmax_with_loss", "softplus", "softshrink",
    "softsign", "sort", "split", "sqrt", "square", "squeeze", "step", "sub", "sum", "tanh", "tanhshrink",
    "threshold", "topk", "transpose", "unsqueeze", "weighted_sum",
]  # fmt: skip
