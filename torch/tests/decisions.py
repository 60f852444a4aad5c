# SPDX-License-Identifier: MIT
"""The decisions of a run, and another run that takes the same ones.

A ReLU or a max pooling decides for each element, and rounding turns a few decisions among millions: PyTorch's float32
and float64 take different ones, too. One turned decision moves gradients by far more than rounding does, with nothing
computed wrongly. So a run records its decisions (`Recorder`), and PyTorch evaluates the network in float64 with these
(`Replay`), which also tells how far from marginal each decision is that float64 would have taken otherwise.
scripts/compare_networks.py compares networks in JSON in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

Tensor = torch.Tensor
# Where the branches of a function meet, and the function from "x is above that point", a mask for each.
Pieces = tuple[list[float], Callable[..., Tensor]]


def relu() -> Pieces:
    """max(x, 0)."""
    return [0.0], lambda x, above: torch.where(above, x, 0.0)


def leaky_relu(negative_slope: float = 0.01) -> Pieces:
    """A slope below zero."""
    return [0.0], lambda x, above: torch.where(above, x, negative_slope * x)


def hardtanh(min_val: float = -1.0, max_val: float = 1.0) -> Pieces:
    """The value between two limits."""
    return [min_val, max_val], lambda x, low, high: torch.where(high, max_val, torch.where(low, x, min_val))


def hardsigmoid() -> Pieces:
    """x / 6 + 1/2 between 0 and 1."""
    return [-3.0, 3.0], lambda x, low, high: torch.where(high, 1.0, torch.where(low, x / 6 + 0.5, 0.0))


def hardswish() -> Pieces:
    """X times its hardsigmoid."""
    return [-3.0, 3.0], lambda x, low, high: torch.where(high, x, torch.where(low, x * (x + 3) / 6, 0.0))


FUNCTIONS: dict[Any, Callable[..., Pieces]] = {
    F.relu: relu,
    torch.relu: relu,
    torch.relu_: relu,
    Tensor.relu: relu,
    Tensor.relu_: relu,
    F.leaky_relu: leaky_relu,
    F.hardtanh: hardtanh,
    F.relu6: lambda: hardtanh(0.0, 6.0),
    F.hardsigmoid: hardsigmoid,
    F.hardswish: hardswish,
}
POOLINGS = (F.max_pool2d, torch.max_pool2d)


class Recorder(TorchFunctionMode):
    """Runs everything as it is, and keeps in `taken` the decisions of each function, on the CPU."""

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        super().__init__()
        self.taken: list[list[Tensor]] = []

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Records what `func` decides before it may overwrite its argument."""
        kwargs = dict(kwargs or {})
        if func in FUNCTIONS:
            options = {name: value for name, value in kwargs.items() if name != "inplace"}
            points, _ = FUNCTIONS[func](*args[1:], **options)
            self.taken.append([(args[0].detach() > point).cpu() for point in points])
        elif func in POOLINGS:
            places = F.max_pool2d(args[0].detach(), *args[1:], **(kwargs | {"return_indices": True}))[1]
            self.taken.append([places.cpu()])
        return func(*args, **kwargs)


class Replay(TorchFunctionMode):
    """Takes the decisions of a Recorder, whatever the values are.

    The exact run, in float64, keeps what it decides on. A second one, in float32, measures PyTorch's error against it.
    """

    def __init__(self, taken: list[list[Tensor]], exact: Replay | None = None) -> None:
        """`exact` is the run in float64 that this one is compared with, or None where this is that run."""
        super().__init__()
        self.taken = taken
        self.exact = exact
        self.seen: list[Tensor] = []
        self.count = 0
        self.turned = 0
        self.far: dict[int, float] = {}  # by number: the farthest turned decision, in shares of the largest magnitude
        self.error: dict[int, float] = {}  # by number: how far this run's values are from the exact ones, likewise

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Replaces the functions that decide."""
        kwargs = dict(kwargs or {})
        number = self.count
        if func in FUNCTIONS:
            self.count += 1
            kwargs.pop("inplace", None)
            return self.branch(number, args[0], *FUNCTIONS[func](*args[1:], **kwargs))
        if func in POOLINGS:
            self.count += 1
            indices = kwargs.pop("return_indices", False)
            result = self.pool(number, args[0], (args[1:], kwargs))
            return (result, self.taken[number][0]) if indices else result
        return func(*args, **kwargs)

    def branch(self, number: int, x: Tensor, points: list[float], function: Callable[..., Tensor]) -> Tensor:
        """The pieces that were taken."""
        self.look(number, x)
        masks = self.taken[number]
        for point, mask in zip(points, masks, strict=True):
            self.turn(number, x, mask != (x.detach() > point), (x.detach() - point).abs())
        return function(x, *masks)

    def pool(self, number: int, x: Tensor, window: tuple[Any, Any]) -> Tensor:
        """The values at the places that were taken."""
        self.look(number, x)
        (places,) = self.taken[number]
        result = x.flatten(2).gather(2, places.flatten(2)).view(places.shape)
        best, own = F.max_pool2d(x.detach(), *window[0], return_indices=True, **window[1])
        # Equal values, such as zeros behind a ReLU, are one decision, whichever place was taken.
        self.turn(number, x, (places != own) & (best > result.detach()), best - result.detach())
        return result

    def look(self, number: int, x: Tensor) -> None:
        """Keeps the exact values, or compares with them."""
        if self.exact is None:
            self.seen.append(x.detach().clone())
            return
        exact = self.exact.seen[number]
        self.error[number] = float((x.detach().double() - exact).abs().max() / exact.abs().max())

    def turn(self, number: int, x: Tensor, turned: Tensor, distance: Tensor) -> None:
        """Counts decisions that this run would have taken otherwise."""
        count = int(turned.sum())
        self.turned += count
        if count:
            far = float(distance[turned].max() / x.detach().abs().max())
            self.far[number] = max(far, self.far.get(number, 0.0))

    def excess(self, single: Replay) -> float:
        """How far the farthest turned decision is from marginal: at most 1 where all are marginal.

        A value is marginal where it is as near to the other branch as a tensor may be from float64's: 1e-4 of the
        largest magnitude, or twice the error of PyTorch's float32, which `single` measured.
        """
        return max((far / max(1e-4, 2 * single.error[at]) for at, far in self.far.items()), default=0.0)
