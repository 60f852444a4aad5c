# SPDX-License-Identifier: MIT
"""What the makers of models for make_onnx_golden.py share: a model of one node in the making, and random shapes and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

Array = npt.NDArray[Any]
Random = np.random.Generator


class Case:
    """A model of one node, in the making: inputs that are fed, and constants. A kind is an operator's type, behind its domain
    ("onnx" is ONNX's own) where that is not com.microsoft."""

    def __init__(self, kind: str, random: Random) -> None:
        domain, _, self.kind = kind.rpartition(".")
        self.domain = domain or "com.microsoft"
        self.random = random
        self.names: list[str] = []
        self.feeds: dict[str, Array] = {}
        self.constants: list[onnx.TensorProto] = []
        self.attributes: dict[str, Any] = {}
        self.outputs: int | list[str] = 1

    def fed(self, value: Array) -> None:
        name = f"x{len(self.names)}"
        self.names.append(name)
        self.feeds[name] = value

    def constant(self, value: Array | onnx.TensorProto) -> None:
        name = f"c{len(self.names)}"
        self.names.append(name)
        tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value)
        tensor.name = name
        self.constants.append(tensor)

    def absent(self) -> None:
        self.names.append("")

    def either(self, value: Array) -> None:
        """A constant or an input."""
        if self.random.random() < 0.5:
            self.constant(value)
        else:
            self.fed(value)

    def scale(self, low: float = 0.002, high: float = 0.2) -> None:
        self.constant(np.float32(np.exp(self.random.uniform(np.log(low), np.log(high)))))

    def zero(self, dtype: Any, leaves_out: bool = False) -> None:
        if leaves_out and self.random.random() < 0.25:
            return self.absent()
        return self.constant(bytes_of(self.random, (), dtype))

    def quantized(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.fed(bytes_of(self.random, shape, dtype))
        self.scale()
        self.zero(dtype)

    def model(self) -> bytes:
        while self.names and not self.names[-1]:
            self.names.pop()
        made = [f"y{i}" for i in range(self.outputs)] if isinstance(self.outputs, int) else self.outputs
        domain = "" if self.domain == "onnx" else self.domain
        node = helper.make_node(self.kind, self.names, made, domain=domain, **self.attributes)
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in self.feeds.items()
        ]
        graph = helper.make_graph(
            [node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in made if name], self.constants
        )
        versions = {"": 21, domain: 1} if domain else {"": 21}
        opsets = [helper.make_opsetid(name, version) for name, version in versions.items()]
        made_bytes: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
        return made_bytes


def bytes_of(random: Random, shape: tuple[int, ...], dtype: Any) -> Array:
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max + 1, shape).astype(dtype)


def byte_type(random: Random) -> Any:
    return random.choice(np.array([np.uint8, np.int8]))


def shape_of(random: Random, rank: int, most: int = 5) -> tuple[int, ...]:
    return tuple(int(size) for size in random.integers(1, most + 1, rank))
