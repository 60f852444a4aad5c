# SPDX-License-Identifier: MIT
"""Images of one to three dimensions: convolutions, pooling, resizing, and sampling at given places.

Images are [N, C, ...] with one, two or three dimensions of images, which tensors decide. A size is one number for all
of these dimensions, or a list with an entry for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import Ints, Scale, kept, make_call, operator
from ._products import Sizes


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
def interpolate_call(
    size: Ints | None, scale: Scale | None, mode: str, align_corners: bool, engine: str | None
) -> Call:
    heights = size if isinstance(size, Sequence) else (size, size)
    scales = scale if isinstance(scale, Sequence) else (scale, scale)
    options = {
        "method": mode,
        "out_h": heights[0],
        "out_w": heights[-1],
        "scale_y": scales[0],
        "scale_x": scales[-1],
        "align_corners": align_corners,
    }
    return make_call("Interpolation", options, engine=engine)


@operator
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Scale | None = None,
    *,
    mode: str = "nearest",
    align_corners: bool = False,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """Resizes images, as torch.nn.functional.interpolate.

    input: [N, C, H, W]. The result is [N, C, OH, OW]. Give either size, in pixels, or scale_factor. Both are one number
    or [height, width]. With scale_factor, OH is H scale_factor, rounded down.
    mode: "nearest", "nearest-exact" or "bilinear". align_corners: with "bilinear", corner pixels keep their positions.
    `resize` has the other modes, and takes images of one to three dimensions.

    Raises InvalidArgumentError (a ValueError) unless exactly one of size and scale_factor is given, and if it is
    invalid.
    """
    return interpolate_call(size, scale_factor, mode, align_corners, engine).one((input,), (), out)
