# SPDX-License-Identifier: MIT
"""A region of a compiled graph: operators that dlprim plans as a whole, or that run eagerly where it cannot."""

from __future__ import annotations

import json
import logging
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from . import _state
from ._graph import graph_of

log = logging.getLogger(__name__)


class Region(torch.nn.Module):
    """Operators that dlprim plans as a whole. They run eagerly where it cannot plan them, or their first call fails."""

    def __init__(
        self, module: GraphModule, constants: Sequence[int], training: bool, writes: Sequence[tuple[int, int]]
    ) -> None:
        """`constants`: inputs that seldom change. `writes`: results, each with the input whose place it takes."""
        super().__init__()
        self.module, self.writes = module, writes
        self.function: Any = None
        self.proven = False
        try:
            self.plan(constants, training)
        except RuntimeError as error:
            self.give_up(error)

    def plan(self, constants: Sequence[int], training: bool) -> None:
        """Makes the function."""
        network = graph_of(self.module, keyed=True)
        self.draws = network.draws
        values = [
            node.meta.get("val") for node in self.module.graph.nodes if node.op in ("placeholder", "call_function")
        ]
        device = next(x.device for x in leaves(values) if x.device.type == "ocl")
        self.device = device.index or 0
        self.function = _state.module().Function(
            self.device,
            json.dumps(network.config),
            "A region of torch.compile",
            [network.inputs[i] for i in constants if network.inputs[i]],
            training,
        )
        self.function.set_frame(
            places=[i for i, name in enumerate(network.inputs) if name],
            draws=network.draws,
            results=[shown(node) for node in results_of(self.module)],
            writes=self.writes,
        )

    def give_up(self, error: RuntimeError) -> None:
        """Leaves the operators to eager calls from now on. Raises the error if it says that memory is short."""
        if isinstance(error, torch.OutOfMemoryError):
            raise error
        self.function = None
        targets = {str(node.target) for node in self.module.graph.nodes if node.op == "call_function"}
        names = sorted(targets - {str(operator.getitem)})
        log.info("A region runs eagerly (%s): %s", ", ".join(names), error)
        for name in names:
            note_eager(name)

    def forward(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        if self.proven:
            return self.function(inputs)  # type: ignore[no-any-return]
        if self.function is None:
            return self.eagerly(inputs)
        before = _state.module().rng_state(self.device) if self.draws else None
        try:
            made = self.function(inputs)
        except RuntimeError as error:
            self.give_up(error)
            if before is not None:
                _state.module().set_rng_state(self.device, before)
            return self.eagerly(inputs)
        self.proven = True
        return made  # type: ignore[no-any-return]

    def eagerly(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """What forward() does, by eager calls."""
        made = tuple(self.module(*inputs))
        for result, place in self.writes:
            inputs[place].copy_(made[result])
        return made


def shown(node: Node) -> torch.Tensor:
    """A tensor without memory of the type, sizes and strides that a result has.

    Nobody sees the strides of what is saved for the backward graph.
    """
    traced = node.meta["val"]
    strides = None if node.meta.get("saved") else strides_of(traced)
    if strides is None:
        return torch.empty(traced.shape, dtype=traced.dtype, device="meta")
    return torch.empty_strided(traced.shape, strides, dtype=traced.dtype, device="meta")


def strides_of(traced: torch.Tensor) -> Sequence[int] | None:
    """The strides of a tensor whose elements lie side by side in another order than that of its dimensions."""
    if traced.numel() == 0 or traced.is_contiguous():
        return None
    wanted = 1
    for size, stride in sorted(zip(traced.shape, traced.stride(), strict=True), key=lambda row: (row[1], row[0])):
        if size > 1 and stride != wanted:
            return None
        wanted *= size
    return traced.stride()


def results_of(module: GraphModule) -> list[Any]:
    """What a graph returns."""
    return list(next(node for node in module.graph.nodes if node.op == "output").args[0])


def leaves(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    """The tensors among values and lists of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from leaves(value)


def note_eager(name: str) -> None:
    """Names an operator in torch.ocl.fallbacks()."""
    from . import ocl

    ocl._eager[name] = ocl._eager.get(name, 0) + 1
