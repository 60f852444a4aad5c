# SPDX-License-Identifier: MIT
"""What a case is, and the values that cases have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from dlprim import ops

NORMAL = np.random.default_rng(1).standard_normal


def random(*shape: int) -> np.ndarray:
    return NORMAL(shape).astype(np.float32)


def apart(*shape: int) -> np.ndarray:
    """Values that differ by far more than rounding, and none near 0: where functions have kinks, tests need that."""
    count = int(np.prod(shape))
    values = (np.arange(count) - count / 2 + 0.25) * (6 / count)
    return np.random.default_rng(2).permutation(values).astype(np.float32).reshape(shape)


def positive(*shape: int) -> np.ndarray:
    return np.abs(random(*shape)) + 0.5


def labels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, count, shape, dtype=np.int64)


IMAGES = random(2, 4, 9, 8)


class Case:
    """A function's arguments; `torch_call` is called with PyTorch and the arguments."""

    def __init__(
        self,
        name: str,
        *args: Any,
        like: Callable[..., Any] | None = None,
        torch_kwargs: dict[str, Any] | None = None,
        differentiable: bool = True,
        **kwargs: Any,
    ) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs
        self.like = like
        self.torch_kwargs = kwargs if torch_kwargs is None else torch_kwargs
        self.differentiable = differentiable

    @property
    def function(self) -> Callable[..., Any]:
        return getattr(ops, self.name)

    def torch_call(self, torch: Any, args: Any) -> Any:
        if self.like is not None:
            return self.like(torch, *args)
        function = getattr(torch.nn.functional, self.name, None) or getattr(torch, self.name)
        return function(*args, **self.torch_kwargs)


def functional(name: str, **kwargs: Any) -> Callable[..., Any]:
    return lambda torch, *args: getattr(torch.nn.functional, name)(*args, **kwargs)


def torch_function(name: str, **kwargs: Any) -> Callable[..., Any]:
    return lambda torch, *args: getattr(torch, name)(*args, **kwargs)


def convert(value: Any, make: Callable[[np.ndarray], Any]) -> Any:
    """An argument with its arrays made into tensors."""
    if isinstance(value, np.ndarray):
        return make(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(convert(item, make) for item in value)
    return value
