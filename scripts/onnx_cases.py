#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the node cases of the installed package onnx as folders, which dlprim_onnx_conformance runs.

usage: onnx_cases.py FOLDER
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


def to_proto(value: Any, info: onnx.ValueInfoProto) -> Any:
    if isinstance(value, onnx.TensorProto):
        return value
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


def write_case(case: Any, folder: pathlib.Path) -> None:
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir(parents=True, exist_ok=True)
        graph = case.model.graph
        for name, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                (data / f"{name}_{i}.pb").write_bytes(to_proto(value, info).SerializeToString())
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with np.errstate(all="ignore"):  # cases divide by zero on purpose
        cases = load_model_tests(kind="node")
    for case in cases:
        write_case(case, pathlib.Path(sys.argv[1], case.name))
    print(f"{len(cases)} cases of onnx {onnx.__version__} in '{sys.argv[1]}'")


if __name__ == "__main__":
    main()
