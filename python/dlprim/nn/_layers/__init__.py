# SPDX-License-Identifier: MIT
"""Layers: operators with their options, called with symbols.

Sizes are written [N, C, H, W]: batch, channels, height, width. Numbers that the library deduces from the input (its
channels, its features) need not be given. Every layer also takes the keywords of LayerOptions: name, frozen, engine,
precision, params.
"""

from __future__ import annotations

from .activations import (
    ELU,
    GELU,
    Activation,
    Dropout,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from .images import AvgPool2d, GlobalAvgPool2d, GlobalMaxPool2d, MaxPool2d, Upsample
from .losses import SoftmaxWithLoss
from .norms import BatchNorm, GroupNorm, LayerNorm
from .products import Conv2d, ConvTranspose2d, Embedding, Linear
from .recurrent import GRU, LSTM
from .shapes import Flatten, Pad, Parameter, Reshape

__all__ = [
    "ELU", "GELU", "GRU", "LSTM", "Activation", "AvgPool2d", "BatchNorm", "Conv2d", "ConvTranspose2d", "Dropout",
    "Embedding", "Flatten", "GlobalAvgPool2d", "GlobalMaxPool2d", "GroupNorm", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "MaxPool2d", "Mish", "PReLU", "Pad", "Parameter", "ReLU",
    "ReLU6", "Reshape", "SiLU", "Sigmoid", "Softmax", "SoftmaxWithLoss", "Softplus", "Tanh", "Upsample",
]  # fmt: skip
