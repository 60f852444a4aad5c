# SPDX-License-Identifier: MIT
"""The text of a tensor: its values as numpy prints them, its dtype and device, and its shape if values are left out."""

from __future__ import annotations

import typing

import numpy as np

from ._dtypes import widened

if typing.TYPE_CHECKING:
    from ._core import Tensor

# numpy prints arrays of at most so many elements completely.
_WHOLE = 1000
_EDGE = 3
# Tensors of at most this size are copied at once rather than piece by piece.
_PIECE_BYTES = 1 << 16


def show(tensor: Tensor) -> str:
    """Return repr(tensor). Of a large tensor, only the elements that are shown are copied from the device."""
    whole = tensor.size <= _WHOLE
    values = tensor.numpy() if whole else _edges(tensor)
    if tensor.dtype == "bfloat16":
        values = widened(values.view(np.uint16))
    text = np.array2string(values, separator=", ", prefix="Tensor(", threshold=_WHOLE if whole else 0, edgeitems=_EDGE)
    info = tensor.context.info
    shape = "" if whole and tensor.size > 0 else f"shape={tensor.shape}, "
    return f"Tensor({text}, {shape}dtype={tensor.dtype}, device='{info.id}')"


def _edges(tensor: Tensor) -> np.ndarray[typing.Any, typing.Any]:
    """Return the values. The middle of every long dimension becomes a single element, which numpy does not print."""
    if tensor.nbytes <= _PIECE_BYTES or tensor.ndim == 0:
        values = tensor.numpy()
        for axis, size in enumerate(values.shape):
            values = np.take(values, _places(size), axis=axis)
        return values
    if tensor.ndim == 1:
        return np.concatenate([tensor[: _EDGE + 1].numpy(), tensor[-_EDGE:].numpy()])
    return np.stack([_edges(tensor[i]) for i in _places(tensor.shape[0])])


def _places(size: int) -> list[int]:
    if size <= 2 * _EDGE:
        return list(range(size))
    return [*range(_EDGE + 1), *range(size - _EDGE, size)]
