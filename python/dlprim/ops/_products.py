# SPDX-License-Identifier: MIT
"""Convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import Ints, kept, make_call, operator

Sizes = tuple[int, ...]


def image_weight(name: str, shape: Sizes, wanted: str) -> tuple[int, ...]:
    """The kernel sizes of a weight for images."""
    if len(shape) != 4:
        raise InvalidArgumentError(f"{name}: the weight has shape {list(shape)}; {wanted} is needed")
    return shape[2:]


def pair(value: Ints) -> tuple[int, int]:
    if isinstance(value, Sequence):
        return value[0], value[-1]
    return value, value


def padding_of(padding: Ints | str, kernel: Sizes, stride: Ints, dilation: Ints) -> Ints:
    """Converts PyTorch's padding to the option `pad`. With "same", odd paddings are larger below or on the right."""
    if not isinstance(padding, str):
        return padding
    if padding == "valid":
        return 0
    if padding != "same":
        raise InvalidArgumentError(f"conv2d: padding '{padding}' is not one of 'same', 'valid'; or give numbers")
    if pair(stride) != (1, 1):
        raise InvalidArgumentError("conv2d: padding 'same' goes with stride 1; give padding as numbers")
    total = [d * (k - 1) for d, k in zip(pair(dilation), kernel)]
    return [total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2]


@kept
def conv2d_call(
    weight: Sizes,
    bias: bool,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
    activation: str | None,
    precision: str,
    engine: str | None,
) -> Call:
    kernel = image_weight("conv2d", weight, "[out channels, in channels / groups, height, width]")
    options = {
        "channels_out": weight[0],
        "kernel": kernel,
        "stride": stride,
        "pad": padding_of(padding, kernel, stride, dilation),
        "dilate": dilation,
        "groups": groups,
        "bias": bias,
        "activation": activation,
    }
    return make_call("Convolution2D", options, precision=precision, engine=engine)


@operator
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    activation: str | None = None,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """Convolution of images, as torch.nn.functional.conv2d.

    input: [N, C, H, W]. weight: [O, C / groups, KH, KW]. bias: [O]. The result is [N, O, OH, OW] with
    OH = (H + top + bottom - dilation (KH - 1) - 1) / stride + 1, rounded down.
    stride, dilation: pixels, one number or [height, width].
    padding: pixels of zeros, one number, [height, width] or [top, left, bottom, right], or "valid" (none), or "same"
    (the result has the input's size; requires stride 1).
    groups: number of groups of channels, which are convolved separately.
    activation: the name of a function that is applied to the result, for example "relu" (docs/json.md lists them).

    Raises InvalidArgumentError (a ValueError) if shapes, dtypes or options do not fit each other.
    """
    kernel = conv2d_call(
        weight.shape, bias is not None, stride, padding, dilation, groups, activation, precision, engine
    )
    return kernel.one((input,), (weight,) if bias is None else (weight, bias), out)


@kept
def conv_transpose2d_call(
    weight: Sizes,
    bias: bool,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
    activation: str | None,
    precision: str,
    engine: str | None,
) -> Call:
    options = {
        "kernel": image_weight("conv_transpose2d", weight, "[in channels, out channels / groups, height, width]"),
        "channels_out": weight[1] * groups,
        "stride": stride,
        "pad": padding,
        "output_pad": output_padding,
        "dilate": dilation,
        "groups": groups,
        "bias": bias,
        "activation": activation,
    }
    return make_call("TransposedConvolution2D", options, precision=precision, engine=engine)


@operator
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    activation: str | None = None,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """Transposed convolution of images, as torch.nn.functional.conv_transpose2d.

    input: [N, C, H, W]. weight: [C, O / groups, KH, KW]. bias: [O]. The result is [N, O, OH, OW] with
    OH = (H - 1) stride - top - bottom + dilation (KH - 1) + output_padding + 1.
    stride, dilation, output_padding: pixels, one number or [height, width]. output_padding must be less than stride or
    dilation.
    padding: pixels that are cut from the result, one number, [height, width] or [top, left, bottom, right].
    activation: the name of a function that is applied to the result.

    Raises InvalidArgumentError (a ValueError) if shapes, dtypes or options do not fit each other.
    """
    kernel = conv_transpose2d_call(
        weight.shape, bias is not None, stride, padding, output_padding, groups, dilation, activation, precision, engine
    )
    return kernel.one((input,), (weight,) if bias is None else (weight, bias), out)


@kept
def inner_product_call(outputs: int, bias: bool, activation: str | None, precision: str, engine: str | None) -> Call:
    options = {"outputs": outputs, "bias": bias, "activation": activation}
    return make_call("InnerProduct", options, precision=precision, engine=engine)


def first_size(name: str, weight: Sizes) -> int:
    if len(weight) != 2:
        raise InvalidArgumentError(f"{name}: the weight has shape {list(weight)}; [out, in] is needed")
    return weight[0]


@operator
def inner_product(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str | None = None,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """A dense layer over all dimensions but the batch: activation(flatten(input) weight^T + bias).

    input: [N, ...], which is flattened to [N, I]. weight: [O, I]. bias: [O]. The result is [N, O]. `linear` keeps the
    dimensions in between. activation: the name of a function that is applied to the result.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit each other.
    """
    outputs = first_size("inner_product", weight.shape)
    kernel = inner_product_call(outputs, bias is not None, activation, precision, engine)
    return kernel.one((input,), (weight,) if bias is None else (weight, bias), out)


@kept
def matmul_call(
    transpose_a: bool, transpose_b: bool, alpha: float, bias: bool, precision: str, engine: str | None
) -> Call:
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "alpha": alpha, "bias": bias}
    return make_call("MatMul", options, precision=precision, engine=engine)


@operator
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str | None = None,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """input weight^T + bias over the last dimension, as torch.nn.functional.linear.

    input: [..., I]. weight: [O, I]. bias: [O]. The result is [..., O].
    activation: the name of a function that is applied to the result. It requires an input of two dimensions.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit each other, or if an activation is given
    for an input with another number of dimensions.
    """
    outputs = first_size("linear", weight.shape)
    params = (weight,) if bias is None else (weight, bias)
    if len(input.shape) == 2:
        return inner_product_call(outputs, bias is not None, activation, precision, engine).one((input,), params, out)
    if activation not in (None, "identity"):
        raise InvalidArgumentError(
            f"linear: activation '{activation}' goes with an input of two dimensions, the input is "
            f"{list(input.shape)}; call dlprim.ops.activation on the result"
        )
    return matmul_call(False, True, 1.0, bias is not None, precision, engine).one((input, *params), (), out)


@operator
def matmul(
    input: Tensor,
    other: Tensor,
    bias: Tensor | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """The matrix product alpha input other + bias. Leading dimensions broadcast as in numpy.

    input: [..., M, K], or [..., K, M] with transpose_a. other: [..., K, N], or [..., N, K] with transpose_b. bias: [N],
    added to each row. The result is [..., M, N]. Vectors are treated as in numpy.matmul.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit each other.
    """
    kernel = matmul_call(transpose_a, transpose_b, alpha, bias is not None, precision, engine)
    return kernel.one((input, other) if bias is None else (input, other, bias), (), out)
