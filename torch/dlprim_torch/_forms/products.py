# SPDX-License-Identifier: MIT
"""Products of matrices, and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._builder import Builder
from .._sizes import is_open, same_size
from .._written import rows
from .table import Node, form, only_floats


@form("linear.default")
def linear(b: Builder, input: Node, weight: Node, bias: Node | None) -> Any:
    only_floats(b, input, weight)
    outputs = b.sizes(weight)[0]
    if is_open(outputs):
        return b.layer(
            "MatMul",
            [x for x in (input, weight, bias) if x is not None],
            {"transpose_b": True, "bias": bias is not None},
        )
    name, again = rows(b, input)
    options = {"outputs": outputs, "bias": bias is not None, "axis": -1}
    return again(b.layer("InnerProduct", [name], options, [weight, bias]), outputs)


def operand(b: Builder, x: Node) -> tuple[Node, bool]:
    """The tensor behind a swap of the last two dimensions, and whether there was one."""
    if x.op != "call_function" or x.target not in SWAPS:
        return x, False
    source = x.args[0]
    assert isinstance(source, Node)
    rank = b.rank(source)
    order = permutation(rank, SWAPS[x.target], b.arguments(x))
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    return (source, True) if rank >= 2 and order == swapped else (x, False)


def permutation(rank: int, kind: str, given: dict[str, Any]) -> list[int]:
    """The order of dimensions that t, transpose or permute give."""
    order = list(range(rank))
    if kind == "permute":
        return [d % rank for d in given["dims"]]
    first, second = (given["dim0"] % rank, given["dim1"] % rank) if kind == "transpose" else (0, rank - 1)
    order[first], order[second] = order[second], order[first]
    return order


SWAPS: dict[Any, str] = {
    torch.ops.aten.t.default: "t",
    torch.ops.aten.transpose.int: "transpose",
    torch.ops.aten.permute.default: "permute",
}


def product(b: Builder, left: Node, right: Node, bias: Node | None = None) -> Any:
    """left right, and a bias on every row."""
    only_floats(b, left, right)
    second, by_rows = operand(b, right)
    if by_rows and b.rank(second) == 2 and (bias is None or b.rank(bias) == 1):
        return linear(b, left, second, bias)
    first, transposed = operand(b, left)
    options = {"transpose_a": transposed, "transpose_b": by_rows, "bias": bias is not None}
    shown = {name: True for name, value in options.items() if value}
    return b.layer("MatMul", [first, second] + ([bias] if bias is not None else []), shown)


@form("mm.default", "bmm.default")
def mm(b: Builder, self: Node, mat2: Node) -> Any:
    return product(b, self, mat2)


@form("addmm.default")
def addmm(b: Builder, self: Node, mat1: Node, mat2: Node, beta: float, alpha: float) -> Any:
    whole = b.rank(self) == 1 and same_size(b.sizes(self)[0], b.sizes(mat2)[1])
    return product(b, mat1, mat2, self) if whole and alpha == beta == 1 else sum_of(b, self, mat1, mat2, beta, alpha)


@form("baddbmm.default")
def baddbmm(b: Builder, self: Node, batch1: Node, batch2: Node, beta: float, alpha: float) -> Any:
    return sum_of(b, self, batch1, batch2, beta, alpha)


def sum_of(b: Builder, c: Node, left: Node, right: Node, beta: float, alpha: float) -> Any:
    """alpha left right + beta c."""
    only_floats(b, left, right)
    (left, swap_a), (right, swap_b) = operand(b, left), operand(b, right)
    options = {"transpose_a": swap_a, "transpose_b": swap_b, "alpha": float(alpha), "beta": float(beta)}
    return b.layer("MatMulAdd", [left, right, c], options)


@form("matmul.default")
def matmul(b: Builder, self: Node, other: Node) -> Any:
    if b.rank(self) > 1 and b.rank(other) > 1:
        return product(b, self, other)
    only_floats(b, self, other)
    left, right = b.sizes(self), b.sizes(other)
    rows: Any = b.reshape(self, left, [1, *left]) if len(left) == 1 else self
    columns: Any = b.reshape(other, right, [*right, 1]) if len(right) == 1 else other
    name = b.layer("MatMul", [rows, columns])
    before = (
        [*right[:-2], 1, right[-1]]
        if len(left) == 1 and len(right) > 1
        else [*left[:-1], 1]
        if len(left) > 1
        else [1, 1]
    )
    return b.reshape(name, before, b.sizes(b.node))


@form("dot.default")
def dot(b: Builder, self: Node, tensor: Node) -> Any:
    return matmul(b, self, tensor)


@form("mv.default")
def mv(b: Builder, self: Node, vec: Node) -> Any:
    return matmul(b, self, vec)


@form("lstm.input", "gru.input")
def recurrent(
    b: Builder,
    input: Node,
    hx: Any,
    params: Sequence[Node],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    first = list(hx) if isinstance(hx, (tuple, list)) else [hx]
    if any(b.sizes(x)[2] != b.sizes(first[0])[2] for x in first):
        raise b.no_form("with proj_size has no form in a network of dlprim")
    options = {
        "hidden_size": b.sizes(first[0])[2],
        "num_layers": num_layers,
        "bidirectional": bidirectional,
        "bias": has_biases,
        "batch_first": batch_first,
        "dropout": float(dropout),
    }
    return b.layer("LSTM" if len(first) == 2 else "GRU", [input, *first], options, params, results=1 + len(first))
