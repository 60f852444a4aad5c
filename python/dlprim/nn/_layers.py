# SPDX-License-Identifier: MIT
"""Layers: operators with their options, called with symbols.

Sizes are written [N, C, H, W]: batch, channels, height, width. Numbers that the library deduces from the input (its
channels, its features) need not be given. Every layer also takes the keywords of LayerOptions: name, frozen, engine,
precision, params.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgumentError
from ..summary import dtype_name
from ._graph import IntOrPair, Layer, LayerOptions, Number, SingleLayer, Symbol

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


def unless(value: Any, default: Any) -> Any:
    """Returns None if the value is the library's default, so that the option is left out of the network's JSON."""
    return None if isinstance(value, type(default)) and value == default else value


def same_padding(layer: str, kernel_size: IntOrPair, stride: IntOrPair, dilation: IntOrPair) -> list[int]:
    """Pads that keep the image's size, as PyTorch's "same". If the two sides differ, the larger pad is at the end."""
    if any(step != 1 for step in pair(stride)):
        raise InvalidArgumentError(
            f'{layer}: padding="same" keeps the size of the image, so stride must be 1, not {stride}'
        )
    total = [d * (k - 1) for k, d in zip(pair(kernel_size), pair(dilation))]
    front = [t // 2 for t in total]
    return front + [t - f for t, f in zip(total, front)]


def pair(value: Any, what: str = "a size") -> list[Any]:
    """[height, width] from one number or two."""
    if isinstance(value, (int, float)):
        return [value, value]
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise InvalidArgumentError(f"{what} is {value!r}; a number or (height, width) is needed")
    return list(value)


def padding_option(
    layer: str, padding: IntOrPair | str, kernel: IntOrPair, stride: IntOrPair, dilation: IntOrPair
) -> Any:
    if isinstance(padding, str):
        if padding == "same":
            return same_padding(layer, kernel, stride, dilation)
        if padding != "valid":
            raise InvalidArgumentError(f"{layer}: padding is '{padding}'; integers, 'same' and 'valid' are possible")
        return None
    return unless(padding, 0)


class Conv2d(SingleLayer):
    """A convolution of images: [N, C, H, W] -> [N, channels_out, H', W'].

    Parameters: weight [channels_out, C / groups, kh, kw], and bias [channels_out]. `kernel_size`, `stride` and
    `dilation` are one integer or (height, width). `padding` may also be (top, left, bottom, right), or "same", which
    keeps the image's size. `activation` names a function of docs/json.md that is applied to the result.
    """

    type = "Convolution2D"

    def __init__(
        self,
        channels_out: int,
        kernel_size: IntOrPair,
        *,
        stride: IntOrPair = 1,
        padding: IntOrPair | str = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        activation: str = "identity",
        channels_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "channels_out": channels_out,
                "channels_in": channels_in,
                "kernel": kernel_size,
                "stride": unless(stride, 1),
                "pad": padding_option("Conv2d", padding, kernel_size, stride, dilation),
                "dilate": unless(dilation, 1),
                "groups": unless(groups, 1),
                "bias": unless(bias, True),
                "activation": unless(activation, "identity"),
            },
            common,
        )


class ConvTranspose2d(SingleLayer):
    """A transposed convolution: [N, C, H, W] -> [N, channels_out, H', W'], larger by the factor `stride`.

    Parameters: weight [C, channels_out / groups, kh, kw], and bias [channels_out]. `output_padding` adds rows and
    columns at the end. It must be less than the stride or the dilation.
    """

    type = "TransposedConvolution2D"

    def __init__(
        self,
        channels_out: int,
        kernel_size: IntOrPair,
        *,
        stride: IntOrPair = 1,
        padding: IntOrPair = 0,
        output_padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        activation: str = "identity",
        channels_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "channels_out": channels_out,
                "channels_in": channels_in,
                "kernel": kernel_size,
                "stride": unless(stride, 1),
                "pad": unless(padding, 0),
                "output_pad": unless(output_padding, 0),
                "dilate": unless(dilation, 1),
                "groups": unless(groups, 1),
                "bias": unless(bias, True),
                "activation": unless(activation, "identity"),
            },
            common,
        )


class Linear(SingleLayer):
    """A linear layer over the last dimension: [N, ..., features_in] -> [N, ..., features].

    Parameters: weight [features, features_in], and bias [features]. For images, apply `Flatten` first. A tensor of more
    than two dimensions is reshaped to a matrix before the product and back after it, which costs nothing.
    """

    type = "InnerProduct"

    def __init__(
        self,
        features: int,
        *,
        bias: bool = True,
        activation: str = "identity",
        features_in: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "outputs": features,
                "inputs": features_in,
                "bias": unless(bias, True),
                "activation": unless(activation, "identity"),
            },
            common,
        )

    def __call__(self, x: Symbol) -> Symbol:
        """Applies the layer: [N, ..., features_in] -> [N, ..., features]."""
        if not isinstance(x, Symbol) or x.ndim <= 2:
            return self.apply(x)[0]
        rows = Reshape((-1, x.shape[-1]))(x)
        y = self.apply(rows)[0]
        return Reshape((-1, *x.shape[1:-1], y.shape[-1]))(y)


class BatchNorm(SingleLayer):
    """Normalises each channel over the batch: [N, C, ...], with at least two dimensions.

    Parameters, each [C]: running mean and running variance, which forward changes in training, and with `affine` also
    scale and offset. `momentum` is the share of the new batch in the running statistics. With `use_global_stats`, the
    running statistics are used in training too.
    """

    type = "BatchNorm"

    def __init__(
        self,
        *,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        use_global_stats: bool = False,
        features: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "features": features,
                "eps": unless(eps, 1e-5),
                "momentum": unless(momentum, 0.1),
                "affine": unless(affine, True),
                "use_global_stats": unless(use_global_stats, False),
            },
            common,
        )


class LayerNorm(SingleLayer):
    """Normalises each sample over its last `dims` dimensions, or over `normalized_shape`, which must be their sizes.

    Parameters, each of that shape: weight if `elementwise_affine`, and bias if also `bias`.
    """

    type = "LayerNorm"

    def __init__(
        self,
        normalized_shape: int | Sequence[int] | None = None,
        *,
        dims: int = 1,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        **common: Unpack[LayerOptions],
    ) -> None:
        shape = [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape
        super().__init__(
            {
                "normalized_shape": shape,
                "dims": unless(dims, 1),
                "eps": unless(eps, 1e-5),
                "elementwise_affine": unless(elementwise_affine, True),
                "bias": unless(bias, True),
            },
            common,
        )


class GroupNorm(SingleLayer):
    """Normalises groups of channels of each sample: [N, C, ...]. Parameters: weight [C] and bias [C]."""

    type = "GroupNorm"

    def __init__(
        self,
        num_groups: int,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        num_channels: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "num_groups": num_groups,
                "num_channels": num_channels,
                "eps": unless(eps, 1e-5),
                "affine": unless(affine, True),
            },
            common,
        )


class _Pool2d(SingleLayer):
    type = "Pooling2D"


class MaxPool2d(_Pool2d):
    """The largest value of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        *,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        ceil_mode: bool = False,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "mode": "max",
                "kernel": kernel_size,
                "stride": kernel_size if stride is None else stride,
                "pad": unless(padding, 0),
                "ceil_mode": unless(ceil_mode, False),
            },
            common,
        )


class AvgPool2d(_Pool2d):
    """The mean of each window: [N, C, H, W] -> [N, C, H', W']. The default stride is the window's size.

    With `count_include_pad` (default: true, as in PyTorch), the padding's zeros count in the mean.
    """

    def __init__(
        self,
        kernel_size: IntOrPair,
        *,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "mode": "avg",
                "kernel": kernel_size,
                "stride": kernel_size if stride is None else stride,
                "pad": unless(padding, 0),
                "ceil_mode": unless(ceil_mode, False),
                "count_include_pad": unless(count_include_pad, False),
            },
            common,
        )


class GlobalAvgPool2d(SingleLayer):
    """The mean of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""

    type = "GlobalPooling"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"mode": "avg"}, common)


class GlobalMaxPool2d(SingleLayer):
    """The largest value of each channel's image: [N, C, H, W] -> [N, C, 1, 1]."""

    type = "GlobalPooling"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"mode": "max"}, common)


class Activation(SingleLayer):
    """Applies a function of docs/json.md, such as ``"gelu"``, to each element. `alpha` and `beta` are parameters."""

    type = "Activation"

    def __init__(
        self, function: str, *, alpha: float | None = None, beta: float | None = None, **common: Unpack[LayerOptions]
    ) -> None:
        super().__init__({"activation": function, "alpha": alpha, "beta": beta}, common)
        self.prefix = function if isinstance(function, str) and function else self.prefix


class ReLU(Activation):
    """max(x, 0)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("relu", **common)


class ReLU6(Activation):
    """min(max(x, 0), 6)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("relu6", **common)


class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("sigmoid", **common)


class Tanh(Activation):
    """tanh(x)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("tanh", **common)


class GELU(Activation):
    """x Phi(x), where Phi is the normal distribution function. `approximate="tanh"` approximates it by tanh."""

    def __init__(self, approximate: str = "none", **common: Unpack[LayerOptions]) -> None:
        if approximate not in ("none", "tanh"):
            raise InvalidArgumentError(f"GELU: approximate is '{approximate}'; it is 'none' or 'tanh'")
        super().__init__("gelu" if approximate == "none" else "gelu_tanh", **common)


class SiLU(Activation):
    """x sigmoid(x)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("silu", **common)


class Hardswish(Activation):
    """x min(max(x + 3, 0), 6) / 6."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("hardswish", **common)


class Hardsigmoid(Activation):
    """min(max(x / 6 + 0.5, 0), 1)."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("hardsigmoid", **common)


class LeakyReLU(Activation):
    """x if x > 0, else negative_slope x."""

    def __init__(self, negative_slope: float = 0.01, **common: Unpack[LayerOptions]) -> None:
        super().__init__("leaky_relu", alpha=negative_slope, **common)


class ELU(Activation):
    """x if x > 0, else alpha (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, **common: Unpack[LayerOptions]) -> None:
        super().__init__("elu", alpha=alpha, **common)


class Softplus(Activation):
    """log(1 + exp(beta x)) / beta; x if beta x is above `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0, **common: Unpack[LayerOptions]) -> None:
        super().__init__("softplus", alpha=beta, beta=threshold, **common)


class Mish(Activation):
    """x tanh(softplus(x))."""

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__("mish", **common)


class Hardtanh(SingleLayer):
    """min(max(x, min_val), max_val)."""

    type = "Hardtanh"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"min_val": unless(min_val, -1.0), "max_val": unless(max_val, 1.0)}, common)


class PReLU(SingleLayer):
    """x if x > 0, else weight x. Parameter: weight [num_parameters], 1 or the number of channels."""

    type = "PReLU"
    prefix = "prelu"

    def __init__(self, num_parameters: int = 1, *, init: float = 0.25, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"num_parameters": unless(num_parameters, 1), "init": unless(init, 0.25)}, common)


class Softmax(SingleLayer):
    """exp(x) / sum(exp(x)) along `dim`."""

    type = "Softmax"

    def __init__(self, dim: int = 1, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"dim": unless(dim, 1)}, common)


class LogSoftmax(SingleLayer):
    """The logarithm of softmax along `dim`."""

    type = "Softmax"

    def __init__(self, dim: int = 1, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"log": True, "dim": unless(dim, 1)}, common)


class Dropout(SingleLayer):
    """In training, sets a share `p` of the elements to 0 and divides the others by 1 - p. Otherwise it changes nothing.

    `stream`, from 0 to 2^24 - 1, selects the random numbers: two layers with the same stream drop the same elements.
    """

    type = "Dropout"

    def __init__(self, p: float = 0.5, *, stream: int | None = None, **common: Unpack[LayerOptions]) -> None:
        super().__init__({"p": unless(p, 0.5), "stream": stream}, common)


class Flatten(SingleLayer):
    """[N, ...] -> [N, features]."""

    type = "Flatten"

    def __init__(self, **common: Unpack[LayerOptions]) -> None:
        super().__init__({}, common)


class Reshape(SingleLayer):
    """The same elements in another shape. 0 keeps the input's size, and one entry may be -1, which is deduced.

    If the batch is given as 0 or -1, the network also works for other batches.
    """

    type = "Reshape"

    def __init__(self, shape: Sequence[int], **common: Unpack[LayerOptions]) -> None:
        super().__init__({"dims": shape}, common)


class Pad(SingleLayer):
    """Adds elements at the borders: `pads` in front and behind, from the last dimension backward; negative ones crop.

    `mode` is "constant" (of `value`), "reflect", "replicate" or "circular".
    """

    type = "Pad"

    def __init__(
        self, pads: Sequence[int], *, mode: str = "constant", value: float = 0.0, **common: Unpack[LayerOptions]
    ) -> None:
        super().__init__({"pads": pads, "mode": unless(mode, "constant"), "value": unless(value, 0.0)}, common)


class Upsample(SingleLayer):
    """Resizes images [N, C, H, W] to `size`, or by `scale_factor`: a number or (height, width).

    With a factor, sizes are rounded down. `mode` is "nearest", "nearest-exact" or "bilinear".
    """

    type = "Interpolation"

    def __init__(
        self,
        size: IntOrPair | None = None,
        scale_factor: Number | Sequence[Number] | None = None,
        *,
        mode: str = "nearest",
        align_corners: bool = False,
        **common: Unpack[LayerOptions],
    ) -> None:
        if (size is None) == (scale_factor is None):
            raise InvalidArgumentError("Upsample takes either size or scale_factor")
        options: dict[str, Any] = {"method": mode, "align_corners": unless(align_corners, False)}
        if size is not None:
            options["out_h"], options["out_w"] = pair(size, "Upsample: size")
        else:
            options["scale_y"], options["scale_x"] = pair(scale_factor, "Upsample: scale_factor")
        super().__init__(options, common)


class Embedding(SingleLayer):
    """Looks up rows of a table by integer indices: [...] -> [..., embedding_dim].

    Parameter: weight [num_embeddings, embedding_dim]. The row `padding_idx` gets no gradient; -1 is the last row.
    """

    type = "Embedding"

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        padding_idx: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {"num_embeddings": num_embeddings, "embedding_dim": embedding_dim, "padding_idx": padding_idx}, common
        )


class _Recurrent(Layer):
    def __init__(
        self,
        hidden_size: int,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        stream: int | None = None,
        **common: Unpack[LayerOptions],
    ) -> None:
        super().__init__(
            {
                "hidden_size": hidden_size,
                "num_layers": unless(num_layers, 1),
                "bidirectional": unless(bidirectional, False),
                "bias": unless(bias, True),
                "batch_first": unless(batch_first, False),
                "dropout": unless(dropout, 0.0),
                "stream": stream,
            },
            common,
        )


class LSTM(_Recurrent):
    """A long short-term memory over [T, N, features], or [N, T, features] with `batch_first`.

    Returns the output [T, N, D hidden_size] (D is 2 if `bidirectional`, else 1) and the last states h and c, each
    [num_layers D, N, hidden_size]. Parameters are in PyTorch's order: for each layer and direction weight_ih,
    weight_hh, bias_ih, bias_hh. `dropout` is applied in training after every layer except the last.
    """

    type = "LSTM"
    outputs = 3

    def __call__(self, x: Symbol, h0: Symbol | None = None, c0: Symbol | None = None) -> tuple[Symbol, Symbol, Symbol]:
        """Returns (output, h, c). The initial states are `h0` and `c0`, or zeros."""
        if (h0 is None) != (c0 is None):
            raise InvalidArgumentError(f"{self.title} starts from h0 and c0 or from neither")
        y, h, c = self.apply(x) if h0 is None or c0 is None else self.apply(x, h0, c0)
        return y, h, c


class GRU(_Recurrent):
    """A gated recurrent unit over [T, N, features], or [N, T, features] with `batch_first`.

    Returns the output [T, N, D hidden_size] (D is 2 if `bidirectional`, else 1) and the last state h [num_layers D, N,
    hidden_size]. Parameters are those of LSTM.
    """

    type = "GRU"
    outputs = 2

    def __call__(self, x: Symbol, h0: Symbol | None = None) -> tuple[Symbol, Symbol]:
        """Returns (output, h). The initial state is `h0`, or zeros."""
        y, h = self.apply(x) if h0 is None else self.apply(x, h0)
        return y, h


class Parameter(Layer):
    """A tensor that belongs to the network. Called without arguments, it returns a symbol.

    All elements start as `value`, unless a file or an array sets them. `trainable=False` makes it a constant.
    """

    type = "Parameter"

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        dtype: Any = "float32",
        trainable: bool = True,
        value: float = 0.0,
        **common: Unpack[LayerOptions],
    ) -> None:
        name = dtype_name(dtype)
        super().__init__(
            {
                "shape": shape,
                "dtype": unless(name, "float32"),
                "is_trainable": unless(trainable, True),
                "value": unless(value, 0.0),
            },
            common,
        )

    def __call__(self) -> Symbol:
        """The parameter as a symbol."""
        return self.apply()[0]


class SoftmaxWithLoss(Layer):
    """The mean over the batch of -log softmax(logits)[label]: logits [N, C] and labels [N] -> [1].

    `label` is the symbol of the labels, which are integers from 0 to C - 1, or the name of the input that is made for
    them.
    """

    type = "SoftmaxWithLoss"
    prefix = "loss"

    def __init__(self, label: str | Symbol = "label", *, weight: float = 1.0, **common: Unpack[LayerOptions]) -> None:
        super().__init__({}, common)
        self.label, self.weight = label, weight

    def __call__(self, logits: Symbol) -> Symbol:
        """The loss, [1]."""
        shape = logits.shape[:1] if isinstance(logits, Symbol) else ()
        return as_loss(self.apply(logits, target_of(self.label, shape, "int32"))[0], self.weight)


def target_of(target: str | Symbol, shape: tuple[int, ...], dtype: str) -> Symbol:
    """The symbol itself, or an input of this name, which the model adds to its inputs."""
    from ._graph import make_input

    if isinstance(target, Symbol):
        return target
    made = make_input(target, shape, dtype)
    made._implicit = True
    return made


def as_loss(x: Symbol, weight: float) -> Symbol:
    """The symbol, marked as a loss of this weight."""
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise TypeError(f"a loss's weight is {weight!r}; a number is needed")
    marked = Symbol(x._record, x._call, x._index)
    marked._name, marked._implicit, marked._loss_weight = x._name, x._implicit, float(weight)
    return marked


__all__ = [
    "ELU", "GELU", "GRU", "LSTM", "Activation", "AvgPool2d", "BatchNorm", "Conv2d", "ConvTranspose2d", "Dropout",
    "Embedding", "Flatten", "GlobalAvgPool2d", "GlobalMaxPool2d", "GroupNorm", "Hardsigmoid", "Hardswish",
    "Hardtanh", "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "MaxPool2d", "Mish", "PReLU", "Pad", "Parameter",
    "ReLU", "ReLU6", "Reshape", "SiLU", "Sigmoid", "Softmax", "SoftmaxWithLoss", "Softplus", "Tanh", "Upsample",
]  # fmt: skip
