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

from . import _declared
from ._declared import *  # noqa: F403  # whose __all__ is made of _operators/table.py
from ._machinery import backward, call, grad
from ._pointwise import pointwise
from ._sequences import gru, lstm
from ._shapes import concat, pad, slice
from ._special import gelu, interpolate, linear

__all__ = [
    "backward",
    "call",
    "concat",
    "gelu",
    "grad",
    "gru",
    "interpolate",
    "linear",
    "lstm",
    "pad",
    "pointwise",
    "slice",
]
__all__ += _declared.__all__
