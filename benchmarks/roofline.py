#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws each layer's rate against what the device's arithmetic and bandwidth allow, as SVG on stdout.

    dlprim_benchmark --roofline --json result.json gpu examples/nets/resnet50.json -B 64
    benchmarks/roofline.py result.json > roofline.svg
    benchmarks/roofline.py result.json --peak fp32=63800 --peak fp16=634000 --bandwidth 4275 > roofline.svg

A point is a node of the plan: to the right its operations for each byte of its operands, up its operations a second, both
by powers of ten; its area grows with its share of the time. A tooltip has its name, engine, time and bound. Lines are
the roof: bandwidth on the left, the peaks on the right. Nodes without operations (copies, pooling, pointwise) have no
place in it; the last line of the picture says how much of the time they take.

Without --peak and --bandwidth the roof is the library's estimate from what the driver tells, which a measurement
should replace. Engines that need fewer operations than the direct method (Winograd) may stand above it.
"""
import argparse
import json
import math
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 600, 80, 20, 50, 80
COLOURS = ["#1b6ca8", "#c8553d", "#3a7d44", "#8e5ea2", "#b08900", "#008b8b", "#7a5230", "#d1478c"]


def points_of(result):
    """[(node, operations a byte, operations a second)] of nodes with operations, and the seconds of all others."""
    points, others = [], 0.0
    for node in result["nodes"]:
        if "gbytes" not in node:
            raise ValueError("it has no bytes by node: make it with dlprim_benchmark --roofline --json")
        gflop = node["gflops"] * node["ms"] * 1e-3
        if gflop > 0 and node["gbytes"] > 0:
            points.append((node, gflop / node["gbytes"], node["gflops"] * 1e9))
        else:
            others += node["ms"] * 1e-3
    if not points:
        raise ValueError("none of its nodes has operations and a time")
    return points, others


def decades(values):
    """Powers of ten around the values."""
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)


def number(value):
    """1.2 G, 63.8 T."""
    for power, unit in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.3g} {unit}"
    return f"{value:.3g} "


def picture(result, peaks, bandwidth):
    """SVG. peaks: {name: FLOP/s}; bandwidth: bytes/s."""
    points, others = points_of(result)
    ridge = max(peaks.values()) / bandwidth
    x0, x1 = decades([p[1] for p in points] + [1, ridge * 3])
    y0, y1 = decades([p[2] for p in points] + list(peaks.values()))

    def across(intensity):
        return LEFT + (math.log10(intensity) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)

    def down(rate):
        return HEIGHT - BOTTOM - (math.log10(rate) - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']

    def text(x, y, words, more=""):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>')

    def line(x, y, to_x, to_y, style):
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" {style}/>')

    text(LEFT, 25, f"{result['net']} on {result['device']}, batch {result['batch']}, {result['mode']}, "
                   f"{result['precision']}: {result['ms_per_batch']['median']:.3g} ms a batch", 'font-size="16"')
    grid = 'stroke="#ddd"'
    for d in range(x0, x1 + 1):
        line(across(10.0**d), TOP, across(10.0**d), HEIGHT - BOTTOM, grid)
        text(across(10.0**d), HEIGHT - BOTTOM + 18, f"{10.0**d:g}", 'text-anchor="middle"')
    for d in range(y0, y1 + 1):
        line(LEFT, down(10.0**d), WIDTH - RIGHT, down(10.0**d), grid)
        text(LEFT - 6, down(10.0**d) + 4, number(10.0**d), 'text-anchor="end"')
    text(WIDTH / 2, HEIGHT - BOTTOM + 38, "operations a byte", 'text-anchor="middle"')
    text(18, HEIGHT / 2, "operations a second", f'text-anchor="middle" transform="rotate(-90 18 {HEIGHT / 2})"')

    # The slope reaches the highest peak; what of it is below the picture is left out.
    roof = 'stroke="#333" stroke-width="1.5"'
    foot = max(10.0**x0, 10.0**y0 / bandwidth)
    line(across(foot), down(foot * bandwidth), across(ridge), down(ridge * bandwidth), f'class="bandwidth" {roof}')
    for name, peak in peaks.items():
        line(across(peak / bandwidth), down(peak), WIDTH - RIGHT, down(peak), f'class="peak" {roof}')
        text(WIDTH - RIGHT, down(peak) - 5, f"{name}: {number(peak)}FLOP/s", 'text-anchor="end"')
    text(LEFT + 8, TOP + 14, f"slope: {number(bandwidth)}B/s")

    engines = sorted({node["engine"] for node, _, _ in points})
    colours = {engine: COLOURS[i % len(COLOURS)] for i, engine in enumerate(engines)}
    total = others + sum(node["ms"] * 1e-3 for node, _, _ in points)
    for node, intensity, rate in sorted(points, key=lambda p: -p[0]["ms"]):
        radius = 3 + 30 * math.sqrt(node["ms"] * 1e-3 / total)
        about = (f"{node['name']}\n{node['type']} by {node['engine']}\n{node['ms']:.4g} ms, bound {node['bound_ms']:.4g} ms\n"
                 f"{number(rate)}FLOP/s, {intensity:.3g} FLOP/byte")
        out.append(f'<circle class="node" cx="{across(intensity):.1f}" cy="{down(rate):.1f}" r="{radius:.1f}" '
                   f'fill="{colours[node["engine"]]}" fill-opacity="0.55"><title>{escape(about)}</title></circle>')
    for i, engine in enumerate(engines):
        out.append(f'<circle cx="{LEFT + 14}" cy="{TOP + 32 + 18 * i}" r="5" fill="{colours[engine]}"/>')
        text(LEFT + 24, TOP + 36 + 18 * i, engine)
    text(LEFT, HEIGHT - 12, f"{len(points)} nodes; nodes without operations take {100 * others / total:.0f} % of the time")
    return "\n".join(out + ["</svg>", ""])


def peak_of(words):
    name, _, value = words.rpartition("=")
    try:
        return name or "peak", positive(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError("NAME=GFLOPS, as in fp32=63800") from error


def positive(words):
    value = float(words)
    if not 0 < value < math.inf:
        raise ValueError(words)
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", help="what dlprim_benchmark --roofline --json wrote")
    parser.add_argument("--peak", type=peak_of, action="append", metavar="NAME=GFLOPS",
                        help="a peak of the device's arithmetic, in 10^9 a second; may be given for each precision")
    parser.add_argument("--bandwidth", type=positive, metavar="GB/S", help="the device's, in 10^9 bytes a second")
    arguments = parser.parse_args()
    try:
        with open(arguments.result, encoding="utf-8") as file:
            result = json.load(file)
        told = result.get("device_peak", {})
        peaks = dict(arguments.peak or [("estimated peak", told.get("gflops", 0))])
        bandwidth = arguments.bandwidth or told.get("gbytes_per_s", 0)
        if min(peaks.values()) <= 0 or bandwidth <= 0:
            raise ValueError("it has no peak of the device: make it with dlprim_benchmark --roofline --json")
        sys.stdout.write(picture(result, {name: value * 1e9 for name, value in peaks.items()}, bandwidth * 1e9))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{arguments.result}: {error}")


if __name__ == "__main__":
    main()
