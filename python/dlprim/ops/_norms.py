# SPDX-License-Identifier: MIT
"""Normalisation, softmax and losses."""

from __future__ import annotations

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import Ints, kept, make_call, operator


@kept
def batch_norm_call(
    affine: bool, training: bool, momentum: float, eps: float, use_global_stats: bool, engine: str | None
) -> Call:
    options = {"affine": affine, "momentum": momentum, "eps": eps, "use_global_stats": use_global_stats}
    return make_call("BatchNorm", options, training=training, engine=engine)


@operator
def batch_norm(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    use_global_stats: bool = False,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """Normalises each channel, as torch.nn.functional.batch_norm.

    input: [N, C, ...]. running_mean, running_var, weight, bias: [C]. weight and bias must be given together.
    In training it normalises by the batch's mean and variance, and updates the running statistics in place: momentum is
    the share of the new batch. Otherwise, and with use_global_stats, it normalises by the running statistics. eps is
    added to the variance.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit, if only one of weight and bias is given,
    or if in training a channel has only one value.
    """
    if (weight is None) != (bias is None):
        raise InvalidArgumentError("batch_norm: weight and bias go together; give both or neither")
    kernel = batch_norm_call(weight is not None, training, momentum, eps, use_global_stats, engine)
    if weight is None or bias is None:
        return kernel.one((input,), (running_mean, running_var), out)
    return kernel.one((input,), (running_mean, running_var, weight, bias), out)


@kept
def layer_norm_call(shape: Ints, affine: bool, bias: bool, eps: float, engine: str | None) -> Call:
    options = {"normalized_shape": shape, "elementwise_affine": affine, "bias": bias, "eps": eps}
    return make_call("LayerNorm", options, engine=engine)


@operator
def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-5,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """Normalises over the last dimensions, as torch.nn.functional.layer_norm.

    input: [..., *normalized_shape]. weight, bias: normalized_shape. A bias requires a weight. eps is added to the
    variance.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit each other.
    """
    if weight is None and bias is not None:
        raise InvalidArgumentError("layer_norm: a bias goes with a weight; give both, a weight alone or neither")
    kernel = layer_norm_call(normalized_shape, weight is not None, bias is not None, eps, engine)
    if weight is None:
        return kernel.one((input,), (), out)
    return kernel.one((input,), (weight,) if bias is None else (weight, bias), out)


@kept
def group_norm_call(num_groups: int, affine: bool, eps: float, engine: str | None) -> Call:
    return make_call("GroupNorm", {"num_groups": num_groups, "affine": affine, "eps": eps}, engine=engine)


@operator
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-5,
    out: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """Normalises groups of channels, as torch.nn.functional.group_norm.

    input: [N, C, ...], where C is a multiple of num_groups. weight, bias: [C], both or neither. eps is added to the
    variance.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit, or if only one of weight and bias is
    given.
    """
    if (weight is None) != (bias is None):
        raise InvalidArgumentError("group_norm: weight and bias go together; give both or neither")
    kernel = group_norm_call(num_groups, weight is not None, eps, engine)
    if weight is None or bias is None:
        return kernel.one((input,), (), out)
    return kernel.one((input,), (weight, bias), out)
