#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rounding errors of 3x3 convolutions in float, directly and by Winograd's F(4x4, 3x3), by how their sums are made.

    simulate_sums.py [CHANNELS ...] [--tiles 200]

Inputs are normal and behind a ReLU, weights normal. Prints relative L2 errors against float64: terms added one after
the other, and in runs that are summed by themselves (of 256 terms directly, of 64 channels for Winograd, as the engines
conv2d.blocked and conv2d.blocked_winograd do). Needs numpy.
"""
import argparse

import numpy as np

F32 = np.float32


def transforms():
    """A, G, B of F(4, 3) with the points 0, +-1/sqrt 2, +-sqrt 2 and infinity (Lavin and Gray, 2016)."""
    points = [0, 0.5**0.5, -(0.5**0.5), 2**0.5, -(2**0.5)]
    a, g, b = np.zeros((4, 6)), np.zeros((6, 3)), np.zeros((6, 6))
    for j, p in enumerate(points):
        a[:, j] = [p**i for i in range(4)]
        g[j] = np.array([p**i for i in range(3)]) / np.prod([p - q for q in points if q != p])
    a[3, 5] = g[5, 2] = 1
    rows = np.array([a[i] * g[:, k] for i in range(4) for k in range(3)])
    for d in range(6):
        wanted = [float(d == i + k) for i in range(4) for k in range(3)]
        b[:, d] = np.linalg.lstsq(rows, np.array(wanted), rcond=None)[0]
    return a, g, b


def summed(terms, run):
    """Sums of fused multiply-adds along the first axis, each rounded to float; `run` terms by themselves."""
    total = None
    for first in range(0, len(terms), run):
        part = np.zeros(terms.shape[1:], F32)
        for term in terms[first:first + run]:
            part = (part.astype(np.float64) + term).astype(F32)
        total = part if total is None else (total + part).astype(F32)
    return total


def errors(channels, tiles):
    generator = np.random.default_rng(1)
    x = np.maximum(generator.standard_normal((tiles, channels, 6, 6)), 0).astype(F32)
    w = generator.standard_normal((channels, 3, 3)).astype(F32)
    windows = np.stack([x[:, c, i:i + 4, j:j + 4].astype(np.float64) * float(w[c, i, j])
                        for c in range(channels) for i in range(3) for j in range(3)])
    exact = windows.sum(0)

    a, g, b = transforms()
    u = (g @ w.astype(np.float64) @ g.T).astype(F32)
    b, a = b.astype(F32), a.astype(F32)
    v = np.einsum("ij,tcjk->tcik", b, x).astype(F32)
    v = np.einsum("tcik,lk->tcil", v, b).astype(F32)
    products = u[:, None].astype(np.float64) * v.swapaxes(0, 1)

    def winograd(run):
        y = np.einsum("ij,tjk->tik", a, summed(products, run)).astype(F32)
        return np.einsum("tik,lk->til", y, a).astype(F32)

    def error(found):
        return np.linalg.norm(found - exact) / np.linalg.norm(exact)

    everything = 9 * channels
    return [error(summed(windows, everything)), error(summed(windows, 256)), error(winograd(everything)), error(winograd(64))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("channels", nargs="*", type=int, default=[64, 512])
    parser.add_argument("--tiles", type=int, default=200)
    arguments = parser.parse_args()
    print("channels  direct  in runs  Winograd  in runs")
    for channels in arguments.channels:
        print(f"{channels:8d}" + "".join(f"  {error:.1e}" for error in errors(channels, arguments.tiles)))


if __name__ == "__main__":
    main()
