# SPDX-License-Identifier: MIT
"""Norms and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .table import Node, form, rounded, widened


def with_statistics(
    b: Builder, kind: str, x: Node, options: Any, weights: Sequence[Node | None], results: int = 3, **how: Any
) -> list[Any]:
    """The layer's result, and its statistics if somebody reads one."""
    if not any(b.used(i) for i in range(1, results)):
        return [b.layer(kind, [x], options, weights, **how), *[None] * (results - 1)]
    made = b.layer(kind, [x], options | {"return_statistics": True}, weights, results, **how)
    return list(made)


@form(
    "native_batch_norm.default",
    "_native_batch_norm_legit_no_training.default",
    "_native_batch_norm_legit_functional.default",
    "_batch_norm_with_update_functional.default",
)
def batch_norm(b: Builder) -> Any:
    """Batch norms with running statistics, which training changes: in place where they are parameters of the network,
    else the changed ones are results, too."""
    given = b.arguments(b.node)
    weight, bias, mean, variance = (given[name] for name in ("weight", "bias", "running_mean", "running_var"))
    if (weight is None) != (bias is None):
        raise b.no_form("with one of weight and bias has no form in a network of dlprim")
    if mean is None or variance is None:
        raise b.no_form("without running statistics has no form in a network of dlprim")
    name = str(b.node.target)
    training = given.get("training", "no_training" not in name)
    options: dict[str, Any] = {"eps": given["eps"], "momentum": given["momentum"]}
    if training and not b.is_parameter(mean):
        made = batch_norm_of_training(b, [given["input"], mean, variance], weight, bias, options)
    else:
        made = batch_norm_of_parameters(b, given["input"], [mean, variance, weight, bias], options, training)
    if "_with_update_" in name:
        if b.used(3):
            raise b.no_form("with a reserve that somebody reads has no form in a network of dlprim")
        made.insert(3, None)
    return made


def batch_norm_of_parameters(
    b: Builder, x: Node, weights: Sequence[Node | None], options: dict[str, Any], training: bool
) -> list[Any]:
    """The result, the statistics of the batch where somebody reads them, and no changed ones."""
    if weights[2] is None:
        options["affine"] = False
    if not training:
        options["use_global_stats"] = True
    return [*with_statistics(b, "BatchNorm", x, options, weights, trained=True), None, None]


def batch_norm_of_training(
    b: Builder, given: Sequence[Node], weight: Node | None, bias: Node | None, options: dict[str, Any]
) -> list[Any]:
    """The result, the statistics of the batch, and the changed running ones, of `given`: x and these."""
    affine = [x for x in (weight, bias) if x is not None]
    # In 16 bits the statistics would be rounded, too.
    wide = [widened(b, x) for x in (*given, *affine)]
    y, shift, rest, deviation, _, mean, variance = b.layer("BatchNormTraining", wide, options, results=7)
    sizes = [1] * b.rank(given[0])
    sizes[1] = b.sizes(given[0])[1]
    middle = b.pointwise("y0 = x0 + x1", [shift, rest])
    statistics = [b.reshape(x, sizes, sizes[1:2]) for x in (middle, deviation)]
    y, mean, variance = (rounded(b, x, like) for x, like in zip((y, mean, variance), given, strict=True))
    return [y, *statistics, mean, variance]


@form("_native_batch_norm_legit.no_stats")
def batch_norm_without_state(b: Builder, input: Node, weight: Node | None, bias: Node | None, eps: float) -> Any:
    rank = b.rank(input)
    axes = ",".join(str(d) for d in range(rank) if d != 1)
    mean = b.pointwise(f"y0 = mean[{axes}](x0)", [input])
    variance = b.pointwise(f"y0 = mean[{axes}]((x0 - x1) * (x0 - x1))", [input, mean])
    code, inputs = "(x0 - x1) * rsqrt(x2 + p0)", [b.tensor(input), mean, variance]
    for given, operation in ((weight, "*"), (bias, "+")):
        if given is not None:
            code += f" {operation} x{len(inputs)}"
            inputs.append(b.reshape(given, b.sizes(given), [1, -1] + [1] * (rank - 2)))
    statistics: list[Any] = [None, None]
    if b.used(1) or b.used(2):
        channels, wide = [b.sizes(input)[1]], [1, b.sizes(input)[1]] + [1] * (rank - 2)
        deviation = b.pointwise("y0 = rsqrt(x0 + p0)", [variance], scalars=[eps])
        statistics = [b.reshape(x, wide, channels) for x in (mean, deviation)]
    return [b.pointwise("y0 = " + code, inputs, scalars=[eps]), *statistics]


@form("native_batch_norm_backward.default", "batch_norm_backward.default")
def batch_norm_backward(b: Builder) -> Any:
    given = b.arguments(b.node)
    trains = given.get("train", given.get("update"))
    mean, deviation = given["save_mean"], given.get("save_invstd", given.get("save_var"))
    image, weight = given["input"], given["weight"]
    if not trains:
        return gradients_by_running_statistics(b, given["grad_out"], given)
    if mean is None or deviation is None:
        raise b.no_form("without statistics has no form in a network of dlprim")
    inputs = [widened(b, x) for x in (given["grad_out"], image, mean, deviation)]
    if weight is None:
        return rounded(b, b.layer("BatchNormBackward", inputs), image)
    made = b.layer("BatchNormBackward", [*inputs, widened(b, weight)], results=3)
    return [rounded(b, x, like) for x, like in zip(made, (image, weight, weight), strict=True)]


def gradients_by_running_statistics(b: Builder, dy: Node, given: dict[str, Any]) -> Any:
    weight = given["weight"]
    affine = [] if weight is None else [weight, weight]  # the gradients do not depend on the bias
    sources = [given["input"], given["running_mean"], given["running_var"], *affine]
    wanted = [True, False, False, *(bool(affine) for _ in affine)]
    options = {"eps": given["eps"], "use_global_stats": True, "affine": bool(affine)}
    made = b.gradients("BatchNorm", [widened(b, x) for x in sources], widened(b, dy), wanted, options)
    found = [made[0], *(made[3:] or [None, None])]
    return [
        x if x is None else rounded(b, x, like) for x, like in zip(found, (sources[0], weight, weight), strict=True)
    ]


@form("instance_norm.default")
def instance_norm(
    b: Builder, input: Node, weight: Node | None, bias: Node | None, use_input_stats: bool, eps: float
) -> Any:
    if not use_input_stats:
        raise b.no_form("with running statistics has no form in a network of dlprim")
    return group_norm(b, input, weight, bias, b.sizes(input)[1], eps)[0]


@form("native_layer_norm.default")
def layer_norm(
    b: Builder, input: Node, normalized_shape: Sequence[int], weight: Node | None, bias: Node | None, eps: float
) -> Any:
    options: dict[str, Any] = {"normalized_shape": list(normalized_shape), "eps": eps}
    if weight is None:
        if bias is not None:
            raise b.no_form("with a bias and no weight has no form in a network of dlprim")
        options["elementwise_affine"] = False
    elif bias is None:
        options["bias"] = False
    return with_statistics(b, "LayerNorm", input, options, [weight, bias])


@form("_fused_rms_norm.default")
def rms_norm(b: Builder, input: Node, normalized_shape: Sequence[int], weight: Node | None, eps: float | None) -> Any:
    dtype = b.value(input).dtype
    if weight is not None and b.value(weight).dtype != dtype:
        raise b.no_form("whose weight is of another type has no form in a network of dlprim")
    least = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    options: dict[str, Any] = {"normalized_shape": list(normalized_shape), "eps": least if eps is None else eps}
    if weight is None:
        options["elementwise_affine"] = False
    return with_statistics(b, "RMSNorm", input, options, [weight], results=2)


@form("native_group_norm.default")
def group_norm(b: Builder, input: Node, weight: Node | None, bias: Node | None, group: int, eps: float) -> Any:
    if (weight is None) != (bias is None):
        raise b.no_form("with one of weight and bias has no form in a network of dlprim")
    options: dict[str, Any] = {"num_groups": group, "eps": eps}
    if weight is None:
        options["affine"] = False
    return with_statistics(b, "GroupNorm", input, options, [weight, bias])


def gradients_of_norm(b: Builder, kind: str, inputs: list[Node | str], weight: Node | None, options: Any) -> Any:
    """Gradients of the input, the weight and the offset, which RMSNorm lacks."""
    if weight is None:
        return b.layer(kind, inputs, options)
    return b.layer(kind, [*inputs, weight], options, results=2 if kind == "RMSNormBackward" else 3)


@form("native_layer_norm_backward.default")
def layer_norm_backward(
    b: Builder,
    grad_out: Node,
    input: Node,
    normalized_shape: Sequence[int],
    mean: Node,
    rstd: Node,
    weight: Node | None,
) -> Any:
    options = {"dims": len(normalized_shape)}
    return gradients_of_norm(b, "LayerNormBackward", [grad_out, input, mean, rstd], weight, options)


@form("native_group_norm_backward.default")
def group_norm_backward(
    b: Builder, grad_out: Node, input: Node, mean: Node, rstd: Node, weight: Node | None, group: int
) -> Any:
    return gradients_of_norm(b, "GroupNormBackward", [grad_out, input, mean, rstd], weight, {"num_groups": group})


@form("_fused_rms_norm_backward.default")
def rms_norm_backward(
    b: Builder, grad_out: Node, input: Node, normalized_shape: Sequence[int], rstd: Node, weight: Node | None
) -> Any:
    options = {"dims": len(normalized_shape)}
    return gradients_of_norm(b, "RMSNormBackward", [grad_out, input, rstd], weight, options)
