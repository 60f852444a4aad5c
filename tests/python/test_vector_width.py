# SPDX-License-Identifier: MIT
"""The host device gives the same bits with vectors of AVX2 as with those of AVX-512, where the processor has both:
each process computes with the width that DLPRIM_TRAITS leaves it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib
import dlprim
import numpy as np
from dlprim import ops

context = dlprim.Context("cpu")
random = np.random.default_rng(5)

def tensor(*shape):
    return dlprim.Tensor(context, random.standard_normal(shape).astype(np.float32))

def show(name, y):
    print(name, hashlib.sha256(y.numpy().tobytes()).hexdigest())

x = tensor(2, 12, 19, 23)
for stride in (1, 2):
    show("convolution", ops.conv2d(x, tensor(20, 12, 3, 3), padding=1, stride=stride, activation="hardswish"))
    show("depthwise", ops.conv2d(x, tensor(12, 1, 5, 5), padding=2, stride=stride, groups=12, activation="tanh"))
show("spectrum", ops.conv2d(tensor(1, 1, 1, 900), tensor(30, 1, 1, 100), stride=(1, 40)))
for rows in (1, 3, 40):
    for k in (36, 100, 600):
        show("product", ops.linear(tensor(rows, k), tensor(50, k)))
show("softmax", ops.softmax(tensor(9, 300)))
show("pooling", ops.avg_pool2d(x, 3, stride=2))
for name in ("exp(x0)", "tanh(x0)", "sigmoid(x0)", "erf(x0)", "log(abs(x0))", "x0 / (1 + abs(x0))", "fma(x0, x0, x0)"):
    show(name, ops.pointwise("y0 = " + name, [x])[0])
show("sum", ops.pointwise("y0 = sum[1,2](x0 * x0); y1 = max[3](x0)", [x])[0])
"""


def bits(traits: str) -> str:
    environment = os.environ | {"DLPRIM_TRAITS": traits}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def has_wide_vectors() -> bool:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        return "avx512vl" in file.read()


def test_vector_width(device: str) -> None:
    if device != "cpu":
        pytest.skip("only the host has vectors of a width of its own")
    if not has_wide_vectors():
        pytest.skip("this processor lacks AVX-512")
    wide = bits("vector_width=16")
    assert len(wide.splitlines()) == 24
    assert bits("vector_width=8") == wide
