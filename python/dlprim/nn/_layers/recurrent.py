# SPDX-License-Identifier: MIT
"""Layers over sequences: LSTM and GRU."""

from __future__ import annotations

from typing import Any

from ..._arguments import torch_order
from ...errors import InvalidArgumentError
from .._graph import Layer, LayerOptions, Symbol
from .._options import unless
from .._unpack import Unpack


class _Recurrent(Layer):
    @torch_order("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")
    def __init__(
        self,
        hidden_size: int,
        *more: Any,
        num_layers: int = 1,
        bidirectional: bool = False,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        stream: int | None = None,
        input_size: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "hidden_size": hidden_size,
                "num_layers": unless(num_layers, 1),
                "bidirectional": unless(bidirectional, False),
                "bias": unless(bias, True),
                "batch_first": unless(batch_first, False),
                "dropout": unless(dropout, 0.0),
                "stream": stream,
            },
            common,
        )
        self.input_size = input_size

    def apply(self, *inputs: Symbol) -> tuple[Symbol, ...]:
        """Adds the operator and returns all its outputs. Raises InvalidArgumentError if the shapes do not fit."""
        x = inputs[0]
        if self.input_size is not None and isinstance(x, Symbol) and x.shape[-1:] != (self.input_size,):
            raise InvalidArgumentError(
                f"{self.title}: input {x.shape} has {x.shape[-1]} features, input_size says {self.input_size}"
            )
        return super().apply(*inputs)


class LSTM(_Recurrent):
    """A long short-term memory over [T, N, features], or [N, T, features] with `batch_first`.

    Returns the output [T, N, D hidden_size] (D is 2 if `bidirectional`, else 1) and the last states h and c, each
    [num_layers D, N, hidden_size]. Parameters are in PyTorch's order: for each layer and direction weight_ih,
    weight_hh, bias_ih, bias_hh. `dropout` is applied in training after every layer except the last. PyTorch's order of
    arguments is taken too: LSTM(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional).
    """

    type = "LSTM"
    outputs = 3

    def __call__(self, x: Symbol, h0: Symbol | None = None, c0: Symbol | None = None) -> tuple[Symbol, Symbol, Symbol]:
        """Returns (output, h, c). The initial states are `h0` and `c0`, or zeros."""
        if (h0 is None) != (c0 is None):
            raise InvalidArgumentError(f"{self.title} starts from h0 and c0 or from neither")
        y, h, c = self.apply(x) if h0 is None or c0 is None else self.apply(x, h0, c0)
        return y, h, c


class GRU(_Recurrent):
    """A gated recurrent unit over [T, N, features], or [N, T, features] with `batch_first`.

    Returns the output [T, N, D hidden_size] (D is 2 if `bidirectional`, else 1) and the last state h [num_layers D, N,
    hidden_size]. Parameters and arguments are those of LSTM.
    """

    type = "GRU"
    outputs = 2

    def __call__(self, x: Symbol, h0: Symbol | None = None) -> tuple[Symbol, Symbol]:
        """Returns (output, h). The initial state is `h0`, or zeros."""
        y, h = self.apply(x) if h0 is None else self.apply(x, h0)
        return y, h
