# SPDX-License-Identifier: MIT
"""Layers over sequences: LSTM and GRU."""

from __future__ import annotations

from ...errors import InvalidArgumentError
from .._graph import Layer, LayerOptions, Symbol
from .._unpack import Unpack
from .options import unless


class _Recurrent(Layer):
    def __init__(
        self,
        hidden_size: int,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        stream: int | None = None,
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


class LSTM(_Recurrent):
    """A long short-term memory over [T, N, features], or [N, T, features] with `batch_first`.

    Returns the output [T, N, D hidden_size] (D is 2 if `bidirectional`, else 1) and the last states h and c, each
    [num_layers D, N, hidden_size]. Parameters are in PyTorch's order: for each layer and direction weight_ih,
    weight_hh, bias_ih, bias_hh. `dropout` is applied in training after every layer except the last.
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
    hidden_size]. Parameters are those of LSTM.
    """

    type = "GRU"
    outputs = 2

    def __call__(self, x: Symbol, h0: Symbol | None = None) -> tuple[Symbol, Symbol]:
        """Returns (output, h). The initial state is `h0`, or zeros."""
        y, h = self.apply(x) if h0 is None else self.apply(x, h0)
        return y, h
