#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a small eager operator costs in Python above the same call in C++.

usage: PYTHONPATH=BUILD/python benchmarks/python_ops.py [DEVICE] [--rounds N] [--cpu-time]

Both languages call the same library in one process, by turns, a run of calls each, so that a machine whose speed
changes is fair to both. Times are the host's, a call: the medians of all rounds, and the median of what a round of
Python takes above the round of C++ before it. The device's work is finished between rounds and not counted. --cpu-time
counts the calling thread's time alone, which says more where the machine has other work.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable

import dlprim
import numpy as np
from dlprim import ops

CALLS_A_ROUND = 100
MUST_US = 3.0


def load_cpp(folder: str) -> ctypes.CDLL:
    """The C++ side, built against the library that the module uses."""
    source = pathlib.Path(__file__).with_name("python_ops.cpp")
    target = f"{folder}/python_ops.so"
    maps = pathlib.Path("/proc/self/maps").read_text()
    library = next(line.split()[-1] for line in maps.splitlines() if "libdlprim_core" in line)
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC", f"-I{source.parents[1] / 'include'}"]
    subprocess.run([os.environ.get("CXX", "c++"), *flags, str(source), library, "-o", target], check=True)
    cpp = ctypes.CDLL(target)
    cpp.time_calls.restype = ctypes.c_double
    return cpp


def python_calls(context: dlprim.Context) -> dict[str, Callable[[], object]]:
    def make(*shape: int) -> dlprim.Tensor:
        return dlprim.Tensor(context, np.full(shape, 0.5, np.float32))

    a, b = make(256), make(256)
    image, weight, bias = make(1, 3, 8, 8), make(4, 3, 3, 3), make(4)
    y = ops.conv2d(image, weight, bias, stride=2, padding=1)
    return {
        "relu": lambda: ops.relu(a),
        "add": lambda: ops.add(a, b),
        "conv2d": lambda: ops.conv2d(image, weight, bias, stride=2, padding=1),
        "conv2d gradient": lambda: ops.grad(ops.conv2d, y, image, weight, bias, stride=2, padding=1),
        "pointwise": lambda: ops.pointwise("y0 = x0 * p0 + x1", (a, b), (0.5,)),
    }


def time_python(context: dlprim.Context, call: Callable[[], object], clock: int) -> float:
    """Microseconds a call."""
    begin = time.clock_gettime(clock)
    for _ in range(CALLS_A_ROUND):
        call()
    seconds = time.clock_gettime(clock) - begin
    context.finish()
    return seconds * 1e6 / CALLS_A_ROUND


def main() -> int:
    parser = argparse.ArgumentParser(description="times small eager calls in Python and in C++")
    parser.add_argument("device", nargs="?", default="cpu")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--cpu-time", action="store_true")
    arguments = parser.parse_args()
    clock = time.CLOCK_THREAD_CPUTIME_ID if arguments.cpu_time else time.CLOCK_MONOTONIC
    context = dlprim.Context(arguments.device)
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        cpp = load_cpp(folder)
        print(f"{'us a call':16} {'C++':>8} {'Python':>8} {'above':>8}   {context}")
        for name, call in python_calls(context).items():
            rounds = []
            for _ in range(arguments.rounds):
                ours = cpp.time_calls(arguments.device.encode(), name.encode(), CALLS_A_ROUND, clock)
                rounds.append((ours, time_python(context, call, clock)))
            in_cpp, in_python = (statistics.median(times) for times in zip(*rounds))
            above = statistics.median(python - cpp for cpp, python in rounds)
            missed = missed or above > MUST_US
            print(f"{name:16} {in_cpp:8.2f} {in_python:8.2f} {above:8.2f}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
