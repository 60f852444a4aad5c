# SPDX-License-Identifier: MIT
"""Options that follow from the shapes of parameters, for functions of _operators/table.py that name one of these.

Each takes the function's name for messages, the options that were given, and the parameters' shapes, None of those that
were not given. It returns the options that it adds or changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from .._arguments import Ints
from .._core import Tensor
from ..errors import InvalidArgumentError

Sizes = tuple[int, ...]
Shape = Union[Sizes, None]
Options = dict[str, Any]


def present(*params: Tensor | None) -> tuple[Tensor, ...]:
    """The parameters that are given."""
    return tuple([each for each in params if each is not None])


def together(name: str, weight: Shape, bias: Shape) -> bool:
    """Whether weight and bias are given, which go together."""
    if (weight is None) != (bias is None):
        raise InvalidArgumentError(f"{name}: weight and bias go together; give both or neither")
    return weight is not None


def kernel_of(name: str, weight: Sizes, channels: str, dims: int | None) -> Sizes:
    """The kernel sizes of a weight for images of `dims` dimensions, or of one to three."""
    sizes = "height, width]" if dims else "...] with one to three sizes of the kernel"
    if len(weight) - 2 not in ((dims,) if dims else (1, 2, 3)):
        raise InvalidArgumentError(f"{name}: the weight has shape {list(weight)}; [{channels}, {sizes} is needed")
    return weight[2:]


def padding_of(name: str, options: Options, kernel: Sizes) -> Ints:
    """The option `pad` of PyTorch's padding. With "same", odd paddings are larger behind the image."""
    padding: Ints | str = options["pad"]
    if not isinstance(padding, str):
        return padding
    if padding == "valid":
        return 0
    if padding != "same":
        raise InvalidArgumentError(f"{name}: padding '{padding}' is not one of 'same', 'valid'; or give numbers")

    def each(value: Ints) -> Sequence[int]:
        return value if isinstance(value, Sequence) else (value,) * len(kernel)

    if any(step != 1 for step in each(options["stride"])):
        raise InvalidArgumentError(f"{name}: padding 'same' goes with stride 1; give padding as numbers")
    total = [d * (k - 1) for d, k in zip(each(options["dilate"]), kernel)]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


def convolution_nd(name: str, options: Options, weight: Sizes, bias: Shape, dims: int | None = None) -> Options:
    kernel = kernel_of(name, weight, "out channels, in channels / groups", dims)
    pad = padding_of(name, options, kernel)
    return {"channels_out": weight[0], "kernel": kernel, "pad": pad, "bias": bias is not None}


def convolution(name: str, options: Options, weight: Sizes, bias: Shape) -> Options:
    return convolution_nd(name, options, weight, bias, 2)


def transposed_convolution_nd(
    name: str, options: Options, weight: Sizes, bias: Shape, dims: int | None = None
) -> Options:
    kernel = kernel_of(name, weight, "in channels, out channels / groups", dims)
    return {"channels_out": weight[1] * options["groups"], "kernel": kernel, "bias": bias is not None}


def transposed_convolution(name: str, options: Options, weight: Sizes, bias: Shape) -> Options:
    return transposed_convolution_nd(name, options, weight, bias, 2)


def batch_norm(name: str, options: Options, mean: Sizes, variance: Sizes, weight: Shape, bias: Shape) -> Options:
    return {"affine": together(name, weight, bias)}


def group_norm(name: str, options: Options, weight: Shape, bias: Shape) -> Options:
    return {"affine": together(name, weight, bias)}


def layer_norm(name: str, options: Options, weight: Shape, bias: Shape) -> Options:
    if weight is None and bias is not None:
        raise InvalidArgumentError(f"{name}: a bias goes with a weight; give both, a weight alone or neither")
    return {"elementwise_affine": weight is not None, "bias": bias is not None}


def rms_norm(name: str, options: Options, weight: Shape) -> Options:
    return {"elementwise_affine": weight is not None}


def prelu(name: str, options: Options, weight: Sizes) -> Options:
    return {"num_parameters": weight[0] if weight else 1}


def embedding(name: str, options: Options, weight: Sizes) -> Options:
    if len(weight) != 2:
        raise InvalidArgumentError(f"{name}: the weight has shape {list(weight)}; [rows, features] is needed")
    return {"num_embeddings": weight[0], "embedding_dim": weight[1]}


def first_size(name: str, weight: Sizes) -> int:
    if len(weight) != 2:
        raise InvalidArgumentError(f"{name}: the weight has shape {list(weight)}; [out, in] is needed")
    return weight[0]


def linear_cross_entropy(name: str, options: Options, weight: Sizes, bias: Shape) -> Options:
    return {"outputs": first_size(name, weight), "bias": bias is not None}


def inner_product(name: str, options: Options, weight: Sizes, bias: Shape) -> Options:
    return {"outputs": first_size(name, weight), "bias": bias is not None}
