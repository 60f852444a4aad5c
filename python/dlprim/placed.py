# SPDX-License-Identifier: MIT
"""PlacedNet: a network whose operators run on several devices; PlacedSolver trains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from numpy.typing import ArrayLike, NDArray

from . import _core
from ._core import PlacedMove, PlacedPart
from ._source import JsonSource, json_source

__all__ = ["PlacedMove", "PlacedNet", "PlacedPart", "PlacedSolver"]


class PlacedNet(_core.PlacedNet):
    """A network whose operators run on several devices: it computes what a Net on one device does.

    An operator of the JSON names its device, `"device": "fast"`; others run on the first one (docs/placement.md).

    Args:
        devices: contexts by the names that operators give them.
        source: network JSON as Net takes it.
        mode: as for a Net.
        place: "named": operators that name no device run on the first one. "auto": they get the one that an estimate
            says is best for the time of a batch, within the memory of each. "measured": the same by running the
            network on each device first.
        memory_limits: the bytes that operators may take on a device, by its name.
        solver: options of the PlacedSolver that is going to train the net: its memory counts for automatic placement.
        options: those of a Net, but for output_gradients and memory_limit.

    Raises:
        InvalidArgumentError: a name is not bound, or what Net raises for.
        OutOfMemoryError: automatic placement finds no room.
    """

    def __init__(
        self,
        devices: Mapping[str, _core.Context],
        source: JsonSource,
        mode: str = "training",
        *,
        place: str = "named",
        memory_limits: Mapping[str, int] | None = None,
        solver: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(devices, Mapping):
            raise TypeError(f"devices takes a dict of contexts by name, not a {type(devices).__name__}")
        text, is_path = json_source(source, "a network")
        if place not in ("named", "auto", "measured"):
            raise ValueError(f"place is {place!r}, and must be 'named', 'auto' or 'measured'")
        given = None if solver is None else dict(solver)
        super().__init__(
            dict(devices), text, is_path, {"mode": mode, **options}, place, dict(memory_limits or {}), given
        )

    def forward(self, **named: ArrayLike) -> dict[str, _core.Tensor]:
        """Set the inputs that are given by name, and enqueue forward; outputs' own Tensors by name."""
        for name, array in named.items():
            self.set_input(name, array)
        self.enqueue_forward()
        return {name: self.output(name) for name in self.output_names}

    def run(self, inputs: Mapping[str, ArrayLike] | None = None, **named: ArrayLike) -> dict[str, NDArray[Any]]:
        """Set inputs from a dict or by keyword, run forward, and return copies of the outputs as arrays."""
        return {name: tensor.numpy() for name, tensor in self.forward(**{**(inputs or {}), **named}).items()}

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a PlacedNet cannot be pickled or copied, since it lives on devices: save_weights() writes a file"
        )

    def __repr__(self) -> str:
        parts = "; ".join(f"{part.device}: {len(part.operators)} operators" for part in self.parts())
        return f"<dlprim.PlacedNet: {parts}>"


class PlacedSolver(_core.Solver):
    """Trains a PlacedNet in training mode by SGD, Adam or AdamW.

    Args:
        net: a PlacedNet in training mode.
        kind: "sgd", "adam" or "adamw".
        options: those of a Solver; docs/placement.md says which are refused. With guard_loss a step waits for its loss.

    Raises:
        InvalidArgumentError: a number is invalid, an option is not for placed networks, or the net is not in
            training mode.
        OutOfMemoryError: parts do not fit a device together.
    """

    def __init__(self, net: PlacedNet, kind: str = "adam", **options: Any) -> None:
        if not isinstance(net, PlacedNet):
            raise TypeError(f"a PlacedSolver is made on a dlprim.PlacedNet, not on a {type(net).__name__}")
        super().__init__(net, {"kind": kind, **options})
        self._net = net

    @property
    def net(self) -> PlacedNet:
        """The net that this solver trains."""
        return self._net

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PlacedSolver cannot be pickled or copied: save_checkpoint() writes a file")

    def __repr__(self) -> str:
        return f"<dlprim.PlacedSolver: learning_rate={self.learning_rate:g}, steps={self.steps}>"
