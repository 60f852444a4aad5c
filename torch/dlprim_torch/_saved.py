# SPDX-License-Identifier: MIT
"""What is saved between a forward and a backward graph.

PyTorch's min-cut partitioner saves as few bytes as do not cost time: a chain of pointwise operators that the backward
graph reads within others is computed again. torch._functorch.config.activation_memory_budget, between 0 and 1, lets it
compute more again.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

from ._regions import is_drawn

aten = torch.ops.aten

NORM_BACKWARD = {aten.native_batch_norm_backward.default, aten.batch_norm_backward.default}
ATTENTION_BACKWARD = aten._scaled_dot_product_fused_attention_overrideable_backward.default

# What costs as much as a product of matrices, and which PyTorch's own list lacks; and norms that change what they read.
ONCE = {
    aten._scaled_dot_product_fused_attention_overrideable.default,
    aten.baddbmm.default,
    aten._native_batch_norm_legit_functional.default,
    aten._batch_norm_with_update_functional.default,
}


def forward_and_backward(joint: GraphModule, inputs: Any, **options: Any) -> Any:
    """AOTAutograd's two graphs."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    for node in list(joint.graph.nodes):
        leave_unread(node)
        if is_drawn(node):
            keep_drawn(node)
        elif node.target in ONCE:
            node.meta.setdefault("recompute", CheckpointPolicy.MUST_SAVE)
    # Joining equal expressions would join two calls of randn_like, and dlprim joins all others.
    with torch._functorch.config.patch(cse=False):
        return min_cut_rematerialization_partition(joint, inputs, **options)


def leave_unread(node: Node) -> None:
    """Takes from a gradient what it does not read, so that it is not saved.

    These are the keys of attention that drops nothing, and the running statistics of a norm that uses its batch's.
    """
    if node.target is ATTENTION_BACKWARD and node.args[12] == 0:
        node.update_arg(14, node.args[1])  # the query, since there has to be a tensor
        node.update_arg(15, node.args[1])
    if node.target in NORM_BACKWARD and node.args[7]:
        node.update_arg(3, None)
        node.update_arg(4, None)


def keep_drawn(node: Node) -> None:
    """Lets nobody draw the numbers of a node again, also not in a checkpoint. There the result of dropout is made again
    of its mask, which has a byte for each element."""
    results = [user for user in node.users if user.target is operator.getitem]
    again = node.meta.get("recompute") in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)
    if again and node.target is aten.native_dropout.default:
        drop_by_mask(node, results)
    for each in (node, *results):
        each.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def drop_by_mask(node: Node, results: list[Node]) -> None:
    """Writes the result of dropout as an expression of its mask."""
    x, p = node.args[0], float(node.args[1])  # type: ignore[arg-type]
    made = next((user for user in results if user.args[1] == 0), None)
    if made is None or p in (0, 1):
        return
    value, mask_value = node.meta["val"]
    graph = node.graph
    with graph.inserting_before(node.next):
        mask = graph.call_function(operator.getitem, (node, 1))
        scaled = graph.call_function(aten.mul.Tensor, (x, 1 / (1 - p)))
        dropped = graph.call_function(aten.logical_not.default, (mask,))
        kept = graph.call_function(aten.masked_fill.Scalar, (scaled, dropped, 0))
    for new, val in ((mask, mask_value), (scaled, value), (dropped, mask_value), (kept, value)):
        new.meta = {**made.meta, "val": val}
    results.append(mask)
    made.replace_all_uses_with(kept)
