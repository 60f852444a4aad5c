# SPDX-License-Identifier: MIT
"""Losses as layers, and what all losses share: their targets and their weights."""

from __future__ import annotations

from .._graph import Layer, LayerOptions, Symbol, make_input
from .._unpack import Unpack


class SoftmaxWithLoss(Layer):
    """The mean over the labels of -log softmax(logits)[label]: logits [N, C, ...] and labels [N, ...] -> [1].

    `label` is the symbol of the labels, which are integers from 0 to C - 1, or the name of the input that is made for
    them. Labels equal to `ignore_index` do not count, as PyTorch's cross entropy leaves them out.
    """

    type = "SoftmaxWithLoss"
    prefix = "loss"

    def __init__(
        self,
        label: str | Symbol = "label",
        *,
        ignore_index: int | None = None,
        weight: float = 1.0,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__({} if ignore_index is None else {"ignore_index": ignore_index}, common)
        self.label, self.weight = label, weight

    def __call__(self, logits: Symbol) -> Symbol:
        """The loss, [1]."""
        shape = (*logits.shape[:1], *logits.shape[2:]) if isinstance(logits, Symbol) else ()
        return as_loss(self.apply(logits, target_of(self.label, shape, "int32"))[0], self.weight)


def target_of(target: str | Symbol, shape: tuple[int, ...], dtype: str) -> Symbol:
    """The symbol itself, or an input of this name, which the model adds to its inputs."""
    if isinstance(target, Symbol):
        return target
    made = make_input(target, shape, dtype)
    made._implicit = True
    return made


def as_loss(x: Symbol, weight: float) -> Symbol:
    """The symbol, marked as a loss of this weight."""
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise TypeError(f"a loss's weight is {weight!r}; a number is needed")
    marked = Symbol(x._record, x._call, x._index)
    marked._name, marked._implicit, marked._loss_weight = x._name, x._implicit, float(weight)
    return marked
