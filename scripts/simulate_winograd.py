#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Winograd's transformations F(m, 3) from their points, and what they round in float.

    simulate_winograd.py [CHANNELS ...] [--tiles 48] [--matrices] [--search]

Prints relative L2 errors against float64 of 3x3 convolutions of normal data by F(2x2), F(4x4) and F(6x6), 64 channels
summed by themselves as the engine conv2d.blocked_winograd does, for sets of points: 0, the named ones with both signs,
and infinity. --matrices: the transformations as Toom and Cook's algorithm gives them (Lavin and Gray, 2016), computed with
fifty digits: the numbers of kernels/common/winograd.clh, but for factors that weights have there and inputs have not.
--search: F(6x6) over a grid of points, best first (Barabasz et al., 2020, on how points decide on the error). Needs numpy.
"""
import argparse
import decimal
import itertools

import numpy as np

D, F32, F64 = decimal.Decimal, np.float32, np.float64
decimal.getcontext().prec = 50
RUN = 64  # channels summed by themselves
POINTS = [["1"], ["1", "2"], ["0.5**0.5", "2**0.5"], ["1", "2", "3"], ["0.5", "1", "1.5"], ["0.5**0.5", "1", "2**0.5"],
          ["0.5", "1", "2"]]


def number(text):
    base, _, power = text.partition("**")
    return D(base) ** D(power or 1)


def exact(c):
    """Without what fifty digits leave of a zero."""
    return c if abs(c) > D("1e-40") else D(0)


def polynomial(roots):
    """Coefficients of the product of x - root, that of the highest power last."""
    p = [D(1)]
    for root in roots:
        p = [(p[i - 1] if i > 0 else D(0)) - (root * p[i] if i < len(p) else D(0)) for i in range(len(p) + 1)]
    return p


def matrices(halves):
    """Of outputs, weights and inputs (Lavin and Gray's A^T, G, B^T) for 0, each point with both signs, and infinity."""
    points = [D(0)] + [sign * p for p in halves for sign in (1, -1)]
    size = len(points) - 1
    powers = [[D(1)] + [p**i for i in range(1, size + 1)] for p in points]
    others = [[q for q in points if q != p] for p in points]
    a = [[row[i] for row in powers] + [D(i == size - 1)] for i in range(size)]
    g = [[c / np.prod([p - q for q in rest]) for c in row[:3]] for p, row, rest in zip(points, powers, others)]
    b = [polynomial(rest) + [D(0)] for rest in others]
    return tuple([list(map(exact, row)) for row in matrix]
                 for matrix in (a, g + [[D(0), D(0), D(1)]], b + [polynomial(points)]))


def chain(row, d):
    """The sum of d's elements times the row's, by fused multiply-adds in float."""
    total = None
    for factor, x in reversed([(float(F32(c)), x.astype(F64)) for c, x in zip(row, d) if c != 0]):
        total = (x * factor + (0 if total is None else total.astype(F64))).astype(F32)
    return total


def apply(matrix, d):
    """As the kernels do: the even and the odd part of the rows of a point and its negative, once."""
    made = [chain(matrix[0], d)]
    for up, down in zip(matrix[1:-1:2], matrix[2:-1:2]):
        even, odd = ([exact((p + sign * q) / 2) for p, q in zip(up, down)] for sign in (1, -1))
        scale = [c for c in odd if c != 0][-1]
        e, o = chain(even, d).astype(F64), chain([c / scale for c in odd], d).astype(F64) * float(F32(scale))
        made += [(e + o).astype(F32), (e - o).astype(F32)]
    return made + [chain(matrix[-1], d)]


def apply_output(matrix, m):
    even = [p + q for p, q in zip(m[1:-1:2], m[2:-1:2])]
    odd = [p - q for p, q in zip(m[1:-1:2], m[2:-1:2])]
    return [chain([row[-1], row[0]] + row[1:-1:2], [m[-1], m[0]] + (odd if i % 2 else even))
            for i, row in enumerate(matrix)]


def twice(transformation, matrix, d):
    """To columns, then to rows: d[row][column] are arrays."""
    columns = [transformation(matrix, list(column)) for column in zip(*d)]
    return [transformation(matrix, list(row)) for row in zip(*columns)]


def error(halves, channels, tiles, seed=0):
    a, g, b = matrices(halves)
    size = len(a)
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((size + 2, size + 2, channels, tiles)).astype(F32)
    w = generator.standard_normal((3, 3, channels, 1)).astype(F32)
    wanted = sum((x[i:i + size, j:j + size].astype(F64) * w[i, j].astype(F64)).sum(2) for i in range(3) for j in range(3))
    v, u = (np.array(twice(apply, matrix, list(map(list, d)))).astype(F64) for matrix, d in ((b, x), (g, w)))
    total = F32(0)
    for first in range(0, channels, RUN):
        part = np.zeros(v.shape[:2] + (tiles,), F32)
        for c in range(first, min(first + RUN, channels)):
            part = (v[:, :, c] * u[:, :, c] + part.astype(F64)).astype(F32)
        total = total + part
    y = np.array(twice(apply_output, a, list(map(list, total))))
    return np.linalg.norm(y - wanted) / np.linalg.norm(wanted)


def search():
    grid = itertools.product(np.arange(0.3, 0.75, 0.05), np.arange(0.75, 1.35, 0.05), np.arange(1.5, 2.6, 0.1))
    sets = [[D(f"{p:.2f}") for p in points] for points in grid]
    found = [(np.sqrt(np.mean([error(points, 8, 16, seed) ** 2 for seed in range(4)])), points) for points in sets]
    print("F(6x6), 8 channels, mean of four")
    for e, points in sorted(found)[:12]:
        print(f"{e:.2e}  {', '.join(map(str, points))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("channels", nargs="*", type=int, default=[64, 256, 512])
    parser.add_argument("--tiles", type=int, default=48)
    parser.add_argument("--matrices", action="store_true")
    parser.add_argument("--search", action="store_true")
    arguments = parser.parse_args()
    if arguments.search:
        return search()
    print(f"{'points':>27}" + "".join(f"{c:>9}" for c in arguments.channels) + "  channels")
    for names in POINTS:
        halves = [number(name) for name in names]
        found = [error(halves, c, arguments.tiles) for c in arguments.channels]
        print(f"F({2 * len(names)}) {', '.join(names):>22}" + "".join(f"{e:9.1e}" for e in found))
        if arguments.matrices:
            for title, matrix in zip(("outputs", "weights", "inputs"), matrices(halves)):
                print(f"  {title}")
                for row in matrix:
                    print("  " + "".join(f"{float(c):22.17g}" for c in row))


if __name__ == "__main__":
    main()
