# SPDX-License-Identifier: MIT
"""Functions of symbols that are no rows of _operators/table.py: losses, arithmetic, indices, and others.

Each function also takes the keywords of LayerOptions: name, frozen, recompute, engine, precision.
"""

from __future__ import annotations

from .arithmetic import add, div, maximum, mul, pow, sub, weighted_sum
from .losses import huber_loss, linear_cross_entropy, loss, mse_loss, nll_loss, softmax_with_loss
from .programs import pointwise, pointwise_all
from .reductions import mean, reduce, sum
from .shapes import concat, parameter, slice, split, squeeze, unsqueeze
from .shapes import getitem as getitem
from .special import activation, gelu, interpolate, neg, step

__all__ = [
    "activation", "add", "concat", "div", "gelu", "huber_loss", "interpolate", "linear_cross_entropy", "loss",
    "maximum", "mean", "mse_loss", "mul", "neg", "nll_loss", "parameter", "pointwise", "pointwise_all", "pow", "reduce",
    "slice", "softmax_with_loss", "split", "squeeze", "step", "sub", "sum", "unsqueeze", "weighted_sum",
]  # fmt: skip
