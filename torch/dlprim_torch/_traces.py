# SPDX-License-Identifier: MIT
"""Operators that AOTAutograd traces otherwise for "ocl" than PyTorch would."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ._forms.images import RESIZES

KEYS = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)


def replaced() -> dict[Any, Callable[..., Any] | None]:
    """What takes the place of PyTorch's decompositions while a graph is traced; None: the operator stays whole.

    Of images that get other sizes PyTorch would make indices.
    """
    return {getattr(getattr(torch.ops.aten, name), part): None for name in RESIZES for part in ("vec", "default")}


@contextlib.contextmanager
def own_traces() -> Iterator[None]:
    """Traces as this file says."""
    functions = replaced()
    known = {op: dict(op.py_kernels) for op in functions}
    try:
        for op, function in functions.items():
            for key in KEYS:
                op.py_kernels.pop(key, None)
                if function is not None:
                    op.py_kernels[key] = function
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in known.items():
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
