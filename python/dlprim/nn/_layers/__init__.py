# SPDX-License-Identifier: MIT
"""Layers that are no rows of _operators/table.py. A layer is an operator with its options, called with symbols.

Sizes are written [N, C, H, W]: batch, channels, height, width. Numbers that the library deduces from the input (its
channels, its features) need not be given. Every layer also takes the keywords of LayerOptions: name, frozen, recompute,
engine, precision, params.
"""

from __future__ import annotations

from .losses import SoftmaxWithLoss
from .recurrent import GRU, LSTM
from .special import GELU, Parameter, Upsample

__all__ = ["GELU", "GRU", "LSTM", "Parameter", "SoftmaxWithLoss", "Upsample"]
