# SPDX-License-Identifier: MIT
"""GELU, whose argument names another function, images whose sizes are options for each dimension, and linear layers."""

from __future__ import annotations

from collections.abc import Sequence

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._declared import inner_product, matmul
from ._derived import first_size
from ._machinery import Ints, Scale, kept, make_call, operator

GELU = {
    "none": make_call("Activation", {"activation": "gelu"}),
    "tanh": make_call("Activation", {"activation": "gelu_tanh"}),
}


@operator
def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """x Phi(x), where Phi is the normal distribution function, computed by erf.

    With approximate="tanh" it is approximated by tanh. Raises ValueError on another approximation, and
    InvalidArgumentError if the dtype is not a float type.
    """
    kernel = GELU.get(approximate)
    if kernel is None:
        raise InvalidArgumentError(f"gelu: approximate '{approximate}' is not one of 'none', 'tanh'")
    return kernel.one((input,), (), out)


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
    first_size("linear", weight.shape)
    if len(input.shape) == 2:
        return inner_product(input, weight, bias, activation=activation, out=out, precision=precision, engine=engine)
    if activation not in (None, "identity"):
        raise InvalidArgumentError(
            f"linear: activation '{activation}' goes with an input of two dimensions, the input is "
            f"{list(input.shape)}; call dlprim.ops.activation on the result"
        )
    return matmul(input, weight, bias, transpose_b=True, out=out, precision=precision, engine=engine)
