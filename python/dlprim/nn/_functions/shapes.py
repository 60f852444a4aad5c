# SPDX-License-Identifier: MIT
"""Functions that cut, join, order and convert tensors, and indices of symbols."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError
from .. import _layers as layers
from .._declared import reshape
from .._graph import Generic, LayerOptions, Symbol, describe_value
from .._options import unless
from .._unpack import Unpack
from .arguments import as_index


def concat(tensors: Sequence[Symbol], dim: int = 1, **common: Unpack[LayerOptions]) -> Symbol:
    """Concatenates tensors along `dim`. Their other dimensions must agree."""
    if isinstance(tensors, Symbol):
        raise TypeError("nn.concat takes a list of tensors")
    return Generic("Concat", "concat", {"dim": unless(dim, 1)}, common).apply(*tensors)[0]


def split(x: Symbol, parts: int, dim: int = 1, **common: Unpack[LayerOptions]) -> tuple[Symbol, ...]:
    """Cuts `dim` into `parts` equal pieces."""
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise TypeError(f"nn.split: parts is {describe_value(parts)}; the number of equal pieces is needed")
    return Generic("Split", "split", {"parts": parts, "dim": unless(dim, 1)}, common, max(parts, 1)).apply(x)


def slice(x: Symbol, dim: int = 1, begin: int = 0, end: int | None = None, **common: Unpack[LayerOptions]) -> Symbol:
    """Elements from `begin` to `end` - 1 of `dim`. ``x[:, 1:3]`` is another way to write it.

    Negative numbers count from the end. Without `end`, the slice goes to the end of the dimension.
    """
    if end is not None and as_index(end) < 0 and -x.ndim <= dim < x.ndim:
        end += x.shape[dim]  # in JSON -1 is the end itself
    return Generic("Slice", "slice", {"dim": unless(dim, 1), "begin": unless(begin, 0), "end": end}, common).apply(x)[0]


def getitem(x: Symbol, key: Any) -> Symbol:
    """x[key]: integers, ranges of step 1, ``...`` and ``None``."""
    keys = list(key) if isinstance(key, tuple) else [key]
    given = [k for k in keys if k is not None and k is not Ellipsis]
    if len(given) > x.ndim:
        raise InvalidArgumentError(f"{len(given)} indices are given for a tensor of shape {x.shape}")
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    if any(k is Ellipsis for k in keys[at + 1 :]):
        raise InvalidArgumentError("an index holds '...' twice")
    keys[at : at + 1] = [builtins.slice(None)] * (x.ndim - len(given))
    y, dim = x, 0
    sizes: list[int] = []  # of the result; -1 means the batch
    dropped: list[int] = []
    for k in keys:
        if k is None:
            sizes.append(1)
            continue
        if isinstance(k, builtins.slice):
            y = _range(y, dim, k)
            whole_batch = dim == 0 and y.shape[0] == x.shape[0]
            sizes.append(-1 if whole_batch else y.shape[dim])
        else:
            index = as_index(k)
            if not -x.shape[dim] <= index < x.shape[dim]:
                raise InvalidArgumentError(f"index {index} is none of dimension {dim} of a tensor of shape {x.shape}")
            first = index if index == -1 else index % x.shape[dim]  # -1 is the last one of any size
            y = slice(y, dim, first, None if first == -1 else first + 1)
            dropped.append(dim)
        dim += 1
    if any(k is None for k in keys):
        return reshape(y, sizes)
    return squeeze(y, dropped) if dropped else y


def _range(x: Symbol, dim: int, k: builtins.slice) -> Symbol:
    if k.step not in (None, 1):
        raise InvalidArgumentError(f"an index has step {k.step}; slices of symbolic tensors have step 1")
    size = x.shape[dim]
    begin = 0 if k.start is None else as_index(k.start)
    end = None if k.stop is None else as_index(k.stop)
    begin, stop, _ = builtins.slice(begin, end).indices(size)
    if begin >= stop:
        raise InvalidArgumentError(
            f"the range {k.start}:{k.stop} of dimension {dim} of a tensor of shape {x.shape} is empty"
        )
    if begin == 0 and stop == size:
        return x
    return slice(x, dim, begin, None if end is None else stop)


def squeeze(x: Symbol, dims: int | Sequence[int] | None = None, **common: Unpack[LayerOptions]) -> Symbol:
    """Drops dimensions of size 1: those in `dims`, or without `dims` all."""
    options = {"dims": [dims] if isinstance(dims, int) else dims}
    return Generic("Squeeze", "squeeze", options, common).apply(x)[0]


def unsqueeze(x: Symbol, dim: int, **common: Unpack[LayerOptions]) -> Symbol:
    """Adds a dimension of size 1 at `dim`."""
    if not -x.ndim - 1 <= as_index(dim) <= x.ndim:
        raise InvalidArgumentError(
            f"nn.unsqueeze: dim {dim} does not exist in what a tensor of shape {x.shape} becomes"
        )
    at = dim if dim >= 0 else dim + x.ndim + 1
    behind = [-1, *x.shape[at + 1 :]] if at < x.ndim else []
    return reshape(x, [0] * at + [1] + behind, **common)


def parameter(
    shape: int | Sequence[int],
    *,
    dtype: Any = "float32",
    trainable: bool = True,
    value: float = 0.0,
    **common: Unpack[LayerOptions],
) -> Symbol:
    """A tensor that belongs to the network. Its elements start as `value`. `trainable=False` makes it a constant."""
    return layers.Parameter(shape, dtype=dtype, trainable=trainable, value=value, **common)()
