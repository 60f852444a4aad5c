# SPDX-License-Identifier: MIT
"""The options of layers as JSON has them: what differs from the library's defaults, and sizes in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ._graph import IntOrPair


def unless(value: Any, default: Any) -> Any:
    """Returns None if the value is the library's default, so that the option is left out of the network's JSON."""
    return None if isinstance(value, type(default)) and value == default else value


def pair(value: Any, what: str = "a size") -> list[Any]:
    """[height, width] from one number or two."""
    if isinstance(value, (int, float)):
        return [value, value]
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise InvalidArgumentError(f"{what} is {value!r}; a number or (height, width) is needed")
    return list(value)


def same_padding(
    layer: str, kernel_size: IntOrPair, stride: IntOrPair, dilation: IntOrPair, dims: int | None
) -> list[int]:
    """Pads that keep the image's size, as PyTorch's "same". If the two sides differ, the larger pad is at the end.

    `dims` is the number of dimensions of images. If it is None, lists among the sizes tell it. Without lists it is
    unknown, and then both sides must have the same pad.
    """
    lists = [len(size) for size in (kernel_size, dilation) if isinstance(size, Sequence)]
    count = dims or max(lists, default=1)

    def each(size: IntOrPair) -> Sequence[int]:
        return size if isinstance(size, Sequence) else [size] * count

    if any(step != 1 for step in each(stride)):
        raise InvalidArgumentError(
            f'{layer}: padding="same" keeps the size of the image, so stride must be 1, not {stride}'
        )
    total = [d * (k - 1) for k, d in zip(each(kernel_size), each(dilation))]
    front = [t // 2 for t in total]
    if dims or lists:
        return front + [t - f for t, f in zip(total, front)]
    if total[0] % 2:
        raise InvalidArgumentError(
            f'{layer}: padding="same" of a kernel of {kernel_size} has pads that differ in front and behind; '
            "give kernel_size as a list with an entry for each dimension of images"
        )
    return front


def padding_option(
    layer: str,
    padding: IntOrPair | str,
    kernel: IntOrPair,
    stride: IntOrPair,
    dilation: IntOrPair,
    dims: int | None = 2,
) -> Any:
    if isinstance(padding, str):
        if padding == "same":
            return same_padding(layer, kernel, stride, dilation, dims)
        if padding != "valid":
            raise InvalidArgumentError(f"{layer}: padding is '{padding}'; integers, 'same' and 'valid' are possible")
        return None
    return unless(padding, 0)
