# SPDX-License-Identifier: MIT
"""Operators as functions: eager, asynchronous, on the device of their tensors.

    y = dlprim.ops.conv2d(x, weight, bias, stride=2, padding=1, activation="relu")
    dx, dweight, dbias = dlprim.ops.grad(dlprim.ops.conv2d, dy, x, weight, bias, stride=2, padding=1, activation="relu")

Names and keywords are PyTorch's where it has the function, else those of network JSON (docs/json.md). Every operator of
network JSON can also be called by its type and options there: `call` and `backward`.

Results are new tensors, or are written to `out`, of the result's shape and dtype, without gaps, which is then what the
function returns. Strided views among the operands are copied first: permuted dimensions on the device, others through
the host, and the call waits for that. Otherwise no call waits for an OpenCL device.

`precision` ("fp32", "tf32", "fp16", "bf16") is a permission for products to round their factors; `engine` names the
engine that must compute the operator.

Errors: InvalidArgumentError (a ValueError) where shapes, dtypes, options or an engine do not fit, and where tensors of
two contexts meet; OutOfMemoryError; TypeError on an argument of a wrong Python type and on an option that the function
does not have, with the nearest that it has.

Threads: functions may be called from several threads. Calls on one context run one after the other; while they run
other Python threads go on. A tensor of `out`, or a running statistic, that one thread's call writes must not be used by
another's before that call has returned.
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
    pad,
    permute,
    reshape,
    slice,
    split,
    squeeze,
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
    "selu",
    "sigmoid",
    "silu",
    "slice",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "sub",
    "sum",
    "tanh",
    "tanhshrink",
    "threshold",
    "transpose",
]
