# SPDX-License-Identifier: MIT
"""Values of 16 bits that only pointwise operators read: they stay float32, and are not rounded.

Autocast rounds the result of every operator, also where the next one is a product with a number. dlprim computes such a
chain in one kernel and in float32, so that to round in between would cost a pass over memory, and precision. PyTorch's
own compiler omits these roundings, too (torch._inductor.config.emulate_precision_casts is False).

    half -> mul -> half -> tanh -> half -> mm       becomes       half -> float -> mul -> tanh -> half -> mm

What a product, the caller or the other graph reads is rounded as before. Casts that the model itself writes, such as
x.half().float(), are left out like those of autocast.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from ._graph import PRECISIONS
from ._regions import VIEWS

aten = torch.ops.aten

SHOWN = VIEWS | {aten.view.default, aten._unsafe_view.default}
# What depends on the type of what it reads: its neighbouring numbers, or its largest one.
OF_TYPE = {aten.nextafter.default, aten.nan_to_num.default}


def leave_unrounded(module: GraphModule) -> None:
    """Lets chains of pointwise operators on 16 bits compute and keep float32. The nodes have meta["val"]."""
    graph = module.graph
    wide = unrounded(graph)
    casts: dict[Node, Node] = {}
    kept: set[Node] = set()  # values of float32 that casts to 16 bits were left out behind
    for node in list(graph.nodes):
        if node in wide and node.target in SHOWN:
            node.meta["val"] = node.meta["val"].to(torch.float32)
        elif node in wide:
            compute_in_float(node, casts)
        elif is_pointwise(node) and is_narrow(node) and any(is_float(x) for x in node.all_input_nodes):
            round_result(node, casts)
        if is_cast(node):
            leave_out(node, wide | kept, kept)
    graph.lint()
    module.recompile()


def leave_out(node: Node, unrounded_ones: set[Node], kept: set[Node]) -> None:
    """Leaves out a cast from float32 to float32, of or to a value that is not rounded any more.

    Where the caller, or a view that he may get, reads it, it stays as a tensor of its own.
    """
    source = node.all_input_nodes[0]
    is_same = dtype_of(node) == dtype_of(source) == torch.float32 and {node, source} & unrounded_ones
    if is_same and not any(user.op == "output" or user.target in SHOWN for user in node.users):
        kept.add(source)
        node.replace_all_uses_with(source)
        node.graph.erase_node(node)


def unrounded(graph: torch.fx.Graph) -> set[Node]:
    """The nodes whose results stay float32: only pointwise operators read them, also through views."""
    wide: set[Node] = set()
    for node in reversed(graph.nodes):
        if not is_narrow(node) or not (is_pointwise(node) or is_cast(node) or node.target in SHOWN):
            continue
        if node.meta["val"].dim() == 0:  # promotes no other tensor
            continue
        if all(user in wide if user.target in SHOWN else may_read_float(user) for user in node.users):
            wide.add(node)
    for node in graph.nodes:  # a view stays what it shows
        if node in wide and node.target in SHOWN and node.args[0] not in wide:
            wide.remove(node)
    return wide


def may_read_float(node: Node) -> bool:
    """Whether a node computes the same of float32, apart from how it rounds."""
    return (is_pointwise(node) or is_cast(node)) and dtype_of(node).is_floating_point


def compute_in_float(node: Node, casts: dict[Node, Node]) -> None:
    """Lets a pointwise operator or a cast read and make float32. `casts`: of values that others read so, too."""
    graph = node.graph
    if is_cast(node):
        node.kwargs = {**node.kwargs, "dtype": torch.float32}
    else:
        for source in [x for x in node.all_input_nodes if is_narrow(x)]:
            if source not in casts:
                with graph.inserting_before(node):
                    casts[source] = cast(source, torch.float32)
            node.replace_input_with(source, casts[source])
    node.meta["val"] = node.meta["val"].to(torch.float32)


def round_result(node: Node, casts: dict[Node, Node]) -> None:
    """Lets a pointwise operator read float32, and rounds what it makes."""
    dtype = dtype_of(node)
    compute_in_float(node, casts)
    with node.graph.inserting_after(node):
        rounded = cast(node, dtype)
    if node.meta.pop("saved", False):
        rounded.meta["saved"] = True
    node.replace_all_uses_with(rounded, delete_user_cb=lambda user: user is not rounded)


def cast(source: Node, dtype: torch.dtype) -> Node:
    """A new node that casts another one."""
    made = source.graph.call_function(aten._to_copy.default, (source,), {"dtype": dtype})
    made.meta = {"val": source.meta["val"].to(dtype)}
    return made


def dtype_of(node: Node) -> Any:
    """The type of a node whose value is a tensor. Other nodes get bool, so that no rule here applies to them."""
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else torch.bool


def is_narrow(node: Node) -> bool:
    return dtype_of(node) in PRECISIONS


def is_float(node: Node) -> bool:
    """Whether it is a tensor of float32, not one without dimensions, which promotes no other."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.dim() > 0


def is_cast(node: Node) -> bool:
    """Whether it changes nothing of a tensor of floats but its type."""
    if node.target is not aten._to_copy.default or not dtype_of(node).is_floating_point:
        return False
    source, made = node.args[0].meta.get("val"), node.meta["val"]  # type: ignore[union-attr]
    return (
        isinstance(source, torch.Tensor)
        and source.is_floating_point()
        and source.device == made.device
        and source.layout == made.layout
        and node.kwargs.get("memory_format") in (None, torch.preserve_format)
        and not node.kwargs.get("pin_memory")
    )


def is_pointwise(node: Node) -> bool:
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and torch.Tag.pointwise in target.tags
        and not target._schema.is_mutable
        and isinstance(node.meta.get("val"), torch.Tensor)
        and target not in OF_TYPE
    )
