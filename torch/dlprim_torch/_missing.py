# SPDX-License-Identifier: MIT
"""Parts of PyTorch that do not know the device "ocl": they say so in one sentence, or another part does their work.

PyTorch reaches these parts before any operator of the device, and fails there by the name of something inside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NoReturn

import torch
from torch.nn.parallel import comm

DATA_PARALLEL = (
    'torch.nn.DataParallel does not work on the device "ocl": start a process for each device by torchrun, and wrap '
    "the model in torch.nn.parallel.DistributedDataParallel."
)


def explain() -> None:
    """Puts the sentences and detours in place."""
    for name in ("scatter", "gather", "broadcast", "broadcast_coalesced", "reduce_add", "reduce_add_coalesced"):
        setattr(comm, name, _one_device(getattr(comm, name)))
    inductor = getattr(torch, "_TorchCompileInductorWrapper", None)
    if inductor is not None:
        inductor.__call__ = _by_dlprim(inductor.__call__)


def _one_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch.nn.parallel.comm, whose devices are bare numbers."""

    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        if torch._utils._get_available_device_type() == "ocl":  # type: ignore[no-untyped-call]
            _refuse(DATA_PARALLEL)
        return function(*args, **keywords)

    return checked


def _by_dlprim(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call that hands a graph to inductor, torch.compile's default backend, which has no code for "ocl"."""

    @wraps(call)
    def checked(self: Any, graph: torch.fx.GraphModule, inputs: Any, **keywords: Any) -> Any:
        if all(tensor.device.type != "ocl" for tensor in _tensors(graph, inputs)):
            return call(self, graph, inputs, **keywords)
        from ._compile import backend

        return backend(graph, inputs)

    return checked


def _tensors(graph: torch.fx.GraphModule, inputs: Any) -> Iterator[torch.Tensor]:
    """The tensors that go into a graph and those that its nodes make."""
    values = [*inputs, *(node.meta.get("example_value") for node in graph.graph.nodes)]
    return (value for value in values if isinstance(value, torch.Tensor))


def _refuse(sentence: str) -> NoReturn:
    raise NotImplementedError(sentence)
