# SPDX-License-Identifier: MIT
"""Products of matrices, and attention."""

from __future__ import annotations

from .._graph import Generic, LayerOptions, Symbol
from .._options import unless
from .._unpack import Unpack


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
