# SPDX-License-Identifier: MIT
"""Images of one to three dimensions: convolutions, pooling, resizing, and sampling at given places.

Images are [N, C, ...] with one, two or three dimensions of images, which tensors decide. A size is one number for all
of these dimensions, or a list with an entry for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import Ints, kept, make_call, operator
from ._pooling import Scale
from ._products import Sizes

#: One size of a result, or a list of them. None keeps the input's size.
OutputSize = Union[int, Sequence[Union[int, None]]]


def nd_weight(name: str, shape: Sizes, wanted: str) -> Sizes:
    """The kernel sizes of a weight for images of one to three dimensions."""
    if not 3 <= len(shape) <= 5:
        raise InvalidArgumentError(
            f"{name}: the weight has shape {list(shape)}; {wanted} with one to three sizes of the kernel is needed"
        )
    return shape[2:]


def each(value: Ints, count: int) -> Sequence[int]:
    return value if isinstance(value, Sequence) else (value,) * count


def nd_padding(padding: Ints | str, kernel: Sizes, stride: Ints, dilation: Ints) -> Ints:
    """Converts PyTorch's padding to the option `pad`. With "same", odd paddings are larger behind the image."""
    if not isinstance(padding, str):
        return padding
    if padding == "valid":
        return 0
    if padding != "same":
        raise InvalidArgumentError(f"conv_nd: padding '{padding}' is not one of 'same', 'valid'; or give numbers")
    if any(step != 1 for step in each(stride, 1)):
        raise InvalidArgumentError("conv_nd: padding 'same' goes with stride 1; give padding as numbers")
    total = [d * (k - 1) for d, k in zip(each(dilation, len(kernel)), kernel)]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


@kept
def conv_nd_call(
    weight: Sizes,
    bias: bool,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
    precision: str,
    engine: str | None,
) -> Call:
    kernel = nd_weight("conv_nd", weight, "[out channels, in channels / groups, ...]")
    options = {
        "channels_out": weight[0],
        "kernel": kernel,
        "stride": stride,
        "pad": nd_padding(padding, kernel, stride, dilation),
        "dilate": dilation,
        "groups": groups,
        "bias": bias,
    }
    return make_call("ConvolutionND", options, precision=precision, engine=engine)


@operator
def conv_nd(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """Convolution of images of one to three dimensions, as torch.nn.functional.conv1d, conv2d and conv3d.

    input: [N, C, ...]. weight: [O, C / groups, ...], whose last sizes are the kernel's. bias: [O]. The result is
    [N, O, ...] with sizes (size + front + back - dilation (kernel - 1) - 1) / stride + 1, rounded down.
    stride, dilation: one number, or one for each dimension of images.
    padding: elements of zeros, likewise, or first those in front of all dimensions and then those behind them, or
    "valid" (none), or "same" (the result has the input's size; requires stride 1).
    groups: number of groups of channels, which are convolved separately.

    Raises InvalidArgumentError (a ValueError) if shapes, dtypes or options do not fit each other.
    """
    kernel = conv_nd_call(weight.shape, bias is not None, stride, padding, dilation, groups, precision, engine)
    return kernel.one((input,), (weight,) if bias is None else (weight, bias), out)


@kept
def conv_transpose_nd_call(
    weight: Sizes,
    bias: bool,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
    precision: str,
    engine: str | None,
) -> Call:
    options = {
        "kernel": nd_weight("conv_transpose_nd", weight, "[in channels, out channels / groups, ...]"),
        "channels_out": weight[1] * groups,
        "stride": stride,
        "pad": padding,
        "output_pad": output_padding,
        "dilate": dilation,
        "groups": groups,
        "bias": bias,
    }
    return make_call("TransposedConvolutionND", options, precision=precision, engine=engine)


@operator
def conv_transpose_nd(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """Transposed convolution of one to three dimensions, as torch.nn.functional.conv_transpose1d, 2d and 3d.

    input: [N, C, ...]. weight: [C, O / groups, ...], whose last sizes are the kernel's. bias: [O]. The result is
    [N, O, ...] with sizes (size - 1) stride - front - back + dilation (kernel - 1) + output_padding + 1.
    stride, dilation, output_padding: one number, or one for each dimension of images. output_padding must be less than
    stride or dilation.
    padding: elements that are cut from the result, likewise, or first those in front of all dimensions and then those
    behind them.

    Raises InvalidArgumentError (a ValueError) if shapes, dtypes or options do not fit each other.
    """
    kernel = conv_transpose_nd_call(
        weight.shape, bias is not None, stride, padding, output_padding, groups, dilation, precision, engine
    )
    return kernel.one((input,), (weight,) if bias is None else (weight, bias), out)


@kept
def max_pool_nd_call(
    kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool, indices: bool, engine: str | None
) -> Call:
    options = {
        "mode": "max",
        "kernel": kernel,
        "stride": kernel if stride is None else stride,
        "pad": padding,
        "dilate": dilation,
        "ceil_mode": ceil_mode,
        "return_indices": indices,
    }
    return make_call("PoolingND", options, engine=engine)


@operator
def max_pool_nd(
    input: Tensor,
    kernel_size: Ints,
    *,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """The maximum of each window, as torch.nn.functional.max_pool1d, max_pool2d and max_pool3d.

    input: [N, C, ...] with one to three dimensions of images. The result is [N, C, ...] with sizes
    (size + front + back - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or up with ceil_mode.
    kernel_size, stride: one number, or one for each dimension of images. The default stride is kernel_size.
    padding: elements that are ignored, likewise, or first those in front of all dimensions and then those behind them.
    dilation: the step between elements of a window.

    Raises InvalidArgumentError (a ValueError) if the shape or the options are invalid.
    """
    kernel = max_pool_nd_call(kernel_size, stride, padding, dilation, ceil_mode, False, engine)
    return kernel.one((input,), (), out)


@operator
def max_pool_nd_with_indices(
    input: Tensor,
    kernel_size: Ints,
    *,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    out: Sequence[Tensor | None] | None = None,
    engine: str | None = None,
) -> tuple[Tensor, ...]:
    """The maximum of each window and its position: as `max_pool_nd`, with PyTorch's return_indices.

    The positions are int64 and of the result's shape. They count in the flattened image of each channel.

    Raises InvalidArgumentError (a ValueError) as max_pool_nd.
    """
    kernel = max_pool_nd_call(kernel_size, stride, padding, dilation, ceil_mode, True, engine)
    return kernel.all((input,), (), out)


@kept
def avg_pool_nd_call(
    kernel: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    engine: str | None,
) -> Call:
    options = {
        "mode": "avg",
        "kernel": kernel,
        "stride": kernel if stride is None else stride,
        "pad": padding,
        "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad,
        "divisor_override": divisor_override,
    }
    return make_call("PoolingND", options, engine=engine)


@operator
def avg_pool_nd(
    input: Tensor,
    kernel_size: Ints,
    *,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """The mean of each window, as torch.nn.functional.avg_pool1d, avg_pool2d and avg_pool3d.

    input: [N, C, ...] with one to three dimensions of images. Sizes and the other keywords are those of `max_pool_nd`.
    count_include_pad: whether the padding's zeros count in the mean (the default in network JSON is false).
    divisor_override: what each window's sum is divided by, in place of its number of elements.

    Raises InvalidArgumentError (a ValueError) if the shape or the options are invalid.
    """
    kernel = avg_pool_nd_call(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, engine)
    return kernel.one((input,), (), out)


@kept
def adaptive_call(mode: str, output_size: OutputSize, indices: bool, engine: str | None) -> Call:
    sizes = output_size if isinstance(output_size, Sequence) else (output_size,)
    options = {
        "mode": mode,
        "output": [-1 if size is None else size for size in sizes],
        "return_indices": indices,
    }
    return make_call("AdaptivePooling", options, engine=engine)


@operator
def adaptive_avg_pool(
    input: Tensor, output_size: OutputSize, *, out: Tensor | None = None, engine: str | None = None
) -> Tensor:
    """Means of windows that share images evenly, as torch.nn.functional.adaptive_avg_pool1d, 2d and 3d.

    input: [N, C, ...] with one to three dimensions of images. The result is [N, C, ...] of sizes output_size. Window i
    of a dimension goes from i size / output_size, rounded down, to (i + 1) size / output_size, rounded up.
    output_size: one number, or one for each dimension of images. None (or -1) in a list keeps the input's size.

    Raises InvalidArgumentError (a ValueError) if the shape or the sizes are invalid.
    """
    return adaptive_call("avg", output_size, False, engine).one((input,), (), out)


@operator
def adaptive_max_pool(
    input: Tensor, output_size: OutputSize, *, out: Tensor | None = None, engine: str | None = None
) -> Tensor:
    """Maxima of windows that share images evenly, as torch.nn.functional.adaptive_max_pool1d, 2d and 3d.

    Shapes, windows and output_size are those of `adaptive_avg_pool`.

    Raises InvalidArgumentError (a ValueError) if the shape or the sizes are invalid.
    """
    return adaptive_call("max", output_size, False, engine).one((input,), (), out)


@operator
def adaptive_max_pool_with_indices(
    input: Tensor,
    output_size: OutputSize,
    *,
    out: Sequence[Tensor | None] | None = None,
    engine: str | None = None,
) -> tuple[Tensor, ...]:
    """The maxima of `adaptive_max_pool` and their positions, which are those of `max_pool_nd_with_indices`.

    Raises InvalidArgumentError (a ValueError) if the shape or the sizes are invalid.
    """
    return adaptive_call("max", output_size, True, engine).all((input,), (), out)


@kept
def resize_call(
    size: Ints | None, scale: Scale | None, mode: str, align_corners: bool, antialias: bool, engine: str | None
) -> Call:
    options = {
        "method": mode,
        "output": size,
        "scales": scale,
        "align_corners": align_corners,
        "antialias": antialias,
    }
    return make_call("Resize", options, engine=engine)


@operator
def resize(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Scale | None = None,
    *,
    mode: str = "nearest",
    align_corners: bool = False,
    antialias: bool = False,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """Resizes images of one to three dimensions, as torch.nn.functional.interpolate in all modes but "area".

    input: [N, C, ...]. The result is [N, C, ...] of sizes `size`, or of sizes size scale_factor, rounded down. Both are
    one number, or one for each dimension of images. If both are given, positions come from scale_factor.
    mode: "nearest", "nearest-exact", "linear" (PyTorch's "linear", "bilinear" and "trilinear") or "cubic" (PyTorch's
    "bicubic").
    align_corners: with "linear" and "cubic", corner elements keep their positions.
    antialias: with "linear" and "cubic", images that shrink are filtered as widely as they shrink.

    Raises InvalidArgumentError (a ValueError) if the shape or the options are invalid, and if neither size nor
    scale_factor is given.
    """
    return resize_call(size, scale_factor, mode, align_corners, antialias, engine).one((input,), (), out)


@kept
def grid_sample_call(mode: str, padding_mode: str, align_corners: bool, engine: str | None) -> Call:
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    return make_call("GridSample", options, engine=engine)


@operator
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
    *,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """Samples images at the places in a grid, as torch.nn.functional.grid_sample of images of two dimensions.

    input: [N, C, H, W]. grid: [N, OH, OW, 2] of the same dtype, places as x and y from -1 to 1. The result is
    [N, C, OH, OW].
    mode: "bilinear", "nearest" or "bicubic". padding_mode: what lies outside of images, "zeros", "border" (the nearest
    pixel) or "reflection".
    align_corners: whether -1 and 1 are the centers of corner pixels, rather than their outer edges.

    Raises InvalidArgumentError (a ValueError) if shapes, dtypes or options do not fit each other.
    """
    return grid_sample_call(mode, padding_mode, align_corners, engine).one((input, grid), (), out)
