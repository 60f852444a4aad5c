# SPDX-License-Identifier: MIT
"""The functions of dlprim.ops and dlprim.nn, and layers, that follow from what their operator declares: a row for each.

A row has the arguments, the operator, what it computes, and the options that it fixes. Everything else comes from the
operator's struct in include/dlprim/op_options.hpp: types, defaults, and what an argument means.

    max_pool2d(input, kernel_size, stride=kernel_size, padding, *, ceil_mode, engine)

An argument is a tensor (TENSORS of signatures.py), a keyword of eager calls (COMMON there: `engine`, `seed`, ...), or
an option. A bare option has the operator's default, and none if the operator requires it. The other forms of an option:

    padding           an option that network JSON names otherwise, which NAMES of signatures.py says
    alpha: coef2      another name of network JSON, in this function alone
    dim=0             another default; None leaves the option to the operator
    dim=required      no default
    stride=kernel_size    by default the value of another argument
    padding|str       also of this type

In dlprim.ops a function also takes `out`. In dlprim.nn it has the keywords of LayerOptions in place of those of eager
calls, and `input` is x. Behind `-> tuple`, it returns all results of its operator, else the first. A line of the text
that begins with an argument's name and a colon replaces what the operator says about this argument.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Row(NamedTuple):
    """A function or a layer: see above."""

    signature: str
    operator: str
    text: str
    fixed: dict[str, Any]
    only: str = ""  # "ops" or "nn" of a function that the other module lacks or writes itself
    eager: str = ""  # what the help adds in dlprim.ops
    derive: str = ""  # of a function with parameters: what ops/_derived.py makes options of their shapes by
    base: str = "SingleLayer"  # of a layer: its base class, from nn/_bases.py
    order: tuple[str, ...] = ()  # of a layer: PyTorch's order of arguments, which is taken too
    prefix: str = ""  # of a layer: the beginning of generated names, if not the class's


def row(signature: str, operator: str, text: str, only: str = "", eager: str = "", **fixed: Any) -> Row:
    """A row of a function, with the options that it fixes as keywords."""
    return Row(signature, operator, text, fixed, only, eager)


def with_params(signature: str, operator: str, text: str, derive: str) -> Row:
    """A function of dlprim.ops that takes its operator's parameters (PARAMS of signatures.py)."""
    return Row(signature, operator, text, {}, only="ops", derive=derive)


def activation(signature: str, text: str, only: str = "") -> Row:
    """A function of network JSON's operator Activation, which has the function's name there."""
    fixed = {"activation": signature.partition("(")[0]}
    return Row(signature, "Activation", text, fixed, only, base="ActivationLayer")


ACTIVATIONS = [
    row(
        "activation(input, activation, *, alpha, beta)",
        "Activation",
        """The activation with that name, for example "relu".

        docs/json.md lists them, with the meaning of alpha and beta.
        """,
        only="ops",
    ),
    activation("identity(input)", "A copy of the input."),
    activation("relu(input)", "max(x, 0)."),
    activation("relu6(input)", "min(max(x, 0), 6)."),
    activation("sigmoid(input)", "1 / (1 + exp(-x))."),
    activation("tanh(input)", "The hyperbolic tangent."),
    activation("silu(input)", "x sigmoid(x)."),
    activation("hardswish(input)", "x min(max(x + 3, 0), 6) / 6."),
    activation("hardsigmoid(input)", "min(max(x / 6 + 0.5, 0), 1)."),
    activation("selu(input)", "1.0507... times elu(x) with alpha 1.6732..."),
    activation("softsign(input)", "x / (1 + abs(x))."),
    activation("mish(input)", "x tanh(softplus(x))."),
    activation("logsigmoid(input)", "log(sigmoid(x))."),
    activation("tanhshrink(input)", "x - tanh(x)."),
    activation("exp(input)", "e to the power of x."),
    activation("log(input)", "The natural logarithm; NaN for negative numbers."),
    activation("sqrt(input)", "The square root; NaN for negative numbers."),
    activation("square(input)", "x x."),
    activation("neg(input)", "-x.", only="ops"),
    activation("leaky_relu(input, negative_slope: alpha=0.01)", "x if x > 0, else negative_slope x."),
    activation("elu(input, alpha=1.0)", "x if x > 0, else alpha (exp(x) - 1)."),
    activation("celu(input, alpha=1.0)", "x if x > 0, else alpha (exp(x / alpha) - 1)."),
    activation(
        "softplus(input, beta: alpha=1.0, threshold: beta=20.0)",
        "log(1 + exp(beta x)) / beta; x where beta x is above the threshold.",
    ),
    activation("softshrink(input, lambd: alpha=0.5)", "x - lambd if x > lambd, x + lambd if x < -lambd, else 0."),
    activation("hardshrink(input, lambd: alpha=0.5)", "x if abs(x) > lambd, else 0."),
    activation(
        "threshold(input, threshold: alpha=required, value: beta=required)",
        "x if x > threshold, else value, as torch.nn.functional.threshold.",
    ),
    row("abs(input)", "Abs", "The absolute value; its gradient at 0 is 0."),
    row("hardtanh(input, min_val, max_val)", "Hardtanh", "min(max(x, min_val), max_val)."),
    row(
        "binarize(input, *, threshold)",
        "Threshold",
        "1 if x > threshold, else 0: the operator Threshold of network JSON. Its gradient is 0.",
        only="ops",
    ),
    row(
        "dropout(input, p, *, training=True, seed, step, stream=None)",
        "Dropout",
        """In training, sets each element to 0 with probability p and divides the others by 1 - p.

        Otherwise the result is the input.
        p: a number from 0 to 1.
        stream: an integer from 0 to 2^24 - 1. Dropouts of the same stream drop the same elements.
        """,
        eager="""
        seed, step: integers from 0 to 2^64 - 1.
        Equal seed, step and stream drop the same elements on every device. `grad` needs those of the forward call.
        """,
    ),
]

ARITHMETIC = [
    row(
        "gated_activation(input, activation, *, gate, dim)",
        "GatedActivation",
        """One half of a dimension times the activation of the other, the gate.

        activation: "silu" makes SwiGLU, "gelu" GEGLU, and "sigmoid" with gate "second" torch.nn.functional.glu.
        """,
    ),
    row(
        "elementwise(input, other, *, operation, coef1, coef2, activation=None, engine)",
        "Elementwise",
        """activation(operation(coef1 input, coef2 other)); shapes broadcast as in numpy.

        operation: "sum", "prod" or "max". If both are equal, "max" passes its gradient to the first.
        """,
        only="ops",
    ),
    row(
        "add(input, other, *, alpha: coef2)",
        "Elementwise",
        "input + alpha other; shapes broadcast as in numpy.",
        operation="sum",
        only="ops",
    ),
    row(
        "sub(input, other)",
        "Elementwise",
        "input - other; shapes broadcast as in numpy.",
        operation="sum",
        coef2=-1.0,
        only="ops",
    ),
    row(
        "mul(input, other)",
        "Elementwise",
        "The product of each pair; shapes broadcast as in numpy.",
        operation="prod",
        only="ops",
    ),
    row(
        "div(input, other)",
        "Pointwise",
        "input / other; shapes broadcast as in numpy.",
        code="y0 = x0 / x1",
        only="ops",
    ),
    row(
        "maximum(input, other)",
        "Elementwise",
        "The larger one of each pair; shapes broadcast as in numpy. Of equal ones the first gets the gradient.",
        operation="max",
        only="ops",
    ),
    row(
        "minimum(input, other)",
        "Pointwise",
        "The smaller one of each pair; shapes broadcast as in numpy. Of equal ones the first gets the gradient.",
        code="y0 = min(x0, x1)",
        only="ops",
    ),
    row(
        "reduction(input, *, method, dims, start_axis, keep_dim, output_scale, engine)",
        "Reduction",
        """output_scale times a reduction over dimensions; negative ones count from the end.

        method: the sum of x ("sum"), of x x ("sumsq") or of abs(x) ("abssum"), or the mean ("mean").
        If no dimension remains, the result is [1].
        """,
        only="ops",
    ),
    row(
        "sum(input, dim: dims, keepdim=False)",
        "Reduction",
        "The sum over one or several dimensions, or over all. If no dimension remains, the result is [1].",
        method="sum",
        only="ops",
    ),
    row(
        "mean(input, dim: dims, keepdim=False)",
        "Reduction",
        "The mean over one or several dimensions, or over all. If no dimension remains, the result is [1].",
        method="mean",
        only="ops",
    ),
    row(
        "matmul(input, other, bias=None, *, transpose_a, transpose_b, alpha, precision, engine)",
        "MatMul",
        """The matrix product alpha input other + bias. Leading dimensions broadcast as in numpy.

        input: [..., M, K], or [..., K, M] with transpose_a. other: [..., K, N], or [..., N, K] with transpose_b. bias:
        [N], added to each row. The result is [..., M, N]. Vectors are treated as in numpy.matmul.
        """,
    ),
    row(
        "matmul_add(input, other, addend, *, transpose_a, transpose_b, alpha, beta, precision, engine)",
        "MatMulAdd",
        """alpha input other + beta addend, as torch.addmm and torch.baddbmm, in which the addend comes first.

        input, other, transpose_a, transpose_b: as of `matmul`; leading dimensions broadcast.
        addend: broadcasts to the product's shape. All have one dtype, and integers take only whole factors.
        beta: factor of the addend, which is not read if this is 0.
        """,
    ),
]

NORMS = [
    row(
        "softmax(input, dim, *, engine)",
        "Softmax",
        "exp(x) divided by its sum along a dimension; a negative dim counts from the end.",
    ),
    row(
        "log_softmax(input, dim, *, engine)",
        "Softmax",
        "The natural logarithm of `softmax`, also where softmax itself would be rounded to 0.",
        log=True,
    ),
    row(
        "cross_entropy(input, target)",
        "SoftmaxWithLoss",
        """The cross entropy of logits and labels, averaged over the batch: SoftmaxWithLoss of network JSON.

        input: logits, [N, C, ...].
        target: labels from 0 to C - 1, [N, ...], of an integer dtype, or floats with integer values. A label that is
        out of range or NaN has a loss of 0.
        The result is [1]. For other reductions apply `nll_loss` to `log_softmax`.
        """,
        only="ops",
    ),
    row(
        "nll_loss(input, target, *, reduction)",
        "NLLLoss",
        """The negative of the input's entry at each label, as torch.nn.functional.nll_loss.

        input: log probabilities, [N, C, ...].
        target: labels from 0 to C - 1, [N, ...], of an integer dtype, or floats with integer values. A label that is
        out of range or NaN has a loss of 0.
        reduction: "mean" or "sum" over the labels, [1], or "none", [N, ...].
        """,
        only="ops",
    ),
    row(
        "mse_loss(input, target, *, reduction)",
        "MSELoss",
        """Squares of differences of tensors of one shape and float dtype, as torch.nn.functional.mse_loss.

        reduction: "mean" or "sum" over the elements, [1], or "none", which keeps the shape.
        """,
        only="ops",
    ),
    row(
        "huber_loss(input, target, reduction, *, delta)",
        "HuberLoss",
        """With d = abs(input - target): 0.5 d d where d <= delta, else delta (d - 0.5 delta).

        It is torch.nn.functional.huber_loss. input, target: of one shape and float dtype.
        reduction: "mean" or "sum" over the elements, [1], or "none", which keeps the shape.
        delta: a number above 0.
        """,
        only="ops",
    ),
]

POOLING = [
    row(
        "max_pool2d(input, kernel_size, stride=kernel_size, padding, *, ceil_mode, engine)",
        "Pooling2D",
        """The maximum of each window of images, as torch.nn.functional.max_pool2d.

        input: [N, C, H, W]. The result is [N, C, OH, OW] with OH = (H + top + bottom - kernel_size) / stride + 1,
        rounded down, or up with ceil_mode.
        kernel_size, stride: pixels, one number or [height, width]. The default stride is kernel_size (in network JSON
        it is 1).
        padding: pixels that are ignored, one number, [height, width] or [top, left, bottom, right].
        """,
        mode="max",
    ),
    row(
        "avg_pool2d(input, kernel_size, stride=kernel_size, padding, ceil_mode, count_include_pad=True, *, engine)",
        "Pooling2D",
        """The mean of each window of images, as torch.nn.functional.avg_pool2d.

        input: [N, C, H, W]. The result is [N, C, OH, OW]. Sizes and the other keywords are those of `max_pool2d`.
        count_include_pad: whether the padding's zeros count in the mean (the default in network JSON is false).
        """,
        mode="avg",
    ),
    row(
        "global_max_pool2d(input)",
        "GlobalPooling",
        "Maximum of each channel: [N, C, H, W] -> [N, C, 1, 1].",
        mode="max",
    ),
    row("global_avg_pool2d(input)", "GlobalPooling", "Mean of each channel: [N, C, H, W] -> [N, C, 1, 1].", mode="avg"),
    row(
        "max_pool_nd(input, kernel_size, stride=kernel_size, padding, dilation, *, ceil_mode, engine)",
        "PoolingND",
        """The maximum of each window, as torch.nn.functional.max_pool1d, max_pool2d and max_pool3d.

        input: [N, C, ...] with one to three dimensions of images. The result is [N, C, ...] with sizes
        (size + front + back - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or up with ceil_mode.
        kernel_size, stride: one number, or one for each dimension of images. The default stride is kernel_size.
        padding: elements that are ignored, likewise, or first those in front of all dimensions and then those behind
        them.
        """,
        mode="max",
    ),
    row(
        "max_pool_nd_with_indices(input, kernel_size, stride=kernel_size, padding, dilation, *, ceil_mode, engine)"
        " -> tuple",
        "PoolingND",
        """The maximum of each window and its position: as `max_pool_nd`, with PyTorch's return_indices.

        The positions are int64 and of the result's shape. They count in the flattened image of each channel.
        """,
        mode="max",
        return_indices=True,
    ),
    row(
        "avg_pool_nd(input, kernel_size, stride=kernel_size, padding, ceil_mode, count_include_pad=True, "
        "divisor_override=None, *, engine)",
        "PoolingND",
        """The mean of each window, as torch.nn.functional.avg_pool1d, avg_pool2d and avg_pool3d.

        input: [N, C, ...] with one to three dimensions of images. Sizes and other keywords are those of `max_pool_nd`.
        count_include_pad: whether the padding's zeros count in the mean (the default in network JSON is false).
        divisor_override: what each window's sum is divided by, in place of its number of elements.
        """,
        mode="avg",
    ),
    row(
        "adaptive_avg_pool(input, output_size, *, engine)",
        "AdaptivePooling",
        """Means of windows that share images evenly, as torch.nn.functional.adaptive_avg_pool1d, 2d and 3d.

        input: [N, C, ...] with one to three dimensions of images. The result is [N, C, ...] of sizes output_size.
        Window i of a dimension goes from i size / output_size, rounded down, to (i + 1) size / output_size, rounded up.
        output_size: one number, or one for each dimension of images. None (or -1) in a list keeps the size that it has.
        """,
        mode="avg",
    ),
    row(
        "adaptive_max_pool(input, output_size, *, engine)",
        "AdaptivePooling",
        """Maxima of windows that share images evenly, as torch.nn.functional.adaptive_max_pool1d, 2d and 3d.

        Shapes and windows are those of `adaptive_avg_pool`.
        output_size: as of `adaptive_avg_pool`.
        """,
        mode="max",
    ),
    row(
        "adaptive_max_pool_with_indices(input, output_size, *, engine) -> tuple",
        "AdaptivePooling",
        """The maxima of `adaptive_max_pool` and their positions, which are those of `max_pool_nd_with_indices`.

        output_size: as of `adaptive_avg_pool`.
        """,
        mode="max",
        return_indices=True,
    ),
    row(
        "grid_sample(input, grid, mode, padding_mode, align_corners, *, engine)",
        "GridSample",
        """Samples images at the places in a grid, as torch.nn.functional.grid_sample of images of two dimensions.

        input: [N, C, H, W].
        grid: [N, OH, OW, 2] of the same dtype, places as x and y from -1 to 1. The result is [N, C, OH, OW].
        mode: "bilinear", "nearest" or "bicubic".
        padding_mode: what lies outside of images, "zeros", "border" (the nearest pixel) or "reflection".
        """,
    ),
    row(
        "unfold(input, kernel_size: kernel, dilation: dilate, padding: pad, stride, *, engine)",
        "Unfold",
        """The windows of images as columns of a matrix (im2col), as torch.nn.functional.unfold.

        input: [N, C, H, W]. The result is [N, C kernel_height kernel_width, windows].
        kernel_size, dilation, padding, stride: one number or [height, width].
        """,
    ),
    row(
        "fold(input, output_size: output, kernel_size: kernel, dilation: dilate, padding: pad, stride, *, engine)",
        "Fold",
        """The images of which `unfold` has made columns, added where windows overlap, as torch.nn.functional.fold.

        input: [N, C kernel_height kernel_width, windows]. The result is [N, C, *output_size].
        output_size, kernel_size, dilation, padding, stride: one number or [height, width].
        """,
    ),
    row(
        "resize(input, size: output, scale_factor: scales, *, mode: method, align_corners, antialias, engine)",
        "Resize",
        """Resizes images of one to three dimensions, as torch.nn.functional.interpolate in all modes but "area".

        input: [N, C, ...]. The result is [N, C, ...] of sizes `size`, or of sizes size scale_factor, rounded down.
        size, scale_factor: one number, or one for each dimension of images. One of them is needed. If both are given,
        positions come from scale_factor.
        mode: "nearest", "nearest-exact", "linear" (PyTorch's "linear", "bilinear" and "trilinear") or "cubic"
        (PyTorch's "bicubic").
        """,
    ),
]

LINES = [
    row(
        "argmax(input, dim=None, keepdim)",
        "ArgReduce",
        """The int64 positions of maxima along a dimension, as torch.argmax. Without dim, that of the flattened input.

        Of equal elements it is the first, and a NaN comes before all numbers.
        """,
        method="max",
        values=False,
    ),
    row(
        "argmin(input, dim=None, keepdim)",
        "ArgReduce",
        """The int64 positions of minima along a dimension, as torch.argmin. Without dim, that of the flattened input.

        Of equal elements it is the first, and a NaN comes before all numbers.
        """,
        method="min",
        values=False,
    ),
    row(
        "max(input, dim=required, keepdim) -> tuple",
        "ArgReduce",
        """The maxima along a dimension and their int64 positions, as torch.max(input, dim).

        `argmax` describes positions. The gradient goes to the elements at these positions.
        """,
        method="max",
    ),
    row(
        "min(input, dim=required, keepdim) -> tuple",
        "ArgReduce",
        """The minima along a dimension and their int64 positions, as torch.min(input, dim).

        `argmin` describes positions. The gradient goes to the elements at these positions.
        """,
        method="min",
    ),
    row(
        "cumsum(input, dim=required, *, dtype, reverse, exclusive)",
        "Scan",
        """Running sums along a dimension, as torch.cumsum: for each element the sum of the line up to and with it.

        exclusive: whether an element itself does not count, so that sums begin with 0.
        dtype: the integer dtype in which integers are summed. Without it the result has the input's dtype (in PyTorch
        sums of integers are int64).
        """,
        method="sum",
    ),
    row(
        "cumprod(input, dim=required, *, dtype, reverse, exclusive)",
        "Scan",
        """Running products along a dimension, as torch.cumprod.

        exclusive: whether an element itself does not count, so that products begin with 1.
        dtype: as of `cumsum`.
        """,
        method="prod",
    ),
    row(
        "cummax(input, dim=required, *, reverse) -> tuple",
        "Scan",
        """Running maxima along a dimension and their int64 positions, as torch.cummax.

        Of equal elements the position is that of the last.
        """,
        method="max",
    ),
    row(
        "cummin(input, dim=required, *, reverse) -> tuple",
        "Scan",
        """Running minima along a dimension and their int64 positions, as torch.cummin.

        Of equal elements the position is that of the last.
        """,
        method="min",
    ),
    row(
        "logcumsumexp(input, dim=required, *, reverse)",
        "Scan",
        """The logarithms of running sums of exp(x) along a dimension, as torch.logcumsumexp.

        No exponential overflows.
        """,
        method="logsumexp",
    ),
    row(
        "nonzero(input, *, size=None, fill_value: fill, flat) -> tuple",
        "Nonzero",
        """The positions of the elements that are not 0, as torch.nonzero_static, and how many elements these are.

        Returns (positions, count). positions: int64 of shape [size, dimensions of the input], in row-major order, with
        rows of fill_value behind the last. count: int64 of shape [1], which may be more than size.
        size: the number of rows; without it as many as the input has elements.
        flat: whether positions have shape [size] and count in the flattened input.
        """,
        eager="The call does not wait to learn the count: `positions[: count.item()]` is torch.nonzero, and waits.",
    ),
    row(
        "topk(input, k, dim, largest, sorted) -> tuple",
        "TopK",
        """The largest or smallest k elements along a dimension and their positions, as torch.topk.

        They come in order, and of equal elements the one in front comes first.
        largest: whether these are the largest elements or the smallest.
        """,
    ),
    row(
        "sort(input, dim, descending) -> tuple",
        "Sort",
        "Sorted elements along a dimension and their positions, as torch.sort with stable=True.",
    ),
]

MOVEMENT = [
    row(
        "split(input, parts, dim=0) -> tuple",
        "Split",
        "Cuts a tensor into equal parts along a dimension, as numpy.split; a negative dim counts from the end.",
        only="ops",
    ),
    row(
        "pad(input, pads, *, mode, value)",
        "Pad",
        """Adds elements at the borders.

        pads: elements in front and behind, from the last dimension backward; negative ones crop.
        mode: "constant" (of `value`), "reflect", "replicate" or "circular".
        """,
        only="nn",
    ),
    row("flatten(input)", "Flatten", "[N, ...] -> [N, product of the rest]."),
    row("reshape(input, shape: dims)", "Reshape", "The same elements in the same order, in another shape."),
    row(
        "squeeze(input, dim: dims)",
        "Squeeze",
        """Drops dimensions of size 1: all, or those in dim. Dimensions of other sizes stay.

        dim: one or several dimensions.
        """,
        only="ops",
    ),
    row(
        "transpose(input, dim0, dim1)",
        "Transpose",
        """Exchanges two dimensions.

        dim0, dim1: the two dimensions.
        """,
    ),
    row(
        "permute(input, dims=required)",
        "Transpose",
        "Permutes dimensions: dimension i of the result is dimension dims[i] of the input.",
    ),
    row(
        "flip(input, dims=required)",
        "Flip",
        "Reverses the order of elements along one or more dimensions, as torch.flip; negative ones count from the end.",
    ),
    row(
        "cast(input, dtype)",
        "Cast",
        """Converts values to another dtype ("float32", numpy.float16, ...) as C does, but floats saturate as integers.

        Raises TypeError if tensors do not have that dtype.
        """,
    ),
    row(
        "gather(input, dim=required, index)",
        "Gather",
        """Elements at positions along a dimension, as torch.gather. An index below 0 counts from the end.

        dim: the dimension that is indexed.
        """,
        eager="""
        An index out of range raises InvalidArgumentError, too. On OpenCL devices the next call that waits raises it,
        such as numpy() of the result.
        """,
        mode="elements",
    ),
    row(
        "index_select(input, dim=required, index)",
        "Gather",
        """Rows of a dimension, as torch.index_select; the index may have any shape, which takes the dimension's place.

        dim: the dimension that is indexed.
        """,
        eager="An index out of range raises as of `gather`.",
        mode="rows",
    ),
    row(
        "gather_nd(input, index, *, batch_dims)",
        "Gather",
        """Slices at the tuples in the index's last dimension, as input[tuple(index.unbind(-1))] in PyTorch.

        batch_dims: leading dimensions that input and index have in common.
        """,
        eager="An index out of range raises as of `gather`.",
        mode="tuples",
    ),
    row(
        "scatter(input, dim=required, index, src, *, reduction)",
        "Scatter",
        """A copy of the input with elements of src at positions along a dimension, as torch.scatter.

        dim: the dimension that is indexed.
        reduction: "none" (of several elements for one place the last counts), "add", "mul", "max" or "min". Results are
        the same in every run.
        """,
        eager="An index out of range raises as of `gather`.",
        mode="elements",
    ),
    row(
        "scatter_nd(input, index, src, *, batch_dims, reduction)",
        "Scatter",
        """The same as `scatter`, of slices at the tuples in the index's last dimension.

        batch_dims: leading dimensions that input and index have in common.
        reduction: as of `scatter`.
        """,
        mode="tuples",
    ),
]

SEQUENCES = [
    row(
        "attention(query, key, value, attn_mask=None, *, dropout_p, is_causal, scale=None, enable_gqa, lower_right, "
        "sliding_window=None, softcap, training, seed, step, stream=None, precision, engine)",
        "Attention",
        """softmax(scale query key^T + attn_mask) value, as torch.nn.functional.scaled_dot_product_attention.

        query: [..., L, D]. key: [..., S, D]. value: [..., S, E]. The result is [..., L, E].
        attn_mask: broadcasts to [..., L, S]. A float mask is added. A bool mask is True for positions that take part.
            Integers are cumulative lengths, int32 or int64 [sequences + 1], or [2, sequences + 1] for queries and keys:
            sequence n has the positions from lengths[n] to lengths[n + 1], and attends only to itself (as in PyTorch's
            varlen_attn).
        scale: the default is 1 / sqrt(D).
        is_causal: position i attends only to positions up to i.
        enable_gqa: several heads of the query (dimension -3) share one head of key and value.
        lower_right: for is_causal and sliding_window, the last query stands at the last position, as where keys are
            cached (PyTorch's causal_lower_right), and not the first one at the first.
        sliding_window: w: position i attends only to positions above i - w, as in Hugging Face's models.
        softcap: c: scores s become c tanh(s / c) before the mask. 0: they stay.
        dropout_p: in training, the share of weights that become 0 (PyTorch's function also drops outside training).
        stream: as of `dropout`.
        """,
        eager="seed, step: as of `dropout`.",
    ),
    row(
        "rotary_embedding(input, cos, sin, positions=None, *, interleaved, rotary_dim)",
        "RotaryEmbedding",
        """Turns pairs of features by angles that depend on the position.

        input: [..., features]. cos, sin: [..., rotary_dim / 2], which broadcast to the input but for its last size.
        positions: rows of tables cos and sin [positions, rotary_dim / 2], of an integer dtype.
        """,
    ),
]

PARAMETERS = [
    with_params(
        "linear_cross_entropy(input, target, weight, bias=None, *, reduction, ignore_index=None, chunk_bytes, "
        "precision, engine)",
        "LinearCrossEntropy",
        """The cross entropy of input weight^T + bias and labels, without all logits in memory at once.

        input: [..., features]. weight: [classes, features]. bias: [classes].
        target: labels [...] from 0 to classes - 1; one that is out of range has a loss of 0.
        reduction: "mean" or "sum" over the labels, [1], or "none", [...].
        """,
        derive="linear_cross_entropy",
    ),
    with_params(
        "conv2d(input, weight, bias=None, *, stride, padding|str, dilation, groups, activation=None, precision, "
        "engine)",
        "Convolution",
        """Convolution of images, as torch.nn.functional.conv2d.

        input: [N, C, H, W]. weight: [O, C / groups, KH, KW]. bias: [O]. The result is [N, O, OH, OW] with
        OH = (H + top + bottom - dilation (KH - 1) - 1) / stride + 1, rounded down.
        stride, dilation: pixels, one number or [height, width].
        padding: pixels of zeros, one number, [height, width] or [top, left, bottom, right], or "valid" (none), or
        "same" (the result has the input's size; requires stride 1).
        groups: number of groups of channels, which are convolved separately.
        activation: the name of a function that is applied to the result, as "relu" (docs/json.md lists them).
        """,
        derive="convolution",
    ),
    with_params(
        "conv_transpose2d(input, weight, bias=None, *, stride, padding, output_padding, groups, dilation, "
        "activation=None, precision, engine)",
        "TransposedConvolution",
        """Transposed convolution of images, as torch.nn.functional.conv_transpose2d.

        input: [N, C, H, W]. weight: [C, O / groups, KH, KW]. bias: [O]. The result is [N, O, OH, OW] with
        OH = (H - 1) stride - top - bottom + dilation (KH - 1) + output_padding + 1.
        stride, dilation, output_padding: pixels, one number or [height, width]. output_padding must be less than stride
        or dilation.
        padding: pixels that are cut from the result, one number, [height, width] or [top, left, bottom, right].
        groups, activation: as of `conv2d`.
        """,
        derive="transposed_convolution",
    ),
    with_params(
        "conv_nd(input, weight, bias=None, *, stride, padding|str, dilation, groups, precision, engine)",
        "Convolution",
        """Convolution of images of one to three dimensions, as torch.nn.functional.conv1d, conv2d and conv3d.

        input: [N, C, ...]. weight: [O, C / groups, ...], whose last sizes are the kernel's. bias: [O]. The result is
        [N, O, ...] with sizes (size + front + back - dilation (kernel - 1) - 1) / stride + 1, rounded down.
        stride, dilation: one number, or one for each dimension of images.
        padding: elements of zeros, likewise, or first those in front of all dimensions and then those behind them, or
        "valid" (none), or "same" (the result has the input's size; requires stride 1).
        groups: number of groups of channels, which are convolved separately.
        """,
        derive="convolution_nd",
    ),
    with_params(
        "conv_transpose_nd(input, weight, bias=None, *, stride, padding, output_padding, groups, dilation, precision, "
        "engine)",
        "TransposedConvolution",
        """Transposed convolution of one to three dimensions, as torch.nn.functional.conv_transpose1d, 2d and 3d.

        input: [N, C, ...]. weight: [C, O / groups, ...], whose last sizes are the kernel's. bias: [O]. The result is
        [N, O, ...] with sizes (size - 1) stride - front - back + dilation (kernel - 1) + output_padding + 1.
        stride, dilation, output_padding: one number, or one for each dimension of images. output_padding must be less
        than stride or dilation.
        padding: elements that are cut from the result, likewise, or first those in front of all dimensions and then
        those behind them.
        groups: as of `conv_nd`.
        """,
        derive="transposed_convolution_nd",
    ),
    with_params(
        "batch_norm(input, running_mean, running_var, weight=None, bias=None, *, training, momentum, eps, "
        "use_global_stats, engine)",
        "BatchNorm",
        """Normalises each channel, as torch.nn.functional.batch_norm.

        input: [N, C, ...]. running_mean, running_var, weight, bias: [C]. weight and bias must be given together.
        In training it normalises by the batch's mean and variance, and updates the running statistics in place:
        momentum is the share of the new batch. Otherwise, and with use_global_stats, it normalises by the running
        statistics.
        """,
        derive="batch_norm",
    ),
    with_params(
        "layer_norm(input, normalized_shape=required, weight=None, bias=None, *, eps, engine)",
        "LayerNorm",
        """Normalises over the last dimensions, as torch.nn.functional.layer_norm.

        input: [..., *normalized_shape]. weight, bias: normalized_shape. A bias requires a weight.
        normalized_shape: one size, or those of several last dimensions.
        """,
        derive="layer_norm",
    ),
    with_params(
        "rms_norm(input, normalized_shape=required, weight=None, *, eps, engine)",
        "RMSNorm",
        """Divides by the root of the mean of squares over the last dimensions, as torch.nn.functional.rms_norm.

        input: [..., *normalized_shape]. weight: normalized_shape.
        normalized_shape: one size, or those of several last dimensions.
        """,
        derive="rms_norm",
    ),
    with_params(
        "group_norm(input, num_groups, weight=None, bias=None, *, eps, engine)",
        "GroupNorm",
        """Normalises groups of channels, as torch.nn.functional.group_norm.

        input: [N, C, ...], where C is a multiple of num_groups. weight, bias: [C], both or neither.
        """,
        derive="group_norm",
    ),
    with_params(
        "inner_product(input, weight, bias=None, *, activation=None, precision, engine)",
        "InnerProduct",
        """A dense layer over all dimensions but the batch: activation(flatten(input) weight^T + bias).

        input: [N, ...], which is flattened to [N, I]. weight: [O, I]. bias: [O]. The result is [N, O]. `linear` keeps
        the dimensions in between.
        activation: the name of a function that is applied to the result.
        """,
        derive="inner_product",
    ),
    with_params(
        "prelu(input, weight)",
        "PReLU",
        "x if x > 0, else weight x. input: [N, C, ...]. weight: [1] or [C].",
        derive="prelu",
    ),
    with_params(
        "embedding(input, weight, *, padding_idx)",
        "Embedding",
        """Looks up rows of a table, as torch.nn.functional.embedding.

        input: indices of rows, of an integer dtype and any shape [...]. weight: [rows, features]. The result is
        [..., features].
        padding_idx: a row that gets no gradient; negative numbers count from the last row.

        Raises InvalidArgumentError (a ValueError) as gather. An index below 0 is out of range, too.
        """,
        derive="embedding",
    ),
]

FUNCTIONS = [*ACTIVATIONS, *ARITHMETIC, *NORMS, *POOLING, *LINES, *MOVEMENT, *SEQUENCES, *PARAMETERS]
OF_OPS = [each for each in FUNCTIONS if each.only != "nn"]
OF_NN = [each for each in FUNCTIONS if each.only != "ops"]

#: Layers that are functions without their tensors.
LAYERS_OF_FUNCTIONS = {
    "ReLU": "relu",
    "ReLU6": "relu6",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "SiLU": "silu",
    "Hardswish": "hardswish",
    "Hardsigmoid": "hardsigmoid",
    "LeakyReLU": "leaky_relu",
    "ELU": "elu",
    "Softplus": "softplus",
    "Mish": "mish",
    "Hardtanh": "hardtanh",
    "GatedActivation": "gated_activation",
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Dropout": "dropout",
    "MaxPool2d": "max_pool2d",
    "AvgPool2d": "avg_pool2d",
    "GlobalAvgPool2d": "global_avg_pool2d",
    "GlobalMaxPool2d": "global_max_pool2d",
    "MaxPoolNd": "max_pool_nd",
    "AvgPoolNd": "avg_pool_nd",
    "AdaptiveAvgPool": "adaptive_avg_pool",
    "AdaptiveMaxPool": "adaptive_max_pool",
    "Unfold": "unfold",
    "Fold": "fold",
    "Flatten": "flatten",
    "Reshape": "reshape",
    "Pad": "pad",
}

CONVOLUTION_ORDER = ("channels_in", "channels_out", "kernel_size", "stride", "padding", "dilation", "groups", "bias")
TRANSPOSED_ORDER = (*CONVOLUTION_ORDER[:5], "output_padding", "groups", "bias", "dilation")

OWN_LAYERS = [
    Row(
        "Activation(function: activation, *, alpha, beta)",
        "Activation",
        """Applies a function of docs/json.md, such as ``"gelu"``, to each element.

        alpha, beta: its parameters.
        """,
        {},
        base="ActivationLayer",
    ),
    Row(
        "PReLU(num_parameters, init)",
        "PReLU",
        "x if x > 0, else weight x. Parameter: weight [num_parameters].",
        {},
        prefix="prelu",
    ),
    Row(
        "Conv2d(channels_out, kernel_size, *, stride, padding|str, dilation, groups, bias, activation, "
        "channels_in=None)",
        "Convolution",
        """A convolution of images: [N, C, H, W] -> [N, channels_out, H', W'].

        Parameters: weight [channels_out, C / groups, kh, kw], and bias [channels_out].
        kernel_size, stride, dilation: one integer or (height, width).
        padding: likewise, or (top, left, bottom, right), or "same", which keeps the image's size, or "valid".
        activation: a function of docs/json.md that is applied to the result.
        Arguments in PyTorch's order are taken too: Conv2d(channels_in, channels_out, kernel_size, stride, padding,
        dilation, groups, bias).
        """,
        {},
        base="Convolution2d",
        order=CONVOLUTION_ORDER,
    ),
    Row(
        "ConvTranspose2d(channels_out, kernel_size, *, stride, padding, output_padding, dilation, groups, bias, "
        "activation, channels_in=None)",
        "TransposedConvolution",
        """A transposed convolution: [N, C, H, W] -> [N, channels_out, H', W'], larger by the factor `stride`.

        Parameters: weight [C, channels_out / groups, kh, kw], and bias [channels_out].
        kernel_size, stride, padding, dilation, groups, activation: as of Conv2d.
        output_padding: rows and columns that are added at the end, fewer than the stride or the dilation.
        Arguments in PyTorch's order are taken too: ConvTranspose2d(channels_in, channels_out, kernel_size, stride,
        padding, output_padding, groups, bias, dilation).
        """,
        {},
        order=TRANSPOSED_ORDER,
    ),
    Row(
        "ConvNd(channels_out, kernel_size, *, stride, padding|str, dilation, groups, bias, channels_in=None)",
        "Convolution",
        """A convolution of images of one to three dimensions: [N, C, ...] -> [N, channels_out, ...].

        Parameters: weight [channels_out, C / groups, *kernel_size], and bias [channels_out].
        kernel_size, stride, dilation: one integer, or one for each dimension of images.
        padding: likewise, or a list of those in front of all dimensions and then those behind them, or "same", which
        keeps the image's size, or "valid".
        Arguments in PyTorch's order are taken too, as by Conv2d.
        """,
        {},
        base="ConvolutionNd",
        order=CONVOLUTION_ORDER,
    ),
    Row(
        "ConvTransposeNd(channels_out, kernel_size, *, stride, padding, output_padding, dilation, groups, bias, "
        "channels_in=None)",
        "TransposedConvolution",
        """A transposed convolution of one to three dimensions: [N, C, ...] -> [N, channels_out, ...].

        Parameters: weight [C, channels_out / groups, *kernel_size], and bias [channels_out].
        kernel_size, stride, padding, dilation: as of ConvNd.
        output_padding: elements that are added at the end, fewer than the stride or the dilation.
        Arguments in PyTorch's order are taken too, as by ConvTranspose2d.
        """,
        {},
        order=TRANSPOSED_ORDER,
    ),
    Row(
        "Linear(features: outputs, *, bias, activation, features_in: inputs=None)",
        "InnerProduct",
        """A linear layer over the last dimension: [N, ..., features_in] -> [N, ..., features].

        Parameters: weight [features, features_in], and bias [features]. For images, apply `Flatten` first. All
        dimensions but the last may have other sizes when the net is reshaped. PyTorch's order is taken too:
        Linear(features_in, features, bias).
        activation: a function of docs/json.md that is applied to the result.
        """,
        {},
        base="LastDimension",
        order=("features_in", "features", "bias"),
    ),
    Row(
        "Embedding(num_embeddings, embedding_dim, padding_idx)",
        "Embedding",
        """Looks up rows of a table by integer indices: [...] -> [..., embedding_dim].

        Parameter: weight [num_embeddings, embedding_dim].
        """,
        {},
        base="OfIndices",
    ),
    Row(
        "BatchNorm(features=None, eps, momentum, affine, *, use_global_stats)",
        "BatchNorm",
        """Normalises each channel over the batch: [N, C, ...], with at least two dimensions.

        Parameters, each [C]: running mean and running variance, which forward changes in training, and with `affine`
        also scale and offset.
        """,
        {},
    ),
    Row(
        "LayerNorm(normalized_shape, eps, elementwise_affine, bias, *, dims)",
        "LayerNorm",
        """Normalises each sample over its last `dims` dimensions, or over `normalized_shape`, which are their sizes.

        Parameters, each of that shape: weight if `elementwise_affine`, and bias if also `bias`.
        """,
        {},
    ),
    Row(
        "RMSNorm(normalized_shape, eps, elementwise_affine, *, dims)",
        "RMSNorm",
        """Divides each sample by the root of the mean of squares over its last `dims` dimensions.

        `normalized_shape` are their sizes in place of `dims`.
        Parameter, of that shape: weight if `elementwise_affine`.
        """,
        {},
    ),
    Row(
        "GroupNorm(num_groups, num_channels=None, eps, affine)",
        "GroupNorm",
        "Normalises groups of channels of each sample: [N, C, ...]. Parameters: weight [C] and bias [C].",
        {},
    ),
]

#: Layers by name.
LAYERS = [
    *(
        (name, next(row for row in OF_NN if row.signature.startswith(f"{of}(")))
        for name, of in LAYERS_OF_FUNCTIONS.items()
    ),
    *((row.signature.partition("(")[0], row) for row in OWN_LAYERS),
]
