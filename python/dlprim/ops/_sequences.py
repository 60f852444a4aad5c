# SPDX-License-Identifier: MIT
"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import kept, make_call, operator


@kept
def recurrent_call(
    kind: str,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
    bias: bool,
    batch_first: bool,
    dropout: float,
    training: bool,
    stream: int | None,
    precision: str,
    engine: str | None,
) -> Call:
    options = {
        "hidden_size": hidden_size,
        "num_layers": num_layers,
        "bidirectional": bidirectional,
        "bias": bias,
        "batch_first": batch_first,
        "dropout": dropout,
        "stream": stream,
    }
    return make_call(kind, options, training=training, precision=precision, engine=engine)


def sizes_of(name: str, params: Sequence[Tensor], num_layers: int, bidirectional: bool) -> tuple[int, bool]:
    """The number of hidden features, and whether there are biases."""
    runs = num_layers * (2 if bidirectional else 1)
    if len(params) not in (2 * runs, 4 * runs):
        raise InvalidArgumentError(
            f"{name}: got {len(params)} parameters; {runs} runs (layers times directions) take {4 * runs}, or without "
            f"biases {2 * runs}"
        )
    if len(params[1].shape) != 2:
        raise InvalidArgumentError(
            f"{name}: parameter 1 has shape {list(params[1].shape)}; [gates hidden, hidden] is needed"
        )
    return params[1].shape[1], len(params) == 4 * runs


@operator
def lstm(
    input: Tensor,
    hx: tuple[Tensor, Tensor] | None,
    params: Sequence[Tensor],
    *,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
    dropout: float = 0.0,
    training: bool = False,
    seed: int = 1,
    step: int = 0,
    stream: int | None = None,
    out: Sequence[Tensor | None] | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> tuple[Tensor, ...]:
    """Long short-term memory, as torch.nn.LSTM. Returns (output, h_n, c_n).

    input: [T, N, features], or [N, T, features] with batch_first. hx: the initial states (h_0, c_0), each
    [num_layers directions, N, hidden]; None means zeros. output: [T, N, directions hidden], or with the batch first.
    h_n and
    c_n: shaped like the initial states.
    params: in PyTorch's order, for each layer and direction weight_ih [4 hidden, features], weight_hh [4 hidden,
    hidden], and with biases bias_ih and bias_hh [4 hidden]. The order of gates is i, f, g, o.
    dropout: in training, the share of elements that become 0 after every layer except the last. seed, step and stream
    are those of `dropout`.

    Raises InvalidArgumentError (a ValueError) if numbers of parameters, shapes or dtypes do not fit.
    """
    hidden, bias = sizes_of("lstm", params, num_layers, bidirectional)
    kernel = recurrent_call(
        "LSTM", hidden, num_layers, bidirectional, bias, batch_first, dropout, training, stream, precision, engine
    )
    return kernel.all((input,) if hx is None else (input, *hx), tuple(params), out, seed, step)


@operator
def gru(
    input: Tensor,
    hx: Tensor | None,
    params: Sequence[Tensor],
    *,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
    dropout: float = 0.0,
    training: bool = False,
    seed: int = 1,
    step: int = 0,
    stream: int | None = None,
    out: Sequence[Tensor | None] | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> tuple[Tensor, ...]:
    """Gated recurrent units, as torch.nn.GRU. Returns (output, h_n).

    Shapes, parameters and keywords are those of `lstm`, with one state and the three gates r, z, n.

    Raises InvalidArgumentError (a ValueError) if numbers of parameters, shapes or dtypes do not fit.
    """
    hidden, bias = sizes_of("gru", params, num_layers, bidirectional)
    kernel = recurrent_call(
        "GRU", hidden, num_layers, bidirectional, bias, batch_first, dropout, training, stream, precision, engine
    )
    return kernel.all((input,) if hx is None else (input, hx), tuple(params), out, seed, step)
