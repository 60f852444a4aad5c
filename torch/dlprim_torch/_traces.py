# SPDX-License-Identifier: MIT
"""Operators that AOTAutograd traces otherwise for "ocl" than PyTorch would."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from ._forms.images import RESIZES

KEYS = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)

Maybe = Tensor | None


def lstm_cell(
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    w_x: torch.Tensor,
    w_h: torch.Tensor,
    b_x: Maybe = None,
    b_h: Maybe = None,
) -> tuple[Tensor, Tensor]:
    """A step of LSTM, of which PyTorch makes an operator that no network has."""
    h, c = states
    gates = linear(x, w_x, b_x) + linear(h, w_h, b_h)
    into, keep, new, out = gates.chunk(4, -1)
    c = keep.sigmoid() * c + into.sigmoid() * new.tanh()
    return out.sigmoid() * c.tanh(), c


def gru_cell(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Maybe = None, b_h: Maybe = None) -> Tensor:
    """A step of GRU."""
    reset_x, update_x, new_x = linear(x, w_x, b_x).chunk(3, -1)
    reset_h, update_h, new_h = linear(h, w_h, b_h).chunk(3, -1)
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return new + (update_x + update_h).sigmoid() * (h - new)


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Weights as direction and length, of whose gradient PyTorch makes an operator that no network has."""
    return v * (g / torch.norm_except_dim(v, 2, dim))


def by_layers(original: Callable[..., Any]) -> Callable[..., Any]:
    """A recurrent module layer by layer, with dropout between them, which PyTorch's decomposition leaves out."""

    def call(
        x: Tensor,
        states: Any,
        weights: Sequence[Tensor],
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        options = (train, bidirectional, batch_first)
        if dropout == 0 or not train:
            return tuple(original(x, states, weights, has_biases, layers, dropout, *options))
        each, directions = len(weights) // layers, 1 + bidirectional
        found = []
        for i in range(layers):
            own = slice(i * directions, (i + 1) * directions)
            state = states[own] if isinstance(states, Tensor) else [part[own] for part in states]
            x, *last = original(x, state, weights[i * each : (i + 1) * each], has_biases, 1, 0.0, *options)
            found.append(last)
            if i < layers - 1:
                x = torch.dropout(x, dropout, True)
        return x, *(torch.cat(parts) for parts in zip(*found, strict=True))

    return call


def replaced() -> dict[Any, Callable[..., Any] | None]:
    """What takes the place of PyTorch's decompositions while a graph is traced; None: the operator stays whole.

    Of images that get other sizes PyTorch would make indices.
    """
    recurrent = [getattr(torch.ops.aten, name).input for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")]
    resizes = {getattr(getattr(torch.ops.aten, name), part): None for name in RESIZES for part in ("vec", "default")}
    return {
        **resizes,
        **{op: by_layers(op.py_kernels[KEYS[1]]) for op in recurrent},
        torch.ops.aten.lstm_cell.default: lstm_cell,
        torch.ops.aten.gru_cell.default: gru_cell,
        torch.ops.aten._weight_norm.default: weight_norm,
    }


@contextlib.contextmanager
def own_traces() -> Iterator[None]:
    """Traces as this file says."""
    functions = replaced()
    known = {op: dict(op.py_kernels) for op in functions}
    try:
        for op, function in functions.items():
            for key in KEYS:
                op.py_kernels.pop(key, None)
                if function is not None:
                    op.py_kernels[key] = function
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in known.items():
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
