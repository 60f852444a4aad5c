# SPDX-License-Identifier: MIT
"""Elements that change places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .._sizes import is_open, same_size
from .products import permutation
from .table import Node, cast, form


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
        rows = b.constant(torch.arange(begin, behind, step))
        return b.layer("Scatter", [self, rows, cast(b, src, b.value(self).dtype)], {"mode": "rows", "dim": dim})
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


@form("as_strided.default")
def as_strided(b: Builder, self: Node, size: Sequence[Any], stride: Sequence[Any], storage_offset: int | None) -> Any:
    if storage_offset:
        raise b.no_form("of a part of the memory has no form in a network of dlprim")
    return laid_as(b, self, b.sizes(self), b.value(self).stride(), size, stride)


@form("as_strided_scatter.default")
def as_strided_scatter(
    b: Builder, self: Node, src: Node, size: Sequence[Any], stride: Sequence[Any], storage_offset: int | None
) -> Any:
    """Only where the elements of src take the places of all."""
    if storage_offset:
        raise b.no_form("of a part of the memory has no form in a network of dlprim")
    return laid_as(b, src, size, stride, b.sizes(self), b.value(self).stride())


def laid_as(
    b: Builder, x: Node, sizes: Sequence[Any], strides: Sequence[Any], others: Sequence[Any], steps: Sequence[Any]
) -> Any:
    """The elements of x in the order of memory, where they lie by `strides`, as a tensor that lies by `steps`."""
    first, last = memory_order(b, sizes, strides), memory_order(b, others, steps)
    if math.prod(sizes) != math.prod(others):
        raise b.no_form("of a part of the memory has no form in a network of dlprim")
    name = b.kept("Transpose", b.tensor(x), {"dims": first}) if first != sorted(first) else b.tensor(x)
    name = b.reshape(name, [sizes[d] for d in first], [others[d] for d in last])
    return b.kept("Transpose", name, {"dims": [last.index(d) for d in sorted(last)]}) if last != sorted(last) else name


def memory_order(b: Builder, sizes: Sequence[Any], strides: Sequence[Any]) -> list[int]:
    """The dimensions from the one whose elements lie farthest apart. All elements must lie side by side."""
    if any(is_open(x) for x in (*sizes, *strides)):
        raise b.no_form("of open sizes has no form in a network of dlprim")
    step, found = 1, [d for d, size in enumerate(sizes) if size != 1]
    for d in sorted(found, key=lambda d: int(strides[d])):
        if strides[d] != step:
            raise b.no_form("of a part of the memory has no form in a network of dlprim")
        step *= sizes[d]
    moved = sorted(found, key=lambda d: -int(strides[d]))
    return list(range(len(sizes))) if moved == found else moved + [d for d, size in enumerate(sizes) if size == 1]
