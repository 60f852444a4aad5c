# SPDX-License-Identifier: MIT
"""Layers of matrix products: convolutions, linear layers, and look-ups in a table."""

from __future__ import annotations

from typing import Any

from ..._arguments import torch_order
from ...errors import InvalidArgumentError
from .._graph import IntOrPair, LayerOptions, SingleLayer, Symbol
from .._unpack import Unpack
from .options import padding_option, unless

#: PyTorch's order of arguments.
CONVOLUTION_ORDER = ("channels_in", "channels_out", "kernel_size", "stride", "padding", "dilation", "groups", "bias")
TRANSPOSED_ORDER = (*CONVOLUTION_ORDER[:5], "output_padding", "groups", "bias", "dilation")


class Conv2d(SingleLayer):
    """A convolution of images: [N, C, H, W] -> [N, channels_out, H', W'].

    Parameters: weight [channels_out, C / groups, kh, kw], and bias [channels_out]. `kernel_size`, `stride` and
    `dilation` are one integer or (height, width). `padding` may also be (top, left, bottom, right), or "same", which
    keeps the image's size. `activation` names a function of docs/json.md that is applied to the result.

    Arguments in PyTorch's order are taken too: Conv2d(channels_in, channels_out, kernel_size, stride, padding,
    dilation, groups, bias).
    """

    type = "Convolution2D"

    @torch_order(*CONVOLUTION_ORDER)
    def __init__(
        self,
        channels_out: int,
        kernel_size: IntOrPair,
        *more: Any,
        stride: IntOrPair = 1,
        padding: IntOrPair | str = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        activation: str = "identity",
        channels_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "channels_out": channels_out,
                "channels_in": channels_in,
                "kernel": kernel_size,
                "stride": unless(stride, 1),
                "pad": padding_option("Conv2d", padding, kernel_size, stride, dilation),
                "dilate": unless(dilation, 1),
                "groups": unless(groups, 1),
                "bias": unless(bias, True),
                "activation": unless(activation, "identity"),
            },
            common,
        )


class ConvTranspose2d(SingleLayer):
    """A transposed convolution: [N, C, H, W] -> [N, channels_out, H', W'], larger by the factor `stride`.

    Parameters: weight [C, channels_out / groups, kh, kw], and bias [channels_out]. `output_padding` adds rows and
    columns at the end. It must be less than the stride or the dilation.

    Arguments in PyTorch's order are taken too: ConvTranspose2d(channels_in, channels_out, kernel_size, stride, padding,
    output_padding, groups, bias, dilation).
    """

    type = "TransposedConvolution2D"

    @torch_order(*TRANSPOSED_ORDER)
    def __init__(
        self,
        channels_out: int,
        kernel_size: IntOrPair,
        *more: Any,
        stride: IntOrPair = 1,
        padding: IntOrPair = 0,
        output_padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        activation: str = "identity",
        channels_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "channels_out": channels_out,
                "channels_in": channels_in,
                "kernel": kernel_size,
                "stride": unless(stride, 1),
                "pad": unless(padding, 0),
                "output_pad": unless(output_padding, 0),
                "dilate": unless(dilation, 1),
                "groups": unless(groups, 1),
                "bias": unless(bias, True),
                "activation": unless(activation, "identity"),
            },
            common,
        )


class ConvNd(SingleLayer):
    """A convolution of images of one to three dimensions: [N, C, ...] -> [N, channels_out, ...].

    Parameters: weight [channels_out, C / groups, *kernel_size], and bias [channels_out]. `kernel_size`, `stride` and
    `dilation` are one integer, or one for each dimension of images. `padding` may also be a list of those in front of
    all dimensions and then those behind them, or "same", which keeps the image's size. Arguments in PyTorch's order are
    taken too, as by Conv2d.
    """

    type = "ConvolutionND"

    @torch_order(*CONVOLUTION_ORDER)
    def __init__(
        self,
        channels_out: int,
        kernel_size: IntOrPair,
        *more: Any,
        stride: IntOrPair = 1,
        padding: IntOrPair | str = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        channels_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "channels_out": channels_out,
                "channels_in": channels_in,
                "kernel": kernel_size,
                "stride": unless(stride, 1),
                "pad": padding_option("ConvNd", padding, kernel_size, stride, dilation, None),
                "dilate": unless(dilation, 1),
                "groups": unless(groups, 1),
                "bias": unless(bias, True),
            },
            common,
        )


class ConvTransposeNd(SingleLayer):
    """A transposed convolution of one to three dimensions: [N, C, ...] -> [N, channels_out, ...].

    Parameters: weight [C, channels_out / groups, *kernel_size], and bias [channels_out]. Sizes are those of ConvNd.
    `output_padding` adds elements at the end. It must be less than the stride or the dilation. Arguments in PyTorch's
    order are taken too, as by ConvTranspose2d.
    """

    type = "TransposedConvolutionND"

    @torch_order(*TRANSPOSED_ORDER)
    def __init__(
        self,
        channels_out: int,
        kernel_size: IntOrPair,
        *more: Any,
        stride: IntOrPair = 1,
        padding: IntOrPair = 0,
        output_padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        channels_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "channels_out": channels_out,
                "channels_in": channels_in,
                "kernel": kernel_size,
                "stride": unless(stride, 1),
                "pad": unless(padding, 0),
                "output_pad": unless(output_padding, 0),
                "dilate": unless(dilation, 1),
                "groups": unless(groups, 1),
                "bias": unless(bias, True),
            },
            common,
        )


class Linear(SingleLayer):
    """A linear layer over the last dimension: [N, ..., features_in] -> [N, ..., features].

    Parameters: weight [features, features_in], and bias [features]. For images, apply `Flatten` first. All
    dimensions but the last may have other sizes when the net is reshaped. PyTorch's order is taken too:
    Linear(features_in, features, bias).
    """

    type = "InnerProduct"

    @torch_order("features_in", "features", "bias")
    def __init__(
        self,
        features: int,
        *more: Any,
        bias: bool = True,
        activation: str = "identity",
        features_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "outputs": features,
                "inputs": features_in,
                "bias": unless(bias, True),
                "activation": unless(activation, "identity"),
            },
            common,
        )

    def __call__(self, x: Symbol) -> Symbol:
        """Applies the layer: [N, ..., features_in] -> [N, ..., features]."""
        if isinstance(x, Symbol) and x.ndim > 2:
            self.options["axis"] = -1  # a matrix has the same result without it
        return self.apply(x)[0]


class Embedding(SingleLayer):
    """Looks up rows of a table by integer indices: [...] -> [..., embedding_dim].

    Parameter: weight [num_embeddings, embedding_dim]. The row `padding_idx` gets no gradient; -1 is the last row.
    """

    type = "Embedding"

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {"num_embeddings": num_embeddings, "embedding_dim": embedding_dim, "padding_idx": padding_idx}, common
        )

    def __call__(self, x: Symbol) -> Symbol:
        """The rows that `x` names. Raises InvalidArgumentError if it does not hold integers."""
        if isinstance(x, Symbol) and "float" in x.dtype:
            raise InvalidArgumentError(
                f"{self.title} is called with {x.dtype}; indices are integers: nn.Input(name, shape, 'int32')"
            )
        return self.apply(x)[0]
