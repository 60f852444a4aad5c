#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Simulates float products on a matrix unit from two halves an operand, as kernels/matrix/halves.clh makes them.

    simulate_split.py [--depth 4608] [--rows 96]

The unit is taken to cut its running sum toward zero to 24 bits after every instruction (16 of K); sums of 64 of K
are added in float outside of it. Prints, for positive data, where a cut shows, the mean relative error (the bias
that layers of a network add up) of three orders, and for normal data the error's rms beside that of fused
multiply-adds. This is where the constant of split_unscale_cut comes from. Needs numpy.
"""
import argparse

import numpy as np


def cut(x):
    """Doubles toward zero to 24 bits."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.trunc(mantissa * 2**24), exponent - 24)


def halves(x, axis):
    """x as floats -> upper and lower halves and what undoes the scale; one power of two along an axis."""
    largest = np.abs(x).max(axis=axis, keepdims=True)
    scale = np.ldexp(1.0, 15 - np.frexp(largest)[1])
    scaled = x * scale
    upper = scaled.astype(np.float16).astype(np.float64)
    return upper, (scaled - upper).astype(np.float16).astype(np.float64), 1 / scale


def product(a, b, small_first, factor=1.0):
    """a: rows x K, b: K x columns, in float's values."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    a_upper, a_lower, a_unscale = halves(a, 1)
    for k in range(0, a.shape[1], 64):
        b_upper, b_lower, b_unscale = halves(b[k:k + 64], 0)
        steps = [slice(i, i + 16) for i in range(0, 64, 16)]
        small = [[(a_lower, b_upper, s), (a_upper, b_lower, s)] for s in steps]
        large = [[(a_upper, b_upper, s)] for s in steps]
        order = sum(small, []) + sum(large, []) if small_first else sum((one + two for one, two in zip(large, small)), [])
        unit = np.zeros(total.shape)
        for left, right, s in order:
            unit = cut(unit + left[:, k + s.start:k + s.stop] @ right[s])
        total = (total + unit * b_unscale * factor).astype(np.float32)
    return total * a_unscale


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=4608)
    parser.add_argument("--rows", type=int, default=96)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    shape = (arguments.rows, arguments.depth)
    one = 1 + 2.0**-23  # one unit of a float's last place
    for name, make in (("positive data, mean relative error", lambda: np.abs(random.normal(size=shape))),
                       ("normal data, rms error over the result's rms", lambda: random.normal(size=shape))):
        a, b = make().astype(np.float32).astype(np.float64), make().astype(np.float32).astype(np.float64).T
        exact = a @ b
        fused = np.zeros(exact.shape, np.float32)
        for k in range(arguments.depth):
            fused = (fused + np.outer(a[:, k], b[k])).astype(np.float32)
        print(name)
        for way, result in (("products of 16 of K together", product(a, b, False)), ("small products first", product(a, b, True)),
                            ("and one unit put back", product(a, b, True, one)), ("fused multiply-adds", fused)):
            error = result - exact
            figure = (error / exact).mean() if "mean" in name else np.sqrt((error**2).mean() / (exact**2).mean())
            print(f"  {way:30s} {figure:+.2e}")


if __name__ == "__main__":
    main()
