# SPDX-License-Identifier: MIT
"""What layers of _operators/table.py do beside handing on their options: classes from which they derive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidArgumentError
from ._graph import LayerOptions, SingleLayer, Symbol
from ._options import padding_option

__all__ = ["ActivationLayer", "Convolution2d", "ConvolutionNd", "LastDimension", "OfIndices", "SingleLayer"]


class ActivationLayer(SingleLayer):
    """A function of each element, after which generated names are called."""

    type = "Activation"

    def __init__(self, options: Mapping[str, Any], common: LayerOptions) -> None:
        super().__init__(options, common)
        function = options["activation"]
        self.prefix = function if isinstance(function, str) and function else self.prefix


class ConvolutionNd(SingleLayer):
    """A convolution, whose padding may be "same" or "valid"."""

    #: The number of dimensions of images, if it is the same for all.
    _image_dims: int | None = None

    def __init__(self, options: Mapping[str, Any], common: LayerOptions) -> None:
        stride, dilation = options["stride"] or 1, options["dilate"] or 1
        pad = padding_option(type(self).__name__, options["pad"], options["kernel"], stride, dilation, self._image_dims)
        super().__init__({**options, "pad": pad}, common)


class Convolution2d(ConvolutionNd):
    """A convolution of images of two dimensions."""

    _image_dims = 2


class LastDimension(SingleLayer):
    """A product over the last dimension."""

    def __call__(self, x: Symbol) -> Symbol:
        """Applies the layer: [N, ..., features_in] -> [N, ..., features]."""
        if isinstance(x, Symbol) and x.ndim > 2:
            self.options["axis"] = -1  # a matrix has the same result without it
        return self.apply(x)[0]


class OfIndices(SingleLayer):
    """A look-up by integers."""

    def __call__(self, x: Symbol) -> Symbol:
        """The rows that `x` names. Raises InvalidArgumentError if it does not hold integers."""
        if isinstance(x, Symbol) and "float" in x.dtype:
            raise InvalidArgumentError(
                f"{self.title} is called with {x.dtype}; indices are integers: nn.Input(name, shape, 'int32')"
            )
        return self.apply(x)[0]
