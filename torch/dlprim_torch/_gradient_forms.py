# SPDX-License-Identifier: MIT
"""Forms (_forms.py) of what only torch.compile's graphs have: gradients.

What stays eager has no form, such as gradients of transposed convolutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._forms import (
    RESIZES,
    Node,
    convolution_options,
    form,
    grid_options,
    resize_options,
    rounded,
    spread,
    widened,
)
from ._graph import Builder

REDUCTIONS = ("none", "mean", "sum")


# Attention that is one operator on GPUs.


def attention_options(b: Builder, query: Node, key: Node, dropout_p: float, causal: bool, scale: float | None) -> Any:
    options: dict[str, Any] = {"is_causal": causal, "enable_gqa": b.sizes(query)[-3] != b.sizes(key)[-3]}
    options |= {"scale": float(scale or 0), "dropout_p": float(dropout_p), "stream": 0}
    return options


@form("_scaled_dot_product_fused_attention_overrideable.default")
def fused_attention(
    b: Builder,
    query: Node,
    key: Node,
    value: Node,
    attn_bias: Node | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Any:
    keys = b.draw() if dropout_p > 0 else []
    inputs = [widened(b, x) for x in (query, key, value, attn_bias) if x is not None]
    options = attention_options(b, query, key, dropout_p, is_causal, scale)
    y, logarithms = b.layer("AttentionForward", [*inputs, *keys], options, results=2)
    y, sizes = rounded(b, y, query), b.sizes(query)[:-1]
    seed, step = keys or (None, None)
    return [y, b.reshape(logarithms, sizes, [1] * (3 - len(sizes)) + sizes), None, None, None, None, seed, step, None]


@form("_scaled_dot_product_fused_attention_overrideable_backward.default")
def fused_attention_backward(
    b: Builder,
    grad_out: Node,
    query: Node,
    key: Node,
    value: Node,
    attn_bias: Node | None,
    grad_input_mask: Sequence[bool],
    out: Node,
    logsumexp: Node,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Node,
    philox_offset: Node,
    scale: float | None,
) -> Any:
    if attn_bias is not None and grad_input_mask[3]:
        raise b.no_form("of the mask has no form in a network of dlprim")
    rows = b.sizes(query)[:-1]
    dy = widened(b, grad_out)
    sums = b.pointwise("y0 = sum[-1](x0 * x1)", [dy, widened(b, out)], keep_dim=False)
    inputs = [*(widened(b, x) for x in (query, key, value)), b.reshape(logsumexp, b.sizes(logsumexp), rows), sums, dy]
    inputs += [] if attn_bias is None else [widened(b, attn_bias)]
    if dropout_p > 0:
        inputs += [b.reshape(x, [], [1]) for x in (philox_seed, philox_offset)]
    options = attention_options(b, query, key, dropout_p, is_causal, scale)
    dq, dk, dv = b.layer("AttentionBackward", inputs, options, results=3)
    if options["enable_gqa"]:  # [..., groups, heads of a group, positions, features]
        batch, groups = b.sizes(query)[:-3], b.sizes(key)[-3]
        each = [*batch, groups, b.sizes(query)[-3] // groups]
        dq = b.reshape(dq, [*each, *b.sizes(query)[-2:]], b.sizes(query))
        dk, dv = (b.pointwise(f"y0 = sum[{len(batch) + 1}](x0)", [x], keep_dim=False) for x in (dk, dv))
    return [*(rounded(b, x, query) for x in (dq, dk, dv)), None]


@form("convolution_backward.default")
def convolution_backward(
    b: Builder,
    grad_output: Node,
    input: Node,
    weight: Node,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    options = convolution_options(b, weight, stride, padding, dilation, transposed, output_padding, groups)
    kind = "TransposedConvolution" if transposed else "Convolution"
    made = b.gradients(kind, [input, weight], grad_output, output_mask[:2], {**options, "bias": False})
    axes = ",".join(str(d) for d in range(b.rank(input)) if d != 1)
    dtype = b.value(grad_output).dtype
    of_bias = b.pointwise(f"y0 = sum[{axes}](x0)", [grad_output], dtype, keep_dim=False) if output_mask[2] else None
    return [*made, of_bias]


def in_float(b: Builder, kind: str, inputs: Sequence[Node], options: dict[str, Any], like: Node) -> str:
    """A layer of one result that has no engine for 16 bits: it takes floats, and its result is rounded."""
    return rounded(b, b.layer(kind, [widened(b, x) for x in inputs], options), like)


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


def gradients_of_norm(
    b: Builder, kind: str, inputs: list[Node | str], weight: Node | None, options: dict[str, Any]
) -> Any:
    """Gradients of the input, the weight and the offset."""
    weights = [] if weight is None else [weight]
    return b.layer(kind, [*inputs, *weights], options, results=3 if weights else 1)


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
    weights = [] if weight is None else [weight]
    options = {"dims": len(normalized_shape)}
    return b.layer("RMSNormBackward", [grad_out, input, rstd, *weights], options, results=1 + len(weights))


@form("_safe_softmax.default")
def safe_softmax(b: Builder, self: Node, dim: int, dtype: Any) -> Any:
    """Softmax whose rows of -inf alone become zeros."""
    if dtype is not None and dtype != b.value(self).dtype:
        raise b.no_form("that converts its argument has no form in a network of dlprim")
    largest = b.pointwise(f"y0 = max[{dim % b.rank(self)}](x0)", [self], dtype=b.value(self).dtype)
    weights = b.layer("Softmax", [self], {"axis": dim})
    return b.pointwise("y0 = x1 == p0 ? 0 : x0", [weights, largest], b.value(self).dtype, scalars=["-inf"])


@form("_softmax_backward_data.default", "_log_softmax_backward_data.default")
def softmax_backward(b: Builder, grad_output: Node, output: Node, dim: int) -> Any:
    options = {"axis": dim, "log": "log" in str(b.node.target)}
    return b.layer("SoftmaxBackward", [grad_output, output], options)


@form("nll_loss_backward.default", "nll_loss2d_backward.default")
def nll_loss_backward(
    b: Builder,
    grad_output: Node,
    self: Node,
    target: Node,
    weight: Node | None,
    reduction: int,
    ignore_index: int,
    total_weight: Node,
) -> Any:
    if b.rank(self) < 2:
        raise b.no_form("of a single row has no form in a network of dlprim")
    dy = grad_output if reduction == 0 else b.reshape(grad_output, b.sizes(grad_output), [1])
    inputs = [dy, target, b.reshape(total_weight, b.sizes(total_weight), [1])]
    options = {"reduce": REDUCTIONS[reduction], "ignore_index": ignore_index, "classes": b.sizes(self)[1]}
    return b.layer("NLLLossBackward", inputs + ([weight] if weight is not None else []), options)


@form("embedding_dense_backward.default")
def embedding_backward(
    b: Builder, grad_output: Node, indices: Node, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if scale_grad_by_freq:
        raise b.no_form("by frequency has no form in a network of dlprim")
    options = {"num_embeddings": num_weights, "embedding_dim": b.sizes(grad_output)[-1]}
    if padding_idx >= 0:
        options["padding_idx"] = padding_idx
    return in_float(b, "EmbeddingBackward", [indices, grad_output], options, grad_output)


@form("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def max_pool_backward(
    b: Builder,
    grad_output: Node,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Node,
) -> Any:
    options = window(b, self, kernel_size, stride, padding, ceil_mode)
    options |= {"mode": "max", "dilate": spread(dilation, b.rank(self) - 2), "positions": "image"}
    return b.layer("PoolingBackward", [grad_output, indices], options)


@form("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def avg_pool_backward(
    b: Builder,
    grad_output: Node,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    options = window(b, self, kernel_size, stride, padding, ceil_mode)
    options |= {"mode": "avg", "count_include_pad": count_include_pad}
    if divisor_override is not None:
        options["divisor_override"] = divisor_override
    return b.layer("PoolingBackward", [grad_output], options)


@form("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(b: Builder, grad_output: Node, self: Node) -> Any:
    options = {"mode": "avg", "output": b.sizes(grad_output)[2:], "sizes": b.sizes(self)[2:]}
    return b.layer("PoolingBackward", [grad_output], options)


# Images, of which gradients need the sizes alone.


def absent(b: Builder, sizes: Sequence[Any], like: Node) -> str:
    """A tensor of these sizes of which nothing is read."""
    return b.pointwise("y0 = 0", [], b.value(like).dtype, shape=list(sizes))


@form(*(f"{name}_backward.default" for name in RESIZES))
def resize_backward(b: Builder, grad_output: Node, input_size: Sequence[Any]) -> Any:
    name = str(b.node.target).split(".")[1].removesuffix("_backward")
    options = resize_options(name, b.arguments(b.node), b.sizes(grad_output))
    return b.gradients("Resize", [absent(b, input_size, grad_output)], grad_output, [True], options)[0]


@form("reflection_pad1d_backward.default", "reflection_pad2d_backward.default", "reflection_pad3d_backward.default")
def reflection_pad_backward(b: Builder, grad_output: Node, self: Node, padding: Sequence[int]) -> Any:
    options = {"pads": list(padding), "mode": "reflect"}
    return b.gradients("Pad", [self], grad_output, [True], options)[0]


@form("replication_pad1d_backward.default", "replication_pad2d_backward.default", "replication_pad3d_backward.default")
def replication_pad_backward(b: Builder, grad_output: Node, self: Node, padding: Sequence[int]) -> Any:
    options = {"pads": list(padding), "mode": "replicate"}
    return b.gradients("Pad", [self], grad_output, [True], options)[0]


@form("grid_sampler_2d_backward.default")
def grid_sampler_backward(
    b: Builder,
    grad_output: Node,
    input: Node,
    grid: Node,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> Any:
    options = grid_options(interpolation_mode, padding_mode, align_corners)
    return b.gradients("GridSample", [input, grid], grad_output, output_mask, options)


@form("adaptive_max_pool2d_backward.default", "adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(b: Builder, grad_output: Node, self: Node, indices: Node) -> Any:
    options = {"mode": "max", "output": b.sizes(grad_output)[2:], "sizes": b.sizes(self)[2:], "positions": "image"}
    return b.layer("PoolingBackward", [grad_output, indices], options)


def window(
    b: Builder, x: Node, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil_mode: bool
) -> dict[str, Any]:
    """What poolings have in common."""
    count = b.rank(x) - 2
    if b.rank(b.node) != b.rank(x) or count < 2:
        raise b.no_form("of an image without a batch has no form in a network of dlprim")
    return {
        "kernel": spread(kernel, count),
        "stride": spread(stride or kernel, count),
        "pad": spread(padding, count),
        "ceil_mode": ceil_mode,
        "sizes": b.sizes(x)[2:],
    }
