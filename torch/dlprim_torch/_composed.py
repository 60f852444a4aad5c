# SPDX-License-Identifier: MIT
"""Operators that a graph has as those of which their kernels on "ocl" consist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

NAMES = (
    "_embedding_bag",
    "_embedding_bag_forward_only",
    "_embedding_bag_dense_backward",
    "_embedding_bag_per_sample_weights_backward",
    "_embedding_bag_backward",
    "trace",
    "addbmm",
)


def composed() -> dict[Any, Callable[..., Any]]:
    """The operators, each with a function that calls its parts."""
    overloads = (getattr(torch.ops.aten, name).default for name in NAMES)
    return {overload: by_parts(overload) for overload in overloads}


def by_parts(overload: Any) -> Callable[..., Any]:
    """Calls the kernel itself, whose calls of other operators are then traced. Kernels need sizes that are numbers."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = torch.utils._pytree.tree_leaves((args, kwargs))
        sizes = [size for x in given for size in (x.shape if isinstance(x, torch.Tensor) else [x])]
        if any(isinstance(size, torch.SymInt) for size in sizes):
            return NotImplemented
        return overload._op_dk(torch._C.DispatchKey.PrivateUse1, *args, **kwargs)

    return call
