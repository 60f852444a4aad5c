# SPDX-License-Identifier: MIT
"""Functions of symbols: operators without parameters, losses, and the arithmetic that the operators of Symbol use.

Each function also takes the keywords of LayerOptions: name, frozen, recompute, engine, precision.
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
from .images import (
    adaptive_avg_pool,
    adaptive_max_pool,
    adaptive_max_pool_with_indices,
    avg_pool2d,
    avg_pool_nd,
    global_avg_pool2d,
    global_max_pool2d,
    grid_sample,
    interpolate,
    max_pool2d,
    max_pool_nd,
    max_pool_nd_with_indices,
    resize,
)
from .indexing import (
    argmax,
    argmin,
    gather,
    gather_nd,
    index_select,
    max,
    min,
    nonzero,
    scatter,
    scatter_nd,
    sort,
    topk,
)
from .losses import loss, mse_loss, nll_loss, softmax_with_loss
from .products import attention, matmul, matmul_add
from .programs import pointwise, pointwise_all
from .reductions import mean, reduce, sum
from .scans import cummax, cummin, cumprod, cumsum, logcumsumexp
from .shapes import (
    cast,
    concat,
    flatten,
    flip,
    pad,
    parameter,
    permute,
    reshape,
    slice,
    split,
    squeeze,
    transpose,
    unsqueeze,
)
from .shapes import getitem as getitem

__all__ = [
    "abs", "activation", "adaptive_avg_pool", "adaptive_max_pool", "adaptive_max_pool_with_indices", "add", "argmax",
    "argmin", "attention", "avg_pool2d", "avg_pool_nd", "cast", "celu", "concat", "cummax", "cummin", "cumprod",
    "cumsum", "div", "dropout", "elu", "exp", "flatten", "flip", "gather", "gather_nd", "gelu", "global_avg_pool2d",
    "global_max_pool2d", "grid_sample", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "index_select",
    "interpolate", "leaky_relu", "log", "log_softmax", "logcumsumexp", "logsigmoid", "loss", "matmul", "matmul_add",
    "max", "max_pool2d", "max_pool_nd", "max_pool_nd_with_indices", "maximum", "mean", "min", "mish", "mse_loss", "mul",
    "neg", "nll_loss", "nonzero", "pad", "parameter", "permute", "pointwise", "pointwise_all", "pow", "reduce", "relu",
    "relu6", "reshape", "resize", "scatter", "scatter_nd", "selu", "sigmoid", "silu", "slice", "softmax",
    "softmax_with_loss", "softplus", "softshrink", "softsign", "sort", "split", "sqrt", "square", "squeeze", "step",
    "sub", "sum", "tanh", "tanhshrink", "threshold", "topk", "transpose", "unsqueeze", "weighted_sum",
]  # fmt: skip
