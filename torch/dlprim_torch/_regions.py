# SPDX-License-Identifier: MIT
"""A graph of ATen operators with those that have forms as regions, each of which is one dlprim function."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ._builder import Builder
from ._graph import visit
from ._region import Region, note_eager

log = logging.getLogger(__name__)

# What draws random numbers and has a form that draws those of eager calls.
DRAWN = {
    torch.ops.aten.native_dropout.default,
    torch.ops.aten.bernoulli.p,
    torch.ops.aten.rand_like.default,
    torch.ops.aten.randn_like.default,
    torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default,
}

# What only shows a tensor in another way. It costs nothing eagerly, and would be a copy as a function's result.
VIEWS = {
    getattr(getattr(torch.ops.aten, name), overload)
    for name, overload in (
        ("reshape", "default"),
        ("t", "default"),
        ("transpose", "int"),
        ("permute", "default"),
        ("unsqueeze", "default"),
        ("squeeze", "dim"),
        ("squeeze", "dims"),
        ("expand", "default"),
        ("alias", "default"),
        ("detach", "default"),
    )
}


def in_regions(module: GraphModule, constants: set[Node], training: bool) -> Callable[..., Any]:
    """The graph with what has forms as regions."""
    from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

    names = {node.name for node in constants}
    targets = put_writes_off(module)
    eager = show_results(module)
    lacking = without_form(module) | eager
    parts = partitions(module, lacking)
    drawn = {node for node in module.graph.nodes if is_drawn(node)}
    if not any(drawn <= part.keys() for part in parts):  # regions would not draw in the order of eager calls
        lacking |= drawn | {user for node in drawn for user in node.users if user.target is operator.getitem}
        parts = runs(module, lacking)
    for name in sorted({str(node.target) for node in lacking - eager if node.target is not operator.getitem}):
        log.info("%s has no form in a network and runs eagerly", name)
        note_eager(name)
    fused = fuse_by_partitions(module, parts, prefix="region", always_return_tuple=True)
    writes = written_by_regions(fused, targets)
    for name, child in list(fused.named_children()):
        if name.startswith("region") and isinstance(child, GraphModule):
            call = next(node for node in fused.graph.nodes if node.op == "call_module" and node.target == name)
            if not call.all_input_nodes:  # nothing tells the device: what is made of nothing is made eagerly
                continue
            fixed = [i for i, node in enumerate(call.all_input_nodes) if node.name in names]
            setattr(fused, name, Region(child, fixed, training, writes.get(call, [])))
    fused.recompile()
    return fused


def put_writes_off(module: GraphModule) -> list[str]:
    """Makes what a graph writes to its inputs its last outputs, and returns the names of the inputs."""
    graph = module.graph
    output = next(node for node in graph.nodes if node.op == "output")
    found = [
        node
        for node in graph.nodes
        if node.target is torch.ops.aten.copy_.default
        and node.args[0].op == "placeholder"
        and node.users.keys() <= {output}
    ]
    targets, sources = ([node.args[i] for node in found] for i in (0, 1))
    output.args = ([*output.args[0], *sources],)
    for node, target in zip(found, targets, strict=True):
        node.replace_all_uses_with(target)
        graph.erase_node(node)
    return [target.name for target in targets]


def written_by_regions(fused: GraphModule, targets: Sequence[str]) -> dict[Node, list[tuple[int, int]]]:
    """For each call of a region, its results that are made in an input's memory, each with the place of that input.

    What no region can write so is copied at the end.
    """
    graph = fused.graph
    output = next(node for node in graph.nodes if node.op == "output")
    kept = len(output.args[0]) - len(targets)
    sources = output.args[0][kept:]
    output.args = (output.args[0][:kept],)
    order = {node: i for i, node in enumerate(graph.nodes)}
    writes: dict[Node, list[tuple[int, int]]] = {}
    taken: dict[Node, Node] = {}
    inputs = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    for target, source in zip((inputs[name] for name in targets), sources, strict=True):
        call = source.args[0] if source.target is operator.getitem and source not in taken else None
        if call is not None and call.op == "call_module" and can_write(target, source, call, order):
            taken[source] = target
            writes.setdefault(call, []).append((source.args[1], call.args.index(target)))
            graph.erase_node(source)
        else:
            with graph.inserting_before(output):
                graph.call_function(torch.ops.aten.copy_.default, (target, taken.get(source, source)))
    return writes


def can_write(target: Node, source: Node, call: Node, order: dict[Node, int]) -> bool:
    """Whether a region's result may be made in the memory of an input, which the region reads as the last one."""
    old, new = target.meta["val"], source.meta["val"]
    return (
        target in call.args
        and not source.users
        and all(order[user] <= order[call] or user.op == "output" for user in target.users)
        and old.dtype == new.dtype
        and old.shape == new.shape
        and old.is_contiguous()
    )


def partitions(module: GraphModule, lacking: set[Node]) -> list[dict[Node, int | None]]:
    """The nodes with forms, in as few parts as the others between them allow."""
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    supported = [node for node in calls if node not in lacking]
    if not supported:
        return []
    if not returns_to(supported, lacking):
        return [dict.fromkeys(supported)]
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import create_op_support

    known = set(supported)
    partitioner = CapabilityBasedPartitioner(
        module,
        create_op_support(lambda modules, node: node in known),
        allows_single_node_partition=True,
    )
    return [part.nodes for part in partitioner.propose_partitions()]


def runs(module: GraphModule, lacking: set[Node]) -> list[dict[Node, int | None]]:
    """The nodes with forms, in parts that leave all nodes in the order of the graph."""
    parts: list[dict[Node, int | None]] = [{}]
    for node in module.graph.nodes:
        if node.op == "call_function" and node not in lacking:
            parts[-1][node] = None
        elif node.op == "call_function" and parts[-1]:
            parts.append({})
    return [part for part in parts if part]


def returns_to(supported: Sequence[Node], lacking: set[Node]) -> bool:
    """Whether a supported node reads what a lacking one has made of the result of another."""
    behind: set[Node] = set()
    known = set(supported)
    for node in supported[0].graph.nodes:
        after = any(x in behind or x in known for x in node.all_input_nodes)
        if node in lacking and after:
            behind.add(node)
        if node in known and any(x in behind for x in node.all_input_nodes):
            return True
    return False


def show_results(module: GraphModule) -> set[Node]:
    """Gives outputs of the graph that are views nodes of their own, and returns these."""
    graph = module.graph
    output = next(node for node in graph.nodes if node.op == "output")
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            node.target = torch.ops.aten.reshape.default  # strides may differ from those that were traced

    def shown(node: Any) -> Any:
        if not isinstance(node, Node) or node.op != "call_function" or node.target not in VIEWS:
            return node
        if node not in made:
            source = shown(node.args[0])
            with graph.inserting_before(output):
                copy = graph.node_copy(node)
            copy.args = (source, *node.args[1:])
            made[node] = copy
        return made[node]

    output.args = (torch.fx.node.map_arg(output.args[0], shown),)
    graph.eliminate_dead_code()
    module.recompile()
    return set(made.values())


def without_form(module: GraphModule) -> set[Node]:
    """The nodes that a region cannot have."""
    builder = Builder(module, {}, {}, keyed=True)
    found = set()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            builder.values[node] = node.name
            continue
        if node.target is operator.getitem:
            source = node.args[0]
            if source not in found:
                visit(builder, node)
                if builder.values[node] is not None or not node.users:
                    continue
                found.update([source, *source.users])  # somebody reads a result that the form does not make
            found.add(node)
            builder.values[node] = node.name
            continue
        elif node.op == "get_attr":
            builder.values[node] = node.name
            continue
        elif not is_of_device(node) or is_bound_to_order(node):
            found.add(node)
            builder.values[node] = stand_in(node)
            continue
        try:
            visit(builder, node)
        except Exception as error:  # also a form that fails leaves its node to eager calls
            log.debug("%s: %s", node, error)
            found.add(node)
            builder.values[node] = stand_in(node)
    return found


def stand_in(node: Node) -> Any:
    """Names for a node's results."""
    value = node.meta.get("val")
    return [f"{node.name}.{i}" for i in range(len(value))] if isinstance(value, (tuple, list)) else node.name


def is_of_device(node: Node) -> bool:
    """Whether all tensors of a call are on the device and have elements; numbers of the CPU may be among them."""
    values = [x.meta.get("val") for x in node.all_input_nodes]
    made = node.meta.get("val")
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    tensors = [x for x in values + results if isinstance(x, torch.Tensor)]
    return all(x.numel() > 0 for x in tensors) and all(
        x.device.type == "ocl" for x in tensors if x.dim() > 0 or any(x is y for y in results)
    )


def is_drawn(node: Node) -> bool:
    """Whether a call draws random numbers. Attention says so also where it drops nothing."""
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    given = {**dict(zip((x.name for x in node.target._schema.arguments), node.args, strict=False)), **node.kwargs}
    return bool(given.get("dropout_p", 0) != 0) if "attention" in str(node.target) else True


def is_bound_to_order(node: Node) -> bool:
    """Whether a call draws random numbers in a way of its own, or writes to its arguments."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return True
    return (is_drawn(node) and target not in DRAWN) or target._schema.is_mutable
