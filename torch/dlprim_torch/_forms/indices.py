# SPDX-License-Identifier: MIT
"""Tensors by indices, orders and positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .moves import cut
from .table import Node, cast, form, rounded, widened


@form("embedding.default")
def embedding(b: Builder, weight: Node, indices: Node, padding_idx: int) -> Any:
    rows, features = b.sizes(weight)
    if b.value(weight).dtype != torch.float32 and not b.is_parameter(weight):
        return b.layer("Gather", [weight, indices], {"mode": "rows", "dim": 0, "from_end": False})
    options = {"num_embeddings": rows, "embedding_dim": features}
    if padding_idx >= 0:
        options["padding_idx"] = padding_idx
    return b.layer("Embedding", [indices], options, [weight])


@form("embedding_dense_backward.default")
def embedding_backward(
    b: Builder, grad_output: Node, indices: Node, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if scale_grad_by_freq:
        raise b.no_form("by frequency has no form in a network of dlprim")
    options = {"num_embeddings": num_weights, "embedding_dim": b.sizes(grad_output)[-1]}
    if padding_idx >= 0:
        options["padding_idx"] = padding_idx
    made = b.layer("EmbeddingBackward", [indices, widened(b, grad_output)], options)  # whose engines take floats
    return rounded(b, made, grad_output)


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


@form("index_reduce.default")
def index_reduce(b: Builder, self: Node, dim: int, index: Node, source: Node, reduce: str, include_self: bool) -> Any:
    options = {"mode": "rows", "dim": dim, "reduction": REDUCTIONS[reduce], "include_self": include_self}
    return b.layer("Scatter", [self, index, source], options)


@form("take.default")
def take(b: Builder, self: Node, index: Node) -> Any:
    row = b.reshape(self, b.sizes(self), [-1])
    return b.layer("Gather", [row, index], {"mode": "rows", "dim": 0})


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
