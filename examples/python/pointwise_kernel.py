#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a kernel as an expression, checks it against numpy, and times it beside the device's own copy.

    pointwise_kernel.py -d gpu --size 16777216

The expression is what a gated layer of a language model computes: silu(a) b + 0.5 c. In numpy that is six passes over
memory, here it is one kernel that reads three arrays and writes one. Such a kernel is as fast as memory is, which is
why it is timed in bytes a second, and why a plain copy is what it is compared with. Its gradient is a kernel too,
which the library derives from the expression.

Needs numpy. docs/pointwise.md describes the language.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import dlprim
import numpy as np
from dlprim import ops

CODE = "gate = x0 / (1 + exp(-x0)); y0 = gate * x1 + p0 * x2"
SCALE = 0.5


def in_numpy(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return a / (1 + np.exp(-a)) * b + SCALE * c


def gradient_in_numpy(a: np.ndarray, b: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Of the expression with respect to a, worked out by hand."""
    s = 1 / (1 + np.exp(-a))
    return dy * b * s * (1 + a * (1 - s))


def error(computed: dlprim.Tensor, expected: np.ndarray) -> float:
    """The largest difference, as a share of the largest magnitude."""
    return float(np.abs(computed.numpy() - expected).max() / np.abs(expected).max())


def seconds(context: dlprim.Context, call: Callable[[], object], repeats: int) -> float:
    """The time of one call. Calls return when they are enqueued, so that what counts is finish()."""
    call()  # compiles the kernel
    context.finish()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    context.finish()
    return (time.perf_counter() - start) / repeats


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="", help="such as cpu, gpu or 0:0 (default: the best OpenCL device)")
    parser.add_argument("--size", type=positive, default=1 << 24, help="elements of an array (default: %(default)s)")
    parser.add_argument("--repeats", type=positive, default=20, help="calls that are timed (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    context = dlprim.Context(arguments.device)
    print(f"on {context.info}")
    random = np.random.default_rng(1)
    a, b, c, dy = (random.standard_normal(arguments.size, dtype=np.float32) for _ in range(4))
    x = [dlprim.Tensor(context, array) for array in (a, b, c)]

    (y,) = ops.pointwise(CODE, x, [SCALE])
    difference = error(y, in_numpy(a, b, c))
    da, _, _ = ops.grad(ops.pointwise, dlprim.Tensor(context, dy), CODE, x, [SCALE])
    gradient_difference = error(da, gradient_in_numpy(a, b, dy))
    print(f"result within {difference:.1e} of numpy's, gradient within {gradient_difference:.1e}")
    if max(difference, gradient_difference) > 1e-5:
        sys.exit("pointwise_kernel.py: that is more than rounding explains")

    copied = seconds(context, lambda: ops.pointwise("y0 = x0", x[0], out=y), arguments.repeats)
    computed = seconds(context, lambda: ops.pointwise(CODE, x, [SCALE], out=y), arguments.repeats)
    copy_rate = 2 * a.nbytes / copied / 1e9
    rate = 4 * a.nbytes / computed / 1e9
    print(f"copy    {copied * 1e3:8.3f} ms  {copy_rate:7.1f} GB/s")
    print(f"kernel  {computed * 1e3:8.3f} ms  {rate:7.1f} GB/s, {rate / copy_rate:.2f} of the copy's rate")


if __name__ == "__main__":
    try:
        main()
    except dlprim.DlprimError as error_:
        sys.exit(f"pointwise_kernel.py: {error_}")
