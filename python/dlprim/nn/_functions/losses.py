# SPDX-License-Identifier: MIT
"""Losses."""

from __future__ import annotations

from .. import _layers as layers
from .._graph import Generic, LayerOptions, Symbol, describe_value
from .._layers.losses import as_loss, target_of
from .._options import unless
from .._unpack import Unpack
from .arguments import shape_of


def softmax_with_loss(
    logits: Symbol,
    label: str | Symbol = "label",
    *,
    ignore_index: int | None = None,
    weight: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The mean over the labels of -log softmax(logits)[label]: logits [N, C, ...] and labels [N, ...] -> [1].

    `label` is the symbol of the labels, which are integers from 0 to C - 1, or the name of an int32 input that the
    model adds. Labels equal to `ignore_index` do not count. `weight` is the factor of this loss in the gradients.
    """
    return layers.SoftmaxWithLoss(label, ignore_index=ignore_index, weight=weight, **common)(logits)


def linear_cross_entropy(
    x: Symbol,
    outputs: int,
    label: str | Symbol = "label",
    *,
    bias: bool = False,
    reduce: str = "mean",
    ignore_index: int | None = None,
    chunk_bytes: int = 1 << 28,
    weight: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """The last product of a language model and its cross entropy: x [..., features] and labels [...].

    The result is the mean or the sum, [1], or with reduce "none" the values themselves, [...]. Logits of as many rows
    as take `chunk_bytes` are computed at a time, and again in backward. `outputs` is the number of classes; labels are
    as of softmax_with_loss. Parameters: weight [outputs, features], and with `bias` one of [outputs].
    """
    options = {
        **{"outputs": outputs, "bias": unless(bias, False), "reduce": unless(reduce, "mean")},
        **{"ignore_index": ignore_index, "chunk_bytes": unless(chunk_bytes, 1 << 28)},
    }
    layer = Generic("LinearCrossEntropy", "loss", options, common)
    return as_loss(layer.apply(x, target_of(label, shape_of(x)[:-1], "int32"))[0], weight)


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
    shape = shape_of(log_probabilities)
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
    return as_loss(layer.apply(x, target_of(target, shape_of(x), getattr(x, "dtype", "float32")))[0], weight)


def huber_loss(
    x: Symbol,
    target: str | Symbol = "target",
    *,
    delta: float = 1.0,
    reduce: str = "mean",
    weight: float = 1.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """With d = abs(x - target): 0.5 d d where d <= delta, else delta (d - 0.5 delta). delta is above 0.

    The result is the mean or the sum over the elements, [1], or with reduce "none" of x's shape.
    `target` is a symbol of x's shape, or the name of an input that the model adds.
    """
    options = {"reduce": unless(reduce, "mean"), "delta": unless(delta, 1.0)}
    layer = Generic("HuberLoss", "loss", options, common)
    return as_loss(layer.apply(x, target_of(target, shape_of(x), getattr(x, "dtype", "float32")))[0], weight)


def loss(x: Symbol, weight: float = 1.0) -> Symbol:
    """Marks any tensor as a loss. In training, its gradient starts as `weight` at each element."""
    if not isinstance(x, Symbol):
        raise TypeError(f"nn.loss is called with {describe_value(x)}; a symbolic tensor is needed")
    return as_loss(x, weight)
