# SPDX-License-Identifier: MIT
"""Layers: operators with their options, called with symbols.

Sizes are written [N, C, H, W]: batch, channels, height, width. Numbers that the library deduces from the input (its
channels, its features) need not be given. Every layer also takes the keywords of LayerOptions: name, frozen, recompute,
engine, precision, params.
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
from .images import (
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    AvgPool2d,
    AvgPoolNd,
    GlobalAvgPool2d,
    GlobalMaxPool2d,
    MaxPool2d,
    MaxPoolNd,
    Upsample,
)
from .losses import SoftmaxWithLoss
from .norms import BatchNorm, GroupNorm, LayerNorm
from .products import Conv2d, ConvNd, ConvTranspose2d, ConvTransposeNd, Embedding, Linear
from .recurrent import GRU, LSTM
from .shapes import Flatten, Pad, Parameter, Reshape

__all__ = [
    "ELU", "GELU", "GRU", "LSTM", "Activation", "AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool2d", "AvgPoolNd",
    "BatchNorm", "Conv2d", "ConvNd", "ConvTranspose2d", "ConvTransposeNd", "Dropout", "Embedding", "Flatten",
    "GlobalAvgPool2d", "GlobalMaxPool2d", "GroupNorm", "Hardsigmoid", "Hardswish", "Hardtanh", "LayerNorm", "LeakyReLU",
    "Linear", "LogSoftmax", "MaxPool2d", "MaxPoolNd", "Mish", "PReLU", "Pad", "Parameter", "ReLU", "ReLU6", "Reshape",
    "SiLU", "Sigmoid", "Softmax", "SoftmaxWithLoss", "Softplus", "Tanh", "Upsample",
]  # fmt: skip
