# SPDX-License-Identifier: MIT
"""The table FORMS: ATen operators that have layers of their own in a network of dlprim (docs/json.md).

A form is a function of the builder and of the operator's arguments, by the names of its schema. It takes those that it
needs and returns the name of the result, a list of several, or None where only rows.yaml knows the call. What has no
form is a row of rows.yaml.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._graph import Builder, is_open, same_size

Node = torch.fx.Node
Form = Callable[..., Any]

# By "name.overload", or by "name" for all overloads.
FORMS: dict[str, Form] = {}


def form(*names: str) -> Callable[[Form], Form]:
    """Puts a function into the table."""

    def register(function: Form) -> Form:
        FORMS.update(dict.fromkeys(names, function))
        return function

    return register


def cast(b: Builder, x: Node, wanted: torch.dtype) -> Any:
    """A tensor in another type."""
    return x if b.value(x).dtype == wanted else b.layer("Cast", [x], {"dtype": b.dtype(wanted)})


def widened(b: Builder, x: Node) -> str:
    """A tensor of 16 bits as floats; others stay."""
    dtype = b.value(x).dtype
    return str(cast(b, x, torch.float32)) if dtype in (torch.float16, torch.bfloat16) else b.tensor(x)


def rounded(b: Builder, made: str, like: Node) -> str:
    """What was made of widened tensors in the type of one of them."""
    dtype = b.value(like).dtype
    return str(b.layer("Cast", [made], {"dtype": b.dtype(dtype)})) if dtype in (torch.float16, torch.bfloat16) else made


def only_floats(b: Builder, *tensors: Node | None) -> None:
    """Refuses other tensors, of which the layer computes no products."""
    if not all(b.value(x).is_floating_point() for x in tensors if x is not None):
        raise b.no_form("of whole numbers has no form in a network of dlprim")


# Functions of one tensor that layers can apply to their results: the operator, the activation, and its options by the
# names of arguments.
ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "relu": ("relu", {}),
    "sigmoid": ("sigmoid", {}),
    "tanh": ("tanh", {}),
    "silu": ("silu", {}),
    "mish": ("mish", {}),
    "hardswish": ("hardswish", {}),
    "hardsigmoid": ("hardsigmoid", {}),
    "hardtanh": ("hardtanh", {"min_val": "min_val", "max_val": "max_val"}),
    "leaky_relu": ("leaky_relu", {"negative_slope": "negative_slope"}),
    "softplus": ("softplus", {"beta": "beta", "threshold": "threshold"}),
    "softshrink": ("softshrink", {"lambd": "lambd"}),
    "hardshrink": ("hardshrink", {"lambd": "lambd"}),
}


def activation(b: Builder, kind: str, options: dict[str, Any]) -> Any:
    """The layer Activation of the node's argument self. Of other tensors than floats None: rows.yaml promotes."""
    given = b.arguments(b.node)
    source = given["self"]
    if not b.value(source).is_floating_point():
        return None
    found = {name: given[argument] for name, argument in options.items()}
    if kind == "hardtanh" and list(found.values()) == [0, 6]:
        kind, found = "relu6", {}
    return b.layer("Activation", [source], {"activation": kind, **found})


def activation_form(kind: str, options: dict[str, str]) -> Form:
    """The form of a row of ACTIVATIONS."""

    def made(b: Builder) -> Any:
        return activation(b, kind, options)

    return made


FORMS.update({f"{name}.default": activation_form(*row) for name, row in ACTIVATIONS.items()})


@form("gelu.default")
def gelu(b: Builder, approximate: str) -> Any:
    return activation(b, "gelu_tanh" if approximate == "tanh" else "gelu", {})


@form("elu.default")
def elu(b: Builder, scale: float, input_scale: float) -> Any:
    return activation(b, "elu", {"alpha": "alpha"}) if scale == 1 and input_scale == 1 else None


# Sums and products of two tensors, which layers in front of them can compute with their results.


def elementwise(b: Builder, self: Any, other: Any, options: dict[str, Any]) -> Any:
    both = isinstance(self, Node) and isinstance(other, Node)
    if not both or not (b.value(self).dtype == b.value(other).dtype == torch.float32):
        return None
    return b.layer("Elementwise", [self, other], options)


@form("add.Tensor")
def add(b: Builder, self: Any, other: Any, alpha: float) -> Any:
    return elementwise(b, self, other, {} if alpha == 1 else {"coef2": float(alpha)})


@form("sub.Tensor")
def sub(b: Builder, self: Any, other: Any, alpha: float) -> Any:
    return elementwise(b, self, other, {"coef2": -float(alpha)})


@form("mul.Tensor")
def mul(b: Builder, self: Any, other: Any) -> Any:
    return elementwise(b, self, other, {"operation": "prod"})


# Products.


@form("convolution.default")
def convolution(
    b: Builder,
    input: Node,
    weight: Node,
    bias: Node | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    options = convolution_options(b, weight, stride, padding, dilation, transposed, output_padding, groups)
    options["bias"] = bias is not None
    return b.layer("TransposedConvolution" if transposed else "Convolution", [input], options, [weight, bias])


def convolution_options(
    b: Builder,
    weight: Node,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> dict[str, Any]:
    shape = b.sizes(weight)
    count = len(shape) - 2
    options: dict[str, Any] = {
        "channels_out": shape[1] * groups if transposed else shape[0],
        "kernel": shape[2:],
        "stride": spread(stride, count),
        "pad": spread(padding, count),
        "dilate": spread(dilation, count),
        "groups": groups,
    }
    if transposed:
        options["output_pad"] = spread(output_padding, count)
    return options


@form("linear.default")
def linear(b: Builder, input: Node, weight: Node, bias: Node | None) -> Any:
    only_floats(b, input, weight)
    outputs = b.sizes(weight)[0]
    if is_open(outputs):
        return b.layer(
            "MatMul",
            [x for x in (input, weight, bias) if x is not None],
            {"transpose_b": True, "bias": bias is not None},
        )
    name, again = b.rows(input)
    options = {"outputs": outputs, "bias": bias is not None, "axis": -1}
    return again(b.layer("InnerProduct", [name], options, [weight, bias]), outputs)


def operand(b: Builder, x: Node) -> tuple[Node, bool]:
    """The tensor behind a swap of the last two dimensions, and whether there was one."""
    if x.op != "call_function" or x.target not in SWAPS:
        return x, False
    source = x.args[0]
    assert isinstance(source, Node)
    rank = b.rank(source)
    order = permutation(rank, SWAPS[x.target], b.arguments(x))
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    return (source, True) if rank >= 2 and order == swapped else (x, False)


def permutation(rank: int, kind: str, given: dict[str, Any]) -> list[int]:
    """The order of dimensions that t, transpose or permute give."""
    order = list(range(rank))
    if kind == "permute":
        return [d % rank for d in given["dims"]]
    first, second = (given["dim0"] % rank, given["dim1"] % rank) if kind == "transpose" else (0, rank - 1)
    order[first], order[second] = order[second], order[first]
    return order


SWAPS: dict[Any, str] = {
    torch.ops.aten.t.default: "t",
    torch.ops.aten.transpose.int: "transpose",
    torch.ops.aten.permute.default: "permute",
}


def product(b: Builder, left: Node, right: Node, bias: Node | None = None) -> Any:
    """left right, and a bias on every row."""
    only_floats(b, left, right)
    second, by_rows = operand(b, right)
    if by_rows and b.rank(second) == 2 and (bias is None or b.rank(bias) == 1):
        return linear(b, left, second, bias)
    first, transposed = operand(b, left)
    options = {"transpose_a": transposed, "transpose_b": by_rows, "bias": bias is not None}
    shown = {name: True for name, value in options.items() if value}
    return b.layer("MatMul", [first, second] + ([bias] if bias is not None else []), shown)


@form("mm.default", "bmm.default")
def mm(b: Builder, self: Node, mat2: Node) -> Any:
    return product(b, self, mat2)


@form("addmm.default")
def addmm(b: Builder, self: Node, mat1: Node, mat2: Node, beta: float, alpha: float) -> Any:
    whole = b.rank(self) == 1 and same_size(b.sizes(self)[0], b.sizes(mat2)[1])
    return product(b, mat1, mat2, self) if whole and alpha == beta == 1 else sum_of(b, self, mat1, mat2, beta, alpha)


@form("baddbmm.default")
def baddbmm(b: Builder, self: Node, batch1: Node, batch2: Node, beta: float, alpha: float) -> Any:
    return sum_of(b, self, batch1, batch2, beta, alpha)


def sum_of(b: Builder, c: Node, left: Node, right: Node, beta: float, alpha: float) -> Any:
    """alpha left right + beta c."""
    only_floats(b, left, right)
    (left, swap_a), (right, swap_b) = operand(b, left), operand(b, right)
    options = {"transpose_a": swap_a, "transpose_b": swap_b, "alpha": float(alpha), "beta": float(beta)}
    return b.layer("MatMulAdd", [left, right, c], options)


@form("matmul.default")
def matmul(b: Builder, self: Node, other: Node) -> Any:
    if b.rank(self) > 1 and b.rank(other) > 1:
        return product(b, self, other)
    only_floats(b, self, other)
    left, right = b.sizes(self), b.sizes(other)
    rows: Any = b.reshape(self, left, [1, *left]) if len(left) == 1 else self
    columns: Any = b.reshape(other, right, [*right, 1]) if len(right) == 1 else other
    name = b.layer("MatMul", [rows, columns])
    before = (
        [*right[:-2], 1, right[-1]]
        if len(left) == 1 and len(right) > 1
        else [*left[:-1], 1]
        if len(left) > 1
        else [1, 1]
    )
    return b.reshape(name, before, b.sizes(b.node))


@form("dot.default")
def dot(b: Builder, self: Node, tensor: Node) -> Any:
    return matmul(b, self, tensor)


@form("mv.default")
def mv(b: Builder, self: Node, vec: Node) -> Any:
    return matmul(b, self, vec)


@form("scaled_dot_product_attention.default")
def attention(
    b: Builder,
    query: Node,
    key: Node,
    value: Node,
    attn_mask: Node | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    options: dict[str, Any] = {"is_causal": is_causal, "enable_gqa": enable_gqa, "dropout_p": float(dropout_p)}
    options["scale"] = float(scale) if scale is not None else 0.0
    shown = {name: option for name, option in options.items() if option}
    return b.layer("Attention", [query, key, value] + ([attn_mask] if attn_mask is not None else []), shown)


@form("embedding.default")
def embedding(b: Builder, weight: Node, indices: Node, padding_idx: int) -> Any:
    rows, features = b.sizes(weight)
    if b.value(weight).dtype != torch.float32 and not b.is_parameter(weight):
        return b.layer("Gather", [weight, indices], {"mode": "rows", "dim": 0, "from_end": False})
    options = {"num_embeddings": rows, "embedding_dim": features}
    if padding_idx >= 0:
        options["padding_idx"] = padding_idx
    return b.layer("Embedding", [indices], options, [weight])


@form("lstm.input", "gru.input")
def recurrent(
    b: Builder,
    input: Node,
    hx: Any,
    params: Sequence[Node],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    first = list(hx) if isinstance(hx, (tuple, list)) else [hx]
    if any(b.sizes(x)[2] != b.sizes(first[0])[2] for x in first):
        raise b.no_form("with proj_size has no form in a network of dlprim")
    options = {
        "hidden_size": b.sizes(first[0])[2],
        "num_layers": num_layers,
        "bidirectional": bidirectional,
        "bias": has_biases,
        "batch_first": batch_first,
        "dropout": float(dropout),
    }
    return b.layer("LSTM" if len(first) == 2 else "GRU", [input, *first], options, params, results=1 + len(first))


# Norms, and what training draws.


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
    if not b.used(1) and not b.used(2):
        return [b.layer("BatchNorm", [x], options, weights, trained=True), None, None, None, None]
    options["return_statistics"] = True
    return [*b.layer("BatchNorm", [x], options, weights, results=3, trained=True), None, None]


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


@form("instance_norm.default")
def instance_norm(
    b: Builder, input: Node, weight: Node | None, bias: Node | None, use_input_stats: bool, eps: float
) -> Any:
    if not use_input_stats:
        raise b.no_form("with running statistics has no form in a network of dlprim")
    return group_norm(b, input, weight, bias, b.sizes(input)[1], eps)


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
    wants = b.used(1) or b.used(2)
    if wants:
        options["return_statistics"] = True
    return b.layer("LayerNorm", [input], options, [weight, bias], results=3 if wants else 1)


@form("_fused_rms_norm.default")
def rms_norm(b: Builder, input: Node, normalized_shape: Sequence[int], weight: Node | None, eps: float | None) -> Any:
    dtype = b.value(input).dtype
    if weight is not None and b.value(weight).dtype != dtype:
        raise b.no_form("whose weight is of another type has no form in a network of dlprim")
    least = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    options: dict[str, Any] = {"normalized_shape": list(normalized_shape), "eps": least if eps is None else eps}
    if weight is None:
        options["elementwise_affine"] = False
    if b.used(1):
        options["return_statistics"] = True
    return b.layer("RMSNorm", [input], options, [weight], results=2 if b.used(1) else 1)


@form("native_group_norm.default")
def group_norm(b: Builder, input: Node, weight: Node | None, bias: Node | None, group: int, eps: float) -> Any:
    if (weight is None) != (bias is None):
        raise b.no_form("with one of weight and bias has no form in a network of dlprim")
    options: dict[str, Any] = {"num_groups": group, "eps": eps}
    if weight is None:
        options["affine"] = False
    wants = b.used(1) or b.used(2)
    if wants:
        options["return_statistics"] = True
    return b.layer("GroupNorm", [input], options, [weight, bias], results=3 if wants else 1)


@form("native_dropout.default")
def dropout(b: Builder, input: Node, p: float, train: bool | None) -> Any:
    if b.keyed:
        return keyed_dropout(b, input, p if train is not False else 0)
    return [b.layer("Dropout", [input], {"p": float(p)}) if train is not False else b.tensor(input), None]


def keyed_dropout(b: Builder, x: Node, p: float) -> Any:
    """The result and the mask of an eager call, which draws where there is something to choose."""
    dtypes = [b.dtype(b.value(x).dtype), "bool"]
    if p in (0, 1):
        return b.layer("Pointwise", [x], {"code": f"y0 = x0 * {1 - p}; y1 = {1 - p}", "dtypes": dtypes}, results=2)
    code = "y1 = uniform(x1, x2, 0) >= p0; y0 = y1 ? x0 * p1 : 0"
    options = {"code": code, "scalars": [float(p), 1 / (1 - p)], "dtypes": dtypes}
    return b.layer("Pointwise", [x, *b.draw()], options, results=2)


@form("dropout.default")
def whole_dropout(b: Builder, input: Node, p: float, train: bool) -> Any:
    return dropout(b, input, p, train)[0]


@form("_softmax.default", "softmax.int")
def softmax(b: Builder, self: Node, dim: int) -> Any:
    return b.layer("Softmax", [self], {"axis": dim})


@form("_log_softmax.default", "log_softmax.int")
def log_softmax(b: Builder, self: Node, dim: int) -> Any:
    return b.layer("Softmax", [self], {"axis": dim, "log": True})


@form("nll_loss_forward.default", "nll_loss2d_forward.default")
def nll_loss(b: Builder, self: Node, target: Node, weight: Node | None, reduction: int, ignore_index: int) -> Any:
    options: dict[str, Any] = {"reduce": ("none", "mean", "sum")[reduction], "ignore_index": ignore_index}
    if b.rank(self) < 2:
        raise b.no_form("of one row has no form in a network of dlprim")
    wants = b.used(1)
    if wants:
        options["return_weight"] = True
    return b.layer(
        "NLLLoss", [self, target] + ([weight] if weight is not None else []), options, results=2 if wants else 1
    )


# Pooling and images.


def pooled_dims(b: Builder) -> int:
    """How many dimensions of images the node's operator pools: 2 of avg_pool2d."""
    return int(str(b.node.target).partition("_pool")[2][0])


def pooling(b: Builder, input: Node, options: dict[str, Any], results: int = 1) -> Any:
    """The layer Pooling. Images without a batch are a batch of one."""
    if b.rank(input) == pooled_dims(b) + 2:
        return b.layer("Pooling", [input], options, results=results)
    made = b.layer("Pooling", [b.reshape(input, b.sizes(input), [1, *b.sizes(input)])], options, results=results)
    value = b.value(b.node)
    after = list((value if isinstance(value, torch.Tensor) else value[0]).shape)
    names = [b.reshape(name, [1, *after], after) for name in (made if results > 1 else [made])]
    return names if results > 1 else names[0]


@form("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool(
    b: Builder,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Any:
    count = pooled_dims(b)
    options: dict[str, Any] = {"mode": "max", "kernel": spread(kernel_size, count)}
    options["stride"] = spread(stride or kernel_size, count)
    options["pad"] = spread(padding, count)
    options["dilate"] = spread(dilation, count)
    options["ceil_mode"] = ceil_mode
    if b.used(1):
        options["positions"] = "image"
    return pooling(b, self, options, 2 if b.used(1) else 1)


@form("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    b: Builder,
    self: Node,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
) -> Any:
    count = pooled_dims(b)
    options: dict[str, Any] = {"mode": "avg", "kernel": spread(kernel_size, count)}
    options["stride"] = spread(stride or kernel_size, count)
    options["pad"] = spread(padding, count)
    options["ceil_mode"] = ceil_mode
    options["count_include_pad"] = count_include_pad
    divisor = b.arguments(b.node).get("divisor_override")
    if divisor:
        options["divisor_override"] = divisor
    return pooling(b, self, options)


def spread(values: Sequence[int], count: int) -> list[int]:
    """One number for each dimension of images."""
    return list(values) * (count if len(values) == 1 else 1)


@form(
    "_adaptive_avg_pool2d.default",
    "_adaptive_avg_pool3d.default",
    "adaptive_avg_pool2d.default",
    "adaptive_avg_pool3d.default",
)
@form("adaptive_avg_pool1d.default")
def adaptive_pool(b: Builder, self: Node, output_size: Sequence[int]) -> Any:
    if all(size == 1 for size in output_size):
        return pooling(b, self, {"mode": "avg", "global": True})
    return pooling(b, self, {"mode": "avg", "output": list(output_size)})


@form("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(b: Builder, self: Node, output_size: Sequence[int]) -> Any:
    options = {"mode": "max", "output": list(output_size)} | ({"positions": "image"} if b.used(1) else {})
    return pooling(b, self, options, 2 if b.used(1) else 1)


# Images in other sizes: of "upsample_nearest2d" and so on the method of Resize.
RESIZES = {
    **{f"upsample_nearest{d}d": "nearest" for d in (1, 2, 3)},
    **{f"_upsample_nearest_exact{d}d": "nearest-exact" for d in (1, 2, 3)},
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "linear",
    "upsample_trilinear3d": "linear",
    "upsample_bicubic2d": "cubic",
    "_upsample_bilinear2d_aa": "linear",
    "_upsample_bicubic2d_aa": "cubic",
}


def resize_options(name: str, given: dict[str, Any], made: Sequence[Any]) -> dict[str, Any]:
    """Of the operator `name` and its arguments. `made`: the sizes of its result."""
    options: dict[str, Any] = {"method": RESIZES[name], "output": list(made)[2:]}
    if "align_corners" in given:
        options |= {"align_corners": given["align_corners"], "antialias": name.endswith("_aa")}
    each = [given[key] for key in ("scales", "scales_d", "scales_h", "scales_w") if given.get(key) is not None]
    scales = given.get("scale_factors") or each
    if scales:
        options["scales"] = [float(scale) for scale in scales]
    return options


@form(*(f"{name}.{overload}" for name in RESIZES for overload in ("vec", "default")))
def resize(b: Builder) -> Any:
    given, name = b.arguments(b.node), str(b.node.target).split(".")[1]
    return b.layer("Resize", [given.get("input") or given["self"]], resize_options(name, given, b.sizes(b.node)))


@form("grid_sampler_2d.default")
def grid_sampler(
    b: Builder, input: Node, grid: Node, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    return b.layer("GridSample", [input, grid], grid_options(interpolation_mode, padding_mode, align_corners))


def grid_options(interpolation_mode: int, padding_mode: int, align_corners: bool) -> dict[str, Any]:
    return {
        "mode": ("bilinear", "nearest", "bicubic")[interpolation_mode],
        "padding_mode": ("zeros", "border", "reflection")[padding_mode],
        "align_corners": align_corners,
    }


@form("im2col.default")
def im2col(
    b: Builder,
    self: Node,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    return columns(b, "Unfold", self, {}, kernel_size, dilation, padding, stride)


@form("col2im.default")
def col2im(
    b: Builder,
    self: Node,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    return columns(b, "Fold", self, {"output": list(output_size)}, kernel_size, dilation, padding, stride)


def columns(b: Builder, kind: str, x: Node, options: dict[str, Any], *window: Sequence[int]) -> Any:
    """The windows of images as columns, or back. Without a batch they are a batch of one."""
    options |= {name: list(sizes) for name, sizes in zip(("kernel", "dilate", "pad", "stride"), window, strict=True)}
    sizes = b.sizes(x)
    if len(sizes) == (4 if kind == "Unfold" else 3):
        return b.layer(kind, [x], options)
    made = b.layer(kind, [b.reshape(x, sizes, [1, *sizes])], options)
    return b.reshape(made, [1, *b.sizes(b.node)], b.sizes(b.node))


@form("constant_pad_nd.default")
def constant_pad(b: Builder, self: Node, pad: Sequence[int], value: float) -> Any:
    return b.layer("Pad", [self], {"pads": list(pad), "value": float(value)})


@form("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def reflection_pad(b: Builder, self: Node, padding: Sequence[int]) -> Any:
    return mirrored_pad(b, self, padding, "reflect")


@form("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def replication_pad(b: Builder, self: Node, padding: Sequence[int]) -> Any:
    return mirrored_pad(b, self, padding, "replicate")


def mirrored_pad(b: Builder, x: Node, padding: Sequence[int], mode: str) -> Any:
    if b.value(x).dtype == torch.float64:
        raise b.no_form("of double has no form in a network of dlprim")
    return b.layer("Pad", [x], {"pads": list(padding), "mode": mode})


# Elements that change places.


@form(
    "view.default",
    "_unsafe_view.default",
    "reshape.default",
    "unflatten.int",
    "flatten.using_ints",
    "unsqueeze.default",
)
@form("squeeze.default", "squeeze.dim", "squeeze.dims", "_reshape_alias.default")
def reshape(b: Builder, self: Node) -> Any:
    sizes = b.sizes(b.node)
    found = b.view(self).reshaped(sizes)
    return b.shown(found) if found is not None else b.reshape(self, b.sizes(self), sizes)


@form(
    "clone.default",
    "contiguous.default",
    "alias.default",
    "detach.default",
    "lift_fresh_copy.default",
    "lift_fresh.default",
)
def same(b: Builder, self: Node) -> Any:
    return b.view(self)


@form("_to_copy.default", "to.dtype", "to.dtype_layout", "to.device", "type_as.default")
def to(b: Builder, self: Node) -> Any:
    wanted = b.value(b.node).dtype
    return b.tensor(cast(b, self, wanted))


@form("copy.default")
def copy(b: Builder, self: Node, src: Node) -> Any:
    wanted = b.value(self).dtype
    return b.expand(cast(b, src, wanted), b.sizes(src), b.sizes(self), wanted)


@form("expand.default")
def expand(b: Builder, self: Node) -> Any:
    return b.expand(self, b.sizes(self), b.sizes(b.node), b.value(self).dtype)


@form("repeat.default")
def repeat(b: Builder, self: Node, repeats: Sequence[Any]) -> Any:
    name, before = b.tensor(self), [1] * (len(repeats) - b.rank(self)) + b.sizes(self)
    if all(same_size(size, 1) or same_size(times, 1) for size, times in zip(before, repeats, strict=True)):
        shaped = b.reshape(self, b.sizes(self), before)
        return b.expand(shaped, before, b.sizes(b.node), b.value(self).dtype)
    name = b.reshape(self, b.sizes(self), before)
    for dim, times in enumerate(repeats):
        if b.closed(times) != 1:
            name = b.layer("Concat", [name] * times, {"dim": dim})
    return name


@form("permute.default")
def permute(b: Builder, self: Node, dims: Sequence[int]) -> Any:
    return transposed(b, self, "permute", {"dims": dims})


@form("transpose.int")
def transpose(b: Builder, self: Node, dim0: int, dim1: int) -> Any:
    return transposed(b, self, "transpose", {"dim0": dim0, "dim1": dim1})


@form("t.default")
def t(b: Builder, self: Node) -> Any:
    return transposed(b, self, "t", {}) if b.rank(self) == 2 else b.tensor(self)


def transposed(b: Builder, x: Node, kind: str, given: dict[str, Any]) -> Any:
    return b.shown(b.view(x).permuted(permutation(b.rank(x), kind, given)))


@form("flip.default")
def flip(b: Builder, self: Node, dims: Sequence[int]) -> Any:
    return b.layer("Flip", [self], {"dims": [d % b.rank(self) for d in dims]})


@form("cat.default")
def cat(b: Builder, tensors: Sequence[Node], dim: int) -> Any:
    full = [x for x in tensors if not (b.rank(x) == 1 and same_size(b.sizes(x)[0], 0))]
    parts = [cast(b, x, b.value(b.node).dtype) for x in full]
    return b.layer("Concat", parts, {"dim": dim % b.rank(b.node)}) if len(parts) > 1 else b.tensor(parts[0])


@form("stack.default")
def stack(b: Builder, tensors: Sequence[Node], dim: int) -> Any:
    dim %= b.rank(b.node)
    before = b.sizes(tensors[0])
    parts = [cast(b, x, b.value(b.node).dtype) for x in tensors]
    names = [b.reshape(x, before, [*before[:dim], 1, *before[dim:]]) for x in parts]
    return b.layer("Concat", names, {"dim": dim}) if len(names) > 1 else names[0]


def cut(b: Builder, x: Node | str, dim: int, begin: Any, end: Any, size: Any) -> str:
    """The elements from begin on in front of end of one dimension, which has this size."""
    if begin == 0 and same_size(end, size):
        return b.tensor(x)
    return str(b.layer("Slice", [x], {"dim": dim, "begin": begin, "end": end}))


@form("slice.Tensor")
def slice_(b: Builder, self: Node, dim: int, start: int | None, end: Any, step: int) -> Any:
    dim %= b.rank(self)
    size = b.sizes(self)[dim]
    if is_open(size):
        if (start or 0) == 0 and step == 1 and same_size(b.sizes(b.node)[dim], size):
            return b.tensor(self)
        raise b.no_form("cuts a dimension that depends on the batch, which has no form in a network of dlprim")
    begin, end = bounded(b, start, 0, size), bounded(b, end, size, size)
    if step == 1:
        return cut(b, self, dim, begin, end, size)
    return b.layer("Gather", [self, b.constant(torch.arange(begin, end, step))], {"mode": "rows", "dim": dim})


def bounded(b: Builder, at: Any, default: int, size: int) -> int:
    """A bound of a slice as Python means it."""
    if at is None:
        return default
    at = b.closed(at)
    return int(min(max(at + size if at < 0 else at, 0), size))


@form("select.int")
def select(b: Builder, self: Node, dim: int, index: int) -> Any:
    dim %= b.rank(self)
    sizes = b.sizes(self)
    if is_open(sizes[dim]) and b.closed(index) < 0:
        raise b.no_form("counts from the end of the batch, which has no form in a network of dlprim")
    begin = b.closed(index) if index >= 0 or is_open(sizes[dim]) else index + sizes[dim]
    found = b.view(self).selected(dim, begin)
    if found is not None:
        return b.shown(found)
    name = cut(b, self, dim, begin, begin + 1, sizes[dim])
    return b.reshape(name, [*sizes[:dim], 1, *sizes[dim + 1 :]], [*sizes[:dim], *sizes[dim + 1 :]])


@form("split.Tensor", "split_with_sizes.default", "chunk.default", "unsafe_split.Tensor", "split.sizes")
def split(b: Builder, self: Node) -> Any:
    dim = b.arguments(b.node)["dim"] % b.rank(self)
    size = b.sizes(self)[dim]
    count, sizes = len(b.value(b.node)), b.sizes(self)
    if not is_open(size) and all(same_size(part.shape[dim], size // count) for part in b.value(b.node)):
        whole = b.view(self).reshaped([*sizes[:dim], count, size // count, *sizes[dim + 1 :]])
        if whole is not None:
            return [b.shown(part) for i in range(count) if (part := whole.selected(dim, i)) is not None]
    parts: list[Any] = []
    begin = 0
    for i, part in enumerate(b.value(b.node)):
        end = begin + part.shape[dim]
        parts.append(cut(b, self, dim, begin, end, size) if b.used(i) else None)
        begin = end
    return parts


@form("unbind.int")
def unbind(b: Builder, self: Node, dim: int) -> Any:
    return [select(b, self, dim, i) if b.used(i) else None for i in range(len(b.value(b.node)))]


@form("roll.default")
def roll(b: Builder, self: Node, shifts: Sequence[int], dims: Sequence[int]) -> Any:
    if not dims:
        raise b.no_form("without dims has no form in a network of dlprim")
    name = b.tensor(self)
    for shift, dim in zip(shifts, dims, strict=True):
        size = b.sizes(self)[dim]
        if b.closed(shift) % b.closed(size):
            behind = size - shift % size
            parts = [cut(b, name, dim, behind, size, size), cut(b, name, dim, 0, behind, size)]
            name = b.layer("Concat", parts, {"dim": dim % b.rank(self)})
    return name


@form("slice_scatter.default")
def slice_scatter(b: Builder, self: Node, src: Node, dim: int, start: int | None, end: int | None, step: int) -> Any:
    dim %= b.rank(self)
    size = b.sizes(self)[dim]
    begin, behind = bounded(b, start, 0, size), bounded(b, end, size, size)
    if step != 1:
        raise b.no_form("with a step has no form in a network of dlprim")
    parts = [cut(b, self, dim, 0, begin, size)] if begin else []
    parts += [b.tensor(cast(b, src, b.value(self).dtype))] + (
        [cut(b, self, dim, behind, size, size)] if behind < size else []
    )
    return b.layer("Concat", parts, {"dim": dim}) if len(parts) > 1 else parts[0]


@form("select_scatter.default")
def select_scatter(b: Builder, self: Node, src: Node, dim: int, index: int) -> Any:
    dim %= b.rank(self)
    sizes = b.sizes(self)
    begin = index % sizes[dim]
    one = b.reshape(cast(b, src, b.value(self).dtype), b.sizes(src), [*sizes[:dim], 1, *sizes[dim + 1 :]])
    parts = [cut(b, self, dim, 0, begin, sizes[dim])] if begin else []
    parts += [one] + ([cut(b, self, dim, begin + 1, sizes[dim], sizes[dim])] if begin + 1 < sizes[dim] else [])
    return b.layer("Concat", parts, {"dim": dim}) if len(parts) > 1 else one


# Indices.


@form("index_select.default")
def index_select(b: Builder, self: Node, dim: int, index: Node) -> Any:
    several = b.reshape(index, b.sizes(index), [-1]) if b.rank(index) == 0 else index
    return b.layer("Gather", [self, several], {"mode": "rows", "dim": dim})


@form("gather.default")
def gather(b: Builder, self: Node, dim: int, index: Node) -> Any:
    return b.layer("Gather", [self, index], {"mode": "elements", "dim": dim})


def places(b: Builder, indices: Sequence[Node | None]) -> tuple[dict[str, Any], Node | str, list[Any]]:
    """The options of Gather and Scatter for x[indices], one tensor of all indices, and their common sizes."""
    dims = [d for d, given in enumerate(indices) if given is not None]
    given = [x for x in indices if x is not None]
    if any(b.value(x).dtype in (torch.bool, torch.uint8) for x in given):
        raise b.no_form("by a mask has a size that depends on values, which networks of dlprim lack")
    if len(given) == 1:
        return {"mode": "rows", "dim": dims[0]}, given[0], b.sizes(given[0])
    shape = list(torch.broadcast_shapes(*(tuple(b.sizes(x)) for x in given)))  # type: ignore[no-untyped-call]
    parts = []
    for x in given:
        wanted = b.value(given[0]).dtype
        wide = b.expand(cast(b, x, wanted), b.sizes(x), shape, wanted)
        parts.append(b.reshape(wide, shape, [*shape, 1]))
    return {"mode": "dims", "dims": dims}, b.layer("Concat", parts, {"dim": len(shape)}), shape


@form("index.Tensor", "_unsafe_index.Tensor")
def index(b: Builder, self: Node, indices: Sequence[Node | None]) -> Any:
    options, positions, _ = places(b, indices)
    return b.layer("Gather", [self, positions], options)


@form("index_put.default", "_unsafe_index_put.default")
def index_put(b: Builder, self: Node, indices: Sequence[Node | None], values: Node, accumulate: bool) -> Any:
    options, positions, shape = places(b, indices)
    dims = [d for d, given in enumerate(indices) if given is not None]
    sizes = b.sizes(self)
    beside = dims[-1] - dims[0] == len(dims) - 1
    rest = [size for d, size in enumerate(sizes) if d not in dims]
    at = dims[0] if beside else 0
    wanted = [*rest[:at], *shape, *rest[at:]]
    updates = b.expand(values, b.sizes(values), wanted, b.value(self).dtype)
    return b.layer("Scatter", [self, positions, updates], options | {"reduction": "add" if accumulate else "none"})


REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "mean", "amax": "max", "amin": "min"}


@form("scatter.src", "scatter.value", "scatter_add.default", "scatter_reduce.two")
def scatter(b: Builder, self: Node, dim: int, index: Node) -> Any:
    given, dtype = b.arguments(b.node), b.value(self).dtype
    options: dict[str, Any] = {"mode": "elements", "dim": dim}
    if "add" in str(b.node.target):
        options["reduction"] = "add"
    if "reduce" in given:
        options |= {"reduction": REDUCTIONS[given["reduce"]], "include_self": given["include_self"]}
    source, sizes = given.get("src"), b.sizes(index)
    if b.rank(self) == 0:
        raise b.no_form("of a tensor without dimensions has no form in a network of dlprim")
    if source is None:
        ones = [1] * len(sizes)
        value = torch.full(ones, given["value"], dtype=dtype)
        return b.layer("Scatter", [self, index, b.expand(b.constant(value), ones, sizes, dtype)], options)
    name: Node | str = source
    for d, size in enumerate(sizes):
        name = cut(b, name, d, 0, size, b.sizes(source)[d])
    return b.layer("Scatter", [self, index, name], options)


@form("topk.default")
def topk(b: Builder, self: Node, k: int, dim: int, largest: bool) -> Any:
    return b.layer("TopK", [self], {"k": k, "dim": dim, "largest": largest}, results=2)


@form("sort.default", "sort.stable")
def sort(b: Builder, self: Node, dim: int, descending: bool) -> Any:
    return b.layer("Sort", [self], {"dim": dim, "descending": descending}, results=2)


@form("argmax.default", "argmin.default")
def arg_reduce(b: Builder, self: Node, dim: int | None, keepdim: bool) -> Any:
    options: dict[str, Any] = {"method": "max" if "argmax" in str(b.node.target) else "min", "values": False}
    options |= {"keep_dim": keepdim} if dim is None else {"dim": [dim], "keep_dim": keepdim}
    return b.layer("ArgReduce", [self], options)


@form("max.dim", "min.dim")
def extreme(b: Builder, self: Node, dim: int, keepdim: bool) -> Any:
    method = "max" if "max" in str(b.node.target) else "min"
    return b.layer("ArgReduce", [self], {"method": method, "dim": [dim], "keep_dim": keepdim}, results=2)


@form("cumsum.default", "cumprod.default")
def scan(b: Builder, self: Node, dim: int) -> Any:
    source = cast(b, self, b.value(b.node).dtype)
    return b.layer("Scan", [source], {"method": "sum" if "cumsum" in str(b.node.target) else "prod", "dim": dim})


# Sums.


@form("mean.dim")
def mean(b: Builder, self: Node, dim: Sequence[int] | None, keepdim: bool, dtype: torch.dtype | None) -> Any:
    if b.value(self).dtype != torch.float32 or dtype not in (None, torch.float32):
        return None
    return b.layer(
        "Reduction", [self], {"method": "mean", "dims": list(dim or range(b.rank(self))), "keep_dim": keepdim}
    )


@form("mean.default")
def mean_of_all(b: Builder, self: Node, dtype: torch.dtype | None) -> Any:
    return mean(b, self, None, False, dtype)


@form("sum.default")
def sum_of_all(b: Builder) -> Any:
    return b.row("dim_IntList", dim=None, keepdim=False)


@form("var.correction", "var_mean.correction")
def variance(b: Builder, self: Node, dim: Sequence[int] | None, correction: float | None, keepdim: bool) -> Any:
    axes = sorted(d % b.rank(self) for d in (dim or range(b.rank(self))))
    text = ",".join(map(str, axes))
    count = math.prod(b.option(b.sizes(self)[d]) for d in axes)
    dtype = b.value(self).dtype
    middle = b.pointwise(f"y0 = mean[{text}](x0)", [self], dtype)
    scale = 1 / max(count - (1 if correction is None else correction), 0) if count != correction else math.nan
    squares = b.pointwise(f"y0 = sum[{text}]((x0 - x1) * (x0 - x1))", [self, middle], dtype, keep_dim=keepdim)
    found = b.pointwise("y0 = x0 * p0", [squares], dtype, scalars=[scale])
    if "var_mean" not in str(b.node.target):
        return found
    kept = [1 if d in axes else size for d, size in enumerate(b.sizes(self))]
    return [found, b.reshape(middle, kept, list(b.value(b.node)[1].shape))]


# Tensors that the graph makes.


@form("full.default")
def full(b: Builder, size: Sequence[Any], fill_value: float) -> Any:
    ones, dtype = [1] * len(size), b.value(b.node).dtype
    return b.expand(b.constant(torch.full(ones, fill_value, dtype=dtype)), ones, list(size), dtype)


@form("full_like.default")
def full_like(b: Builder, fill_value: float) -> Any:
    return full(b, b.sizes(b.node), fill_value)


@form(
    "zeros.default",
    "zeros_like.default",
    "new_zeros.default",
    "empty.memory_format",
    "new_empty.default",
    "new_empty_strided.default",
)
def zeros(b: Builder) -> Any:
    return full(b, b.sizes(b.node), 0)


@form("ones.default", "ones_like.default", "new_ones.default")
def ones(b: Builder) -> Any:
    return full(b, b.sizes(b.node), 1)


@form("scalar_tensor.default")
def scalar_tensor(b: Builder, s: float) -> Any:
    return b.constant(torch.tensor(s, dtype=b.value(b.node).dtype))


@form("arange.start_step", "arange.start", "arange.default")
def arange(b: Builder, end: Any) -> Any:
    given, dtype = b.arguments(b.node), b.value(b.node).dtype
    start, step = given.get("start", 0), given.get("step", 1)
    if is_open(end) and start == 0 and step == 1:
        return b.pointwise("y0 = index(0)", [b.batch(end, 1, 0)], dtype)
    return b.constant(torch.arange(*map(b.option, (start, end, step)), dtype=dtype))
