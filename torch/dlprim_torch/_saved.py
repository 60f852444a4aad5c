# SPDX-License-Identifier: MIT
"""What is saved between a forward and a backward graph."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule

ATTENTION_BACKWARD = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default


def forward_and_backward(joint: GraphModule, inputs: Any, **options: Any) -> Any:
    """AOTAutograd's two graphs. Keys of attention that drops nothing are not saved between them."""
    from torch._functorch.partitioners import default_partition

    for node in joint.graph.nodes:
        if node.target is ATTENTION_BACKWARD and node.args[12] == 0:
            node.update_arg(14, node.args[1])  # the query, which nobody reads there
            node.update_arg(15, node.args[1])
    return default_partition(joint, inputs, **options)
