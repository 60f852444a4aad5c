# SPDX-License-Identifier: MIT
"""Layers that change a shape, and the tensors that belong to a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...summary import dtype_name
from .._graph import Layer, LayerOptions, SingleLayer, Symbol
from .._unpack import Unpack
from .options import unless


class Flatten(SingleLayer):
    """[N, ...] -> [N, features]."""

    type = "Flatten"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({}, common)


class Reshape(SingleLayer):
    """The same elements in another shape. 0 keeps the input's size, and one entry may be -1, which is deduced.

    If the batch is given as 0 or -1, the network also works for other batches.
    """

    type = "Reshape"

    def __init__(self, shape: Sequence[int], **common: Unpack[LayerOptions]) -> None:
        super().__init__({"dims": shape}, common)


class Pad(SingleLayer):
    """Adds elements at the borders: `pads` in front and behind, from the last dimension backward; negative ones crop.

    `mode` is "constant" (of `value`), "reflect", "replicate" or "circular".
    """

    type = "Pad"

    def __init__(
        self, pads: Sequence[int], *, mode: str = "constant", value: float = 0.0, **common: Unpack[LayerOptions]
    ) -> None:
        super().__init__({"pads": pads, "mode": unless(mode, "constant"), "value": unless(value, 0.0)}, common)


class Parameter(Layer):
    """A tensor that belongs to the network. Called without arguments, it returns a symbol.

    All elements start as `value`, unless a file or an array sets them. `trainable=False` makes it a constant.
    """

    type = "Parameter"

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        dtype: Any = "float32",
        trainable: bool = True,
        value: float = 0.0,
        **common: Unpack[LayerOptions],
    ) -> None:
        name = dtype_name(dtype)
        super().__init__(
            {
                "shape": shape,
                "dtype": unless(name, "float32"),
                "is_trainable": unless(trainable, True),
                "value": unless(value, 0.0),
            },
            common,
        )

    def __call__(self) -> Symbol:
        """The parameter as a symbol."""
        return self.apply()[0]
