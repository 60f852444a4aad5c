# SPDX-License-Identifier: MIT
"""Shapes of one operator. The library computes them, so that the rules and their messages exist only once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .._core import describe
from ..summary import ParamRecord, TensorRecord

# Names of the operator's inputs and outputs in the network that is asked about.
_INPUT, _OUTPUT = "input", "output"


def infer(
    name: str, kind: str, options: Mapping[str, Any], inputs: Sequence[TensorRecord], outputs: int, frozen: bool = False
) -> tuple[list[TensorRecord], list[ParamRecord]]:
    """Infers an operator's outputs, of which there are `outputs`, and its parameters from its inputs.

    Raises InvalidArgumentError with the library's sentence if options, shapes or types do not fit.
    """
    names = [f"{_INPUT}{i}" for i in range(len(inputs))]
    made = [f"{_OUTPUT}{i}" for i in range(outputs)]
    operator = {"name": name, "type": kind, "inputs": names, "outputs": made, "options": options, "frozen": frozen}
    net = {
        "inputs": [{"name": n, "shape": x.shape, "dtype": x.dtype} for n, x in zip(names, inputs)],
        "outputs": made,
        "operators": [operator],
    }
    (described,) = describe(json.dumps(net), False, {"mode": "inference"}).operators
    records = [TensorRecord(y.name, y.shape, y.dtype) for y in described.outputs]
    return records, [ParamRecord(p.name, p.shape, p.dtype, p.trainable) for p in described.params]
