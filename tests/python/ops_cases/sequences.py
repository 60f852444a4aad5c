# SPDX-License-Identifier: MIT
"""Attention and recurrent operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Case, functional, labels, random


def recurrent(name: str, features: int, hidden: int, **options: Any) -> Callable[..., Any]:
    """torch.nn.LSTM or GRU as a function of its input, states and parameters."""

    def run(torch: Any, x: Any, hx: Any, params: Any) -> Any:
        module = getattr(torch.nn, name)(features, hidden, bias=len(params) % 4 == 0, **options)
        names = [name for name, _ in module.named_parameters()]
        y, states = torch.func.functional_call(module, dict(zip(names, params)), (x, hx))
        return (y, *states) if isinstance(states, tuple) else (y, states)

    return run


def recurrent_without_bias(torch: Any, x: Any, hx: Any, params: Any) -> Any:
    module = torch.nn.LSTM(3, 5, num_layers=2, bidirectional=True, batch_first=True, bias=False)
    names = [name for name, _ in module.named_parameters()]
    y, states = torch.func.functional_call(module, dict(zip(names, params)), (x, hx))
    return (y, *states)


def recurrent_params(gates: int, features: int, hidden: int, runs: list[int], bias: bool = True) -> list[np.ndarray]:
    """Parameters of runs (layers and directions) whose numbers of input features are listed."""
    made = []
    for given in runs:
        made += [random(gates * hidden, given) * 0.5, random(gates * hidden, hidden) * 0.5]
        made += [random(gates * hidden) * 0.5, random(gates * hidden) * 0.5] if bias else []
    return made


def attention_of_distances(
    offset: int, seen: Callable[[Any], Any], softcap: float = 1e6
) -> Callable[[Any, Any, Any, Any], Any]:
    """Attention whose query i stands at position i + offset and sees the positions whose distance it is asked about."""

    def run(torch: Any, query: Any, key: Any, value: Any) -> Any:
        scores = query @ key.mT / query.shape[-1] ** 0.5
        scores = softcap * torch.tanh(scores / softcap)
        distance = torch.arange(query.shape[-2])[:, None] + offset - torch.arange(key.shape[-2])
        return scores.masked_fill(~seen(distance), -torch.inf).softmax(-1) @ value

    return run


def attention_of_sequences(lengths: list[int], key_lengths: list[int]) -> Callable[[Any, Any, Any, Any, Any], Any]:
    """Each sequence by itself, behind each other."""

    def run(torch: Any, query: Any, key: Any, value: Any, _: Any) -> Any:
        parts = zip(query.split(lengths, -2), key.split(key_lengths, -2), value.split(key_lengths, -2), strict=True)
        return torch.cat([torch.nn.functional.scaled_dot_product_attention(*part) for part in parts], -2)

    return run


def rotated(torch: Any, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    """GPT-NeoX's convention."""
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


def rotated_neighbours(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    """GPT-J's, of the first 4 features."""
    first, second = x[..., 0:4:2], x[..., 1:4:2]
    turned = torch.stack((first * cos - second * sin, first * sin + second * cos), -1).flatten(-2)
    return torch.cat((turned, x[..., 4:]), -1)


MASK = np.random.default_rng(4).integers(0, 2, (5, 6)).astype(bool) | np.eye(5, 6, dtype=bool)
QUERY, KEY, VALUE = random(2, 4, 5, 8), random(2, 4, 6, 8), random(2, 4, 6, 3)
ATTENTION = "scaled_dot_product_attention"

SEQUENCES = [
    Case("attention", QUERY, KEY, VALUE, like=functional(ATTENTION)),
    Case("attention", QUERY, KEY, VALUE, random(5, 6), scale=0.2, like=functional(ATTENTION, scale=0.2)),
    Case("attention", QUERY, KEY, VALUE, MASK, like=functional(ATTENTION)),
    Case("attention", QUERY, KEY, VALUE, is_causal=True, like=functional(ATTENTION, is_causal=True)),
    Case(
        "attention",
        QUERY,
        KEY,
        VALUE,
        is_causal=True,
        lower_right=True,
        like=attention_of_distances(1, lambda distance: distance >= 0),
    ),
    Case(
        "attention",
        QUERY,
        KEY,
        VALUE,
        is_causal=True,
        sliding_window=3,
        softcap=0.5,
        like=attention_of_distances(0, lambda distance: (distance >= 0) & (distance < 3), softcap=0.5),
    ),
    Case(
        "attention",
        QUERY,
        random(2, 2, 6, 8),
        random(2, 2, 6, 3),
        enable_gqa=True,
        like=functional(ATTENTION, enable_gqa=True),
    ),
    Case(
        "attention",
        random(2, 9, 8),
        random(2, 12, 8),
        random(2, 12, 3),
        np.array([[0, 2, 5, 9], [0, 4, 5, 12]], np.int32),
        like=attention_of_sequences([2, 3, 4], [4, 1, 7]),
    ),
    Case("rotary_embedding", random(2, 3, 5, 8), random(5, 4), random(5, 4), like=rotated),
    Case("rotary_embedding", random(2, 5, 8), random(9, 4), random(9, 4), labels(9, 2, 5), like=rotated),
    Case(
        "rotary_embedding",
        random(2, 5, 8),
        random(5, 2),
        random(5, 2),
        interleaved=True,
        rotary_dim=4,
        like=rotated_neighbours,
    ),
    Case("lstm", random(4, 2, 3), None, recurrent_params(4, 3, 5, [3]), like=recurrent("LSTM", 3, 5)),
    Case(
        "lstm",
        random(2, 4, 3),
        (random(4, 2, 5), random(4, 2, 5)),
        recurrent_params(4, 3, 5, [3, 3, 10, 10], bias=False),
        num_layers=2,
        bidirectional=True,
        batch_first=True,
        like=recurrent_without_bias,
    ),
    Case(
        "gru",
        random(4, 2, 3),
        random(2, 2, 5),
        recurrent_params(3, 3, 5, [3, 5]),
        num_layers=2,
        like=recurrent("GRU", 3, 5, num_layers=2),
    ),
    Case("gru", random(4, 2, 3), None, recurrent_params(3, 3, 5, [3]), like=recurrent("GRU", 3, 5)),
]
