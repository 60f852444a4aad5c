# SPDX-License-Identifier: MIT
"""Shapes of one operator, asked of the library: its rules stand in one place, and so do its messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .._core import describe
from ..summary import ParamRecord, TensorRecord

# Names that stand for the inputs and outputs of the operator in question.
_INPUT, _OUTPUT = "input", "output"


def infer(
    name: str, kind: str, options: Mapping[str, Any], inputs: Sequence[TensorRecord], outputs: int, frozen: bool = False
) -> tuple[list[TensorRecord], list[ParamRecord]]:
    """What `outputs` outputs and the parameters of an operator are, from its inputs.

    Raises InvalidArgumentError with the library's sentence where options, shapes or types do not fit.
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
