# SPDX-License-Identifier: MIT
"""Layers whose arguments are not their operator's options: GELU, Upsample, and the tensors that belong to a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._arguments import Ints, Scale
from ...errors import InvalidArgumentError
from ...summary import dtype_name
from .._bases import ActivationLayer
from .._graph import Layer, LayerOptions, SingleLayer, Symbol
from .._options import pair, unless
from .._unpack import Unpack


class GELU(ActivationLayer):
    """x Phi(x), where Phi is the normal distribution function. `approximate="tanh"` approximates it by tanh."""

    def __init__(self, approximate: str = "none", **common: Unpack[LayerOptions]) -> None:
        if approximate not in ("none", "tanh"):
            raise InvalidArgumentError(f"GELU: approximate is '{approximate}'; it is 'none' or 'tanh'")
        super().__init__({"activation": "gelu" if approximate == "none" else "gelu_tanh"}, common)


class Upsample(SingleLayer):
    """Resizes images [N, C, H, W] to `size`, or by `scale_factor`: a number or (height, width).

    With a factor, sizes are rounded down. `mode` is "nearest", "nearest-exact" or "bilinear".
    """

    type = "Interpolation"

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: Scale | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
        **common: Unpack[LayerOptions],
    ) -> None:
        if (size is None) == (scale_factor is None):
            raise InvalidArgumentError("Upsample takes either size or scale_factor")
        options: dict[str, Any] = {"method": mode, "align_corners": unless(align_corners, False)}
        if size is not None:
            options["out_h"], options["out_w"] = pair(size, "Upsample: size")
        else:
            options["scale_y"], options["scale_x"] = pair(scale_factor, "Upsample: scale_factor")
        super().__init__(options, common)


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
