# SPDX-License-Identifier: MIT
"""Operators as functions: eager, asynchronous, on the device of their tensors.

    y = dlprim.ops.conv2d(x, weight, bias, stride=2, padding=1, activation="relu")
    dx, dweight, dbias = dlprim.ops.grad(dlprim.ops.conv2d, dy, x, weight, bias, stride=2, padding=1, activation="relu")

If PyTorch has the function, names and keywords are PyTorch's. Otherwise they are those of network JSON (docs/json.md).
Every operator of network JSON can also be called by its type and its options there: `call` and `backward`.

Results are new tensors, or are written to `out` if it is given, which is then also what the function returns. `out`
must have the result's shape and dtype. It may be an operand or overlap one: the result is the same as in a new tensor.
Two tensors of `out` must not overlap. Operands and `out` may be strided views. What an operator cannot read or write
as it lies is copied on the device. No call waits for an OpenCL device.

`precision` ("fp32", "tf32", "fp16", "bf16") permits products to round their factors. `engine` names the engine that
must compute the operator.

Errors: InvalidArgumentError (a ValueError) if shapes, dtypes, options or an engine do not fit, or if tensors belong to
two contexts; OutOfMemoryError; TypeError if an argument has a wrong Python type or the function has no such option. The
message then offers the nearest option.

Threads: functions may be called from several threads. Calls on one context run one after the other, and other Python
threads continue meanwhile. While a call writes to a tensor (`out` or a running statistic), other threads must not use
that tensor before the call has returned.
"""

from ._activations import (
    abs,
    activation,
    binarize,
    celu,
    dropout,
    elu,
    exp,
    gelu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    identity,
    leaky_relu,
    log,
    logsigmoid,
    mish,
    neg,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    sqrt,
    square,
    tanh,
    tanhshrink,
    threshold,
)
from ._elementwise import (
    add,
    div,
    elementwise,
    maximum,
    mean,
    minimum,
    mul,
    pointwise,
    reduction,
    sub,
    sum,
)
from ._machinery import (
    backward,
    call,
    grad,
)
from ._norms import (
    batch_norm,
    cross_entropy,
    group_norm,
    layer_norm,
    log_softmax,
    mse_loss,
    nll_loss,
    softmax,
)
from ._pooling import (
    avg_pool2d,
    global_avg_pool2d,
    global_max_pool2d,
    interpolate,
    max_pool2d,
)
from ._products import (
    conv2d,
    conv_transpose2d,
    inner_product,
    linear,
    matmul,
)
from ._sequences import (
    attention,
    gru,
    lstm,
)
from ._shapes import (
    cast,
    concat,
    embedding,
    flatten,
    gather,
    gather_nd,
    index_select,
    pad,
    permute,
    reshape,
    scatter,
    scatter_nd,
    slice,
    sort,
    split,
    squeeze,
    topk,
    transpose,
)

__all__ = [
    "abs",
    "activation",
    "add",
    "attention",
    "avg_pool2d",
    "backward",
    "batch_norm",
    "binarize",
    "call",
    "cast",
    "celu",
    "concat",
    "conv2d",
    "conv_transpose2d",
    "cross_entropy",
    "div",
    "dropout",
    "elementwise",
    "elu",
    "embedding",
    "exp",
    "flatten",
    "gather",
    "gather_nd",
    "gelu",
    "global_avg_pool2d",
    "global_max_pool2d",
    "grad",
    "group_norm",
    "gru",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "identity",
    "index_select",
    "inner_product",
    "interpolate",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log",
    "log_softmax",
    "logsigmoid",
    "lstm",
    "matmul",
    "max_pool2d",
    "maximum",
    "mean",
    "minimum",
    "mish",
    "mse_loss",
    "mul",
    "neg",
    "nll_loss",
    "pad",
    "permute",
    "pointwise",
    "prelu",
    "reduction",
    "relu",
    "relu6",
    "reshape",
    "scatter",
    "scatter_nd",
    "selu",
    "sigmoid",
    "silu",
    "slice",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "sub",
    "sum",
    "tanh",
    "tanhshrink",
    "threshold",
    "topk",
    "transpose",
]
