# SPDX-License-Identifier: MIT
"""Networks in a few lines of Python.

A network is described by calling layers and functions with symbols, which are tensors without values::

    from dlprim import nn

    x = nn.Input("data", (64, 1, 28, 28))
    y = nn.Conv2d(16, 3, padding=1, activation="relu")(x)
    y = nn.Linear(10)(nn.flatten(nn.max_pool2d(y, 2)))
    loss = nn.softmax_with_loss(y)  # adds an input "label"
    model = nn.Model(x, {"logits": y, "loss": loss})
    print(model)
    net = model.build(dlprim.Context(), mode="training")

If each layer reads the previous one, a list is enough: ``nn.Sequential([nn.Input("data", (64, 784)), nn.Linear(10)])``.

Shapes are inferred: `y.shape` is known at once, and if something does not fit, the line that makes it raises an error.
Calling a layer twice shares its parameters. Shapes are written with the batch first. Building with `batch=N` replaces
the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _declared, _functions, _layers
from ._declared import *  # noqa: F403
from ._functions import *  # noqa: F403
from ._graph import Layer, LayerOptions, Symbol, make_input, unknown_layer
from ._layers import *  # noqa: F403
from ._model import Model, Sequential


def Input(name: str, shape: Sequence[int], dtype: Any = "float32") -> Symbol:  # noqa: N802
    """An input of a network: its name, its sizes with the batch first, and its type.

    `dtype` is a numpy dtype or a name such as ``"float32"``, ``"float16"`` or ``"int32"``.
    """
    return make_input(name, shape, dtype)


__all__ = ["Input", "Layer", "LayerOptions", "Model", "Sequential", "Symbol"]
__all__ += _declared.__all__
__all__ += _functions.__all__
__all__ += _layers.__all__


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(unknown_layer(name, {known: globals()[known] for known in __all__}))
