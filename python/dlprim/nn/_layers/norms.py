# SPDX-License-Identifier: MIT
"""Layers that normalise: over the batch, over the last dimensions, over groups of channels."""

from __future__ import annotations

from collections.abc import Sequence

from .._graph import LayerOptions, SingleLayer
from .._unpack import Unpack
from .options import unless


class BatchNorm(SingleLayer):
    """Normalises each channel over the batch: [N, C, ...], with at least two dimensions.

    Parameters, each [C]: running mean and running variance, which forward changes in training, and with `affine` also
    scale and offset. `momentum` is the share of the new batch in the running statistics. With `use_global_stats`, the
    running statistics are used in training too.
    """

    type = "BatchNorm"

    def __init__(
        self,
        features: int | None = None,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        *,
        use_global_stats: bool = False,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "features": features,
                "eps": unless(eps, 1e-5),
                "momentum": unless(momentum, 0.1),
                "affine": unless(affine, True),
                "use_global_stats": unless(use_global_stats, False),
            },
            common,
        )


class LayerNorm(SingleLayer):
    """Normalises each sample over its last `dims` dimensions, or over `normalized_shape`, which must be their sizes.

    Parameters, each of that shape: weight if `elementwise_affine`, and bias if also `bias`.
    """

    type = "LayerNorm"

    def __init__(
        self,
        normalized_shape: int | Sequence[int] | None = None,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dims: int = 1,
        **common: Unpack[LayerOptions],
    ) -> None:
        shape = [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape
        super().__init__(
            {
                "normalized_shape": shape,
                "dims": unless(dims, 1),
                "eps": unless(eps, 1e-5),
                "elementwise_affine": unless(elementwise_affine, True),
                "bias": unless(bias, True),
            },
            common,
        )


class GroupNorm(SingleLayer):
    """Normalises groups of channels of each sample: [N, C, ...]. Parameters: weight [C] and bias [C]."""

    type = "GroupNorm"

    def __init__(
        self,
        num_groups: int,
        num_channels: int | None = None,
        eps: float = 1e-5,
        affine: bool = True,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "num_groups": num_groups,
                "num_channels": num_channels,
                "eps": unless(eps, 1e-5),
                "affine": unless(affine, True),
            },
            common,
        )
