#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ONNX's own test runner, onnx.backend.test.BackendTest, over dlprim.onnx_backend, and counts what becomes of its cases.

    onnx_backend.py [-d DEVICE] [--filter RE]

All cases that the installed package onnx carries are run: those of nodes, training and preview domains included, simple
models, and models and operators from PyTorch. Models that the runner would download are left out. A line names each case
that does not pass; the table counts by kind. Exit code 1 where a case fails that is not unsupported. Needs onnx, and dlprim
in PYTHONPATH.
"""
import argparse
import collections
import os
import re
import sys
import unittest

import numpy as np

KINDS = {"OnnxBackendNodeModelTest": "nodes", "OnnxBackendSimpleModelTest": "simple models",
         "OnnxBackendPyTorchConvertedModelTest": "models from PyTorch",
         "OnnxBackendPyTorchOperatorModelTest": "operators from PyTorch"}


class Result(unittest.TestResult):
    """The sentence of each case that did not pass, by name."""

    def __init__(self):
        super().__init__()
        self.states = {}

    def addSuccess(self, test):
        self.states[test] = ("passed", "")

    def addSkip(self, test, reason):
        self.states[test] = ("skipped", reason)

    def addError(self, test, error):
        text = " ".join(str(error[1]).split())
        unsupported = error[0].__name__ == "UnsupportedError"
        self.states[test] = ("unsupported" if unsupported else "failed", f"{error[0].__name__}: {text[:200]}")

    addFailure = addError


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="cpu")
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    os.environ["DLPRIM_DEVICE"] = options.device
    import dlprim.onnx_backend
    with np.errstate(all="ignore"):  # cases divide by zero on purpose
        import onnx.backend.test
        runner = onnx.backend.test.BackendTest(dlprim.onnx_backend, __name__)
        counts = collections.defaultdict(collections.Counter)
        for kind, case in runner.test_cases.items():
            if kind not in KINDS:
                continue
            result = Result()
            for name in unittest.TestLoader().getTestCaseNames(case):
                if name.endswith("_cpu") and re.search(options.filter, name):
                    case(name).run(result)
            for test, (state, reason) in result.states.items():
                counts[KINDS[kind]][state] += 1
                if state != "passed":
                    print(f"{test.id().rsplit('.', 1)[-1]}: {state}: {reason}", flush=True)
    all_kinds = sum(counts.values(), collections.Counter())
    states = ("passed", "failed", "unsupported", "skipped")
    print(f"{'onnx ' + onnx.__version__:<24}" + "".join(f"{state:>13}" for state in states))
    for kind, count in [*counts.items(), ("all", all_kinds)]:
        print(f"{kind:<24}" + "".join(f"{count[state]:>13}" for state in states))
    print(f"{100 * all_kinds['passed'] / all_kinds.total():.1f} % of {all_kinds.total()} cases pass")
    return 1 if all_kinds["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
